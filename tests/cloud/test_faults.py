"""Whatever a device does, it gets one clear sentence, and the next device is served."""

import asyncio
import zlib
from collections.abc import Awaitable, Callable

import numpy as np
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as dial

from antiphon.cloud.service import Cloud
from antiphon.config import Limits, Request
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import LinkError, RemoteError
from antiphon.models.toy import ToyModel, named_toy
from antiphon.vocabulary import identity
from antiphon.wire import messages as m
from antiphon.wire.packing import Writer
from support.links import between, linked, raw_session, request, toy_cloud, toy_device

LIMITS = Limits(frame_bytes=200_000, prompt_bytes=10_000, max_tokens=500, sessions_per_connection=4)


async def still_serves(url: str) -> None:
    async with toy_device(url) as (device, connection):
        result = await device.generate(request(), connection)
        assert result.tokens > 0


def refusal(**changes: object) -> str:
    """The sentence that a session with these fields is refused with; the connection must survive it."""

    async def test(device: Device, connection: Connection) -> str:
        session = await raw_session(connection, **changes)
        with pytest.raises(RemoteError) as caught:
            await session.receive()
        assert (await device.generate(request(), connection)).tokens > 0
        return str(caught.value)

    return linked(test, LIMITS)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"method": "telepathy"},
            "there is no method 'telepathy': use one of cloud, coupled, coupled-tree, ",
        ),
        ({"method": "device"}, "there is no method 'device'"),
        ({"prompt": ""}, "the prompt is empty: give at least one character"),
        ({"prompt": "x" * 10_001}, "the prompt has 10001 bytes; this cloud takes at most 10000"),
        ({"prompt": "x" * 5000}, "the prompt has 5000 tokens, but with this max-tokens at most 4088 fit"),
        ({"max_tokens": 0}, "max-tokens must be 1 to 500 here, not 0"),
        ({"max_tokens": 501}, "max-tokens must be 1 to 500 here, not 501"),
        ({"options": {"draft_length": 99, "precision": 32}}, "draft length must be 1 to 16, or 0 (auto), not 99"),
        ({"options": {"draft_length": "three"}}, "an option of dssd does not fit"),
        ({"chat": True}, "toy-cloud has no chat template: leave out --chat"),
        ({"seed": 2**64 - 1, "method": "nothing"}, "there is no method"),
    ],
)
def test_a_session_that_cannot_be(changes: dict, sentence: str) -> None:
    assert sentence in refusal(**changes)


def test_a_logit_bias_for_a_token_that_is_none() -> None:
    from antiphon.config import SamplingParams

    assert "a logit bias names a token" in refusal(sampling=SamplingParams(logit_bias=((99_999, 1.0),)))


@pytest.mark.parametrize("method", ["cloud", "coupled", "coupled-tree", "dsd"])
def test_a_prompt_that_the_cloud_cannot_spell(method: str) -> None:
    speechless = ToyModel((b"\x01", b"\x02", b""), name="speechless")

    async def test(device: Device, connection: Connection) -> None:
        with pytest.raises(RemoteError, match="the tokenizer of speechless cannot spell the prompt: ask another cloud"):
            await device.generate(Request("ab", method), connection)
        assert (await device.generate(Request("\x01", method), connection)).tokens > 0

    between(named_toy("toy-device"), speechless, test)


def fault(method: str, make: Callable[[Connection], m.Message]) -> str:
    """The sentence that a session gets for this message; the connection must survive it."""

    async def test(device: Device, connection: Connection) -> str:
        session = await raw_session(connection, method=method)
        await session.send(make(connection))
        with pytest.raises(RemoteError) as caught:
            await session.receive()
        assert (await device.generate(request(), connection)).tokens > 0
        return str(caught.value)

    return linked(test, LIMITS)


def draft(fill: Callable[[Writer, Connection], None], count: int = 1, turn: int = 0) -> Callable[[Connection], m.Message]:
    def make(connection: Connection) -> m.Message:
        writer = Writer()
        fill(writer, connection)
        return m.Draft(turn, count, writer.finish())

    return make


def outside_c(writer: Writer, connection: Connection) -> None:
    writer.number(connection.common.size, connection.common.common_bits)
    writer.number(5, 32)


def never_drawn(writer: Writer, connection: Connection) -> None:
    writer.number(1, connection.common.common_bits)
    writer.number(0, 32)


def dense(value: float) -> Callable[[Writer, Connection], None]:
    def fill(writer: Writer, connection: Connection) -> None:
        writer.number(1, connection.common.common_bits)
        writer.array(np.full(connection.common.size, value, "<f4"))

    return fill


def good(writer: Writer, connection: Connection) -> None:
    writer.number(1, connection.common.common_bits)
    writer.number(5, 32)


@pytest.mark.parametrize(
    ("method", "make", "sentence"),
    [
        ("dssd", draft(outside_c), "the id of draft 1 is 265, but must be below 265"),
        ("dssd", draft(never_drawn), "the probability of draft 1 is 0, so it cannot have been drawn"),
        ("dsd", draft(dense(float("nan"))), "the probabilities of draft 1 sum to"),
        ("dsd", draft(dense(-0.5)), "the probabilities of draft 1 sum to"),
        ("dssd", draft(good, count=9), "at most 3 drafts fit here, but 9 came"),
        ("dssd", draft(good, count=2), "the payload is shorter than its message says"),
        ("dssd", draft(good, count=0), "the payload is longer than its message says"),
        ("dssd", draft(good, turn=7), "Draft of round 7 came in round 0"),
        ("dssd", lambda connection: m.Probe(1, 0, 0, 0, 0, b""), "Probe came where Draft was due"),
        ("probe", draft(good), "Draft came where Probe was due"),
        ("probe", lambda connection: m.Probe(1, 0, 0, 0, 8, b""), "a continuation of 8 tokens came where at most 7 fit"),
    ],
)
def test_a_message_that_cannot_be(method: str, make: Callable[[Connection], m.Message], sentence: str) -> None:
    assert sentence in fault(method, make)


def test_no_number_of_maps_makes_a_cloud_forget_its_own_vocabulary() -> None:
    cloud = Cloud(named_toy("toy-cloud"))
    model = cloud.model
    full = identity(model.vocabulary)
    for left_out in range(20):
        flags = model.vocabulary.canonical.copy()
        flags[[model.vocabulary.end, left_out]] = True, False
        asyncio.run(cloud.learn(zlib.compress(np.packbits(flags).tobytes())))
    assert cloud.known(full.digest) is not None
    cloud.close()


def test_a_vocabulary_larger_than_a_frame_comes_in_small_parts() -> None:
    assert linked(lambda device, connection: device.generate(request(), connection), Limits(frame_bytes=1200)).tokens > 0


def test_more_sessions_than_allowed_end_the_connection() -> None:
    async def test(device: Device, connection: Connection) -> None:
        for _ in range(4):
            await raw_session(connection)
        connection.wire.limits = Limits(sessions_per_connection=99)

        async def fifth() -> None:
            session = await raw_session(connection)
            await session.receive()

        with pytest.raises(RemoteError, match="at most 4 sessions at once"):  # while it opens, or as its first word
            await fifth()

    linked(test, LIMITS)


def raw(act: Callable[[ClientConnection], Awaitable[str]], limits: Limits = LIMITS) -> str:
    """What a bare socket is told; another device must be served afterwards."""

    async def run() -> str:
        async with toy_cloud(limits) as url:
            async with dial(url, compression=None, proxy=None) as socket:
                told = await act(socket)
            await still_serves(url)
            return told

    return asyncio.run(asyncio.wait_for(run(), 60))


async def reply_to(socket: ClientConnection, frame: bytes | str) -> str:
    await socket.send(frame)
    envelope = m.decode(await socket.recv(decode=False))
    assert isinstance(envelope.message, m.Failure)
    with pytest.raises(Exception, match="received 1000"):
        await socket.recv()
    return envelope.message.sentence


HELLO = m.encode(m.Envelope(0, m.Hello(m.VERSION, "test", "none", b"")))


@pytest.mark.core(5)
@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (b"", "the frame is not a valid message"),
        (b"\xff" * 40, "the frame is not a valid message"),
        (b"\x92\x00\x92\x63\x01", "the frame is not a valid message"),
        ("text", "frames are binary, this one is text"),
        (bytes(200_001), "the frame has 200001 bytes; at most 200000 are accepted"),
        (
            m.encode(m.Envelope(0, m.Hello(99, "test", "none", b""))),
            "this cloud speaks version 6 of the protocol, not 99: update Antiphon in the cloud",
        ),
        (
            m.encode(m.Envelope(0, m.Hello(3, "test", "none", b""))),
            "version 6 of the protocol, not 3: update Antiphon on the device",
        ),
        (m.encode(m.Envelope(0, m.CommonReady())), "CommonReady is out of turn: the connection is new"),
        (m.encode(m.Envelope(1, m.Cancel())), "Cancel is out of turn"),
    ],
)
def test_a_first_frame_that_cannot_be(frame: bytes | str, sentence: str) -> None:
    assert sentence in raw(lambda socket: reply_to(socket, frame))


def test_a_frame_beyond_every_bound_closes_the_socket() -> None:
    async def act(socket: ClientConnection) -> str:
        await socket.send(bytes(2 * LIMITS.frame_bytes + 1))
        with pytest.raises(Exception, match="1009"):
            await socket.recv()
        return "closed"

    assert raw(act) == "closed"


def test_a_map_of_common_tokens_that_does_not_fit() -> None:
    async def act(socket: ClientConnection) -> str:
        for message in (m.Hello(m.VERSION, "test", "none", b""), m.Common(bytes(16), 5)):
            await socket.send(m.encode(m.Envelope(0, message)))
            await socket.recv()
        return await reply_to(socket, m.encode(m.Envelope(0, m.CommonMap(b"junk"))))

    assert "the map of common tokens is malformed" in raw(act)


def test_a_silent_handshake_ends() -> None:
    async def act(socket: ClientConnection) -> str:
        message = m.decode(await socket.recv(decode=False)).message
        assert isinstance(message, m.Failure)
        return message.sentence

    assert raw(act, Limits(handshake_seconds=0.3)) == "the handshake took too long"


def test_a_silent_session_ends_and_the_connection_lives() -> None:
    async def test(device: Device, connection: Connection) -> None:
        session = await raw_session(connection)
        with pytest.raises(RemoteError, match=r"the device was silent for 0\.3 s, so its session is over"):
            await session.receive()
        assert (await device.generate(request(), connection)).tokens > 0

    linked(test, Limits(idle_seconds=0.3))


def test_devices_that_vanish_mid_round() -> None:
    async def run() -> None:
        async with toy_cloud(LIMITS) as url:
            for _ in range(5):
                async with toy_device(url) as (_, connection):
                    await raw_session(connection, method="cloud", max_tokens=500)
                    await raw_session(connection, method="dssd")
                    connection._transport._socket.transport.abort()
            await still_serves(url)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_stopping_cloud_says_goodbye() -> None:
    async def run() -> None:
        async with toy_cloud() as url:
            device_end = toy_device(url)
            _, connection = await device_end.__aenter__()
            session = await raw_session(connection)
        with pytest.raises(LinkError, match="the cloud left: the cloud is stopping"):
            await session.receive()
        await device_end.__aexit__(None, None, None)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_full_cloud_says_so_and_recovers() -> None:
    async def test(device: Device, connection: Connection) -> None:
        prompt = "x" * 1900
        held = [await raw_session(connection, prompt=prompt) for _ in range(2)]
        third = await raw_session(connection, prompt=prompt)
        with pytest.raises(RemoteError, match="the cloud is full at the moment: try again shortly"):
            await third.receive()
        for session in held:
            await session.cancel()
            await session.closed()
        assert (await device.generate(request(prompt=prompt), connection)).tokens > 0

    linked(test)

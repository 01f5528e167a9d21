"""A cloud at several addresses: an answer goes on at another one, and is the very answer of an unbroken link."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from websockets.utils import accept_key

from antiphon import Piece, Result
from antiphon.cloud.server import serving
from antiphon.cloud.service import Cloud
from antiphon.config import Request, SamplingParams, ServeConfig
from antiphon.device.generate import Device
from antiphon.errors import LinkError, ProtocolError
from antiphon.models.toy import ToyModel, named_toy
from antiphon.transport.alternates import Alternates
from antiphon.transport.frames import Transport, memory_pair

ENDLESS = SamplingParams(logit_bias=tuple((end, -1e3) for end in named_toy("toy-cloud").vocabulary.ends))
REQUEST = Request("the ", "coupled", sampling=ENDLESS, max_tokens=900, seed=5)
"""Long enough for a cloud to stop meanwhile."""


def toy_like(name: str) -> ToyModel:
    """The model of `named_toy("toy-cloud")`, called otherwise."""
    model = named_toy("toy-cloud")
    model.name = name
    return model


def written(models: list[ToyModel], stops_at: int) -> Result:
    """An answer of a device that knows all clouds by one name; the first one stops after so many pieces, for good."""

    async def run() -> Result:
        clouds = [Cloud(model) for model in models]
        try:
            async with serving(clouds[-1], ServeConfig(port=0)) as second:
                return await answered(clouds[0], second)
        finally:
            for cloud in clouds:
                cloud.close()

    async def answered(first: Cloud, second: str) -> Result:
        stopped, over = asyncio.Event(), asyncio.Event()
        listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def serve() -> None:
            async with serving(first, ServeConfig(port=0)) as address:
                listening.set_result(address)
                await stopped.wait()
            over.set()

        server = asyncio.create_task(serve())
        address = await listening
        seen: list[Piece] = []

        def show(pieces: object) -> None:
            seen.extend(pieces)  # type: ignore[call-overload]
            if len(seen) >= stops_at:
                stopped.set()

        async with Device(named_toy("toy-device"), cloud=f"{address},{second}") as device:
            result = await device.generate(REQUEST, show=show)
        stopped.set()
        await server
        return result

    return asyncio.run(run())


def test_the_answer_goes_on_at_the_next_address() -> None:
    whole = written([named_toy("toy-cloud"), named_toy("toy-cloud")], stops_at=10**6)
    assert whole.answer.resumed == 0
    moved = written([named_toy("toy-cloud"), named_toy("toy-cloud")], stops_at=5)
    assert moved.answer.resumed >= 1
    assert moved.token_ids == whole.token_ids
    assert moved.answer.text == whole.answer.text


def test_another_model_at_the_next_address_ends_the_answer() -> None:
    with pytest.raises(ProtocolError, match="the cloud serves other now, so the answer cannot go on: ask again"):
        written([named_toy("toy-cloud"), toy_like("other")], stops_at=5)


@pytest.mark.parametrize("method", ["coupled", "dsd"])
def test_an_answer_that_waited_for_room_is_not_written_with_another_cloud(method: str) -> None:
    """Its link was made anew meanwhile, for another answer: its tokens are those of before, and its text would be neither's."""
    letters = [bytes([letter]) for letter in b"abcdefgh"]
    first, second = ToyModel([*letters, b""], seed=1, name="first"), ToyModel([b"", *letters[::-1]], seed=2, name="second")

    async def run() -> None:
        clouds = [Cloud(first), Cloud(second)]
        async with AsyncExitStack() as stack:
            addresses = [await stack.enter_async_context(serving(cloud, ServeConfig(port=0))) for cloud in clouds]
            model = ToyModel([*letters, b""], seed=3)
            device = await stack.enter_async_context(Device(model, cloud=",".join(addresses)))
            (connection,) = await device.connect()
            asked = Request("abc", method, max_tokens=8, seed=5)
            async with device._cells.holding(model.context_length, model.context_length):
                waiting = asyncio.create_task(device.generate(asked))
                await asyncio.sleep(0.2)
                await connection.mend(connection.lose(LinkError("it is gone")))
            with pytest.raises(ProtocolError, match="the cloud serves second now"):
                await waiting
            assert (await device.generate(asked)).exact
        for cloud in clouds:
            cloud.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def dials(*answers: bool) -> tuple[list[Callable[[], Awaitable[Transport]]], list[int]]:
    """Addresses, of which some answer; and which were asked, in order."""
    asked: list[int] = []

    def made(place: int, answers: bool) -> Callable[[], Awaitable[Transport]]:
        async def dial() -> Transport:
            asked.append(place)
            if not answers:
                raise LinkError(f"nobody at {place}")
            return memory_pair()[0]

        return dial

    return [made(place, answer) for place, answer in enumerate(answers)], asked


def test_another_address_has_the_first_turn_after_a_loss() -> None:
    made, asked = dials(True, False, True)
    link = Alternates(made)
    for _ in range(3):
        asyncio.run(link())  # type: ignore[arg-type]
    assert asked == [0, 1, 2, 0]


def test_nobody_anywhere() -> None:
    made, asked = dials(False, False)
    with pytest.raises(LinkError, match="nobody at 0"):
        asyncio.run(Alternates(made)())  # type: ignore[arg-type]
    assert asked == [0, 1]


async def hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server that takes a connection, speaks WebSocket, and leaves."""
    asked = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    key = next(line for line in asked if line.startswith("Sec-WebSocket-Key")).partition(": ")[2]
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
    lines += [f"Sec-WebSocket-Accept: {accept_key(key)}", "", ""]
    writer.write("\r\n".join(lines).encode())
    await writer.drain()
    writer.close()


def test_an_address_that_answers_and_does_not_greet_is_passed_over() -> None:
    async def run() -> Result:
        cloud = Cloud(named_toy("toy-cloud"))
        try:
            server = await asyncio.start_server(hangs_up, "127.0.0.1", 0)
            wrong = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            served = serving(cloud, ServeConfig(port=0))
            async with server, served as right, Device(named_toy("toy-device"), cloud=f"{wrong},{right}") as device:
                return await device.generate("the ")
        finally:
            cloud.close()

    assert asyncio.run(run()).tokens > 0

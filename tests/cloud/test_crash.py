"""A fault of the cloud's own program ends the session that it shows in, with a word and a traceback; the others go on."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.device.session import DeviceSession
from antiphon.errors import RemoteError
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.base import CloudSide, DeviceSide, Method
from antiphon.methods.effects import Half, Receive, Send
from antiphon.methods.speculative.cloud_only import CLOUD, CloudOnlyCloud, CloudOnlyDevice
from antiphon.options import NoOptions
from antiphon.wire import messages as m
from support.links import linked, raw_session, request


def broken_at(place: str, fault: Callable[[], object]) -> type:
    """The cloud half of `cloud`, with a fault at one place of its life."""

    class Broken(CloudOnlyCloud):
        def __init__(self, side: CloudSide, options: NoOptions) -> None:
            super().__init__(side, options)
            if place == "made":
                fault()

        def run(self) -> Half:
            if place == "begun":
                fault()
            half, sent = super().run(), 0
            effect = next(half)
            while True:
                answer = yield effect
                sent += isinstance(effect, Send)
                if (place == "computing" and answer is not None) or (place == "sent" and sent == 3):
                    fault()
                if place == "receiving" and sent == 1:
                    yield Receive()
                    fault()
                effect = half.send(answer)

    return Broken


def attribute() -> object:
    return NoOptions().draft_length  # type: ignore[attr-defined]


def division() -> object:
    return 1 / 0


def key() -> object:
    return {}[1]


def memory() -> object:
    raise MemoryError


async def to_its_end(session: DeviceSession) -> None:
    """Read and drop. Raises what ends it."""
    while not isinstance(await session.receive(), m.Closed):
        pass


PLACES = ["made", "begun", "computing", "sent", "receiving"]
FAULTS: list[Callable[[], object]] = [attribute, division, key, memory]


@pytest.mark.core(4)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("place", PLACES)
def test_one_session_fails_and_the_others_go_on(place: str, fault: Any, caplog: pytest.LogCaptureFixture) -> None:
    methods = {**WITHOUT_DOCUMENTS, "broken": replace(CLOUD, name="broken", cloud=broken_at(place, fault))}

    async def test(device: Device, connection: Connection) -> None:
        beside = asyncio.create_task(device.generate(request("dssd", tokens=40), connection))
        waiting = await raw_session(connection, method="dssd")  # nothing is sent for it until the other one has failed
        failing = await raw_session(connection, method="broken", options={})
        for _ in range(20):  # more than it reads: they come before, while and after it fails
            await failing.send(m.Draft(0, 0, b""))
            await asyncio.sleep(0)
        with pytest.raises(RemoteError, match="the cloud failed: its log says why") as caught:
            await to_its_end(failing)
        assert caught.value.code == "fault"
        assert not failing.alive
        assert (await beside).tokens == 40 or (await beside).finish_reason == "end"
        await waiting.send(m.Draft(0, 0, b""))
        assert isinstance(await waiting.receive(), m.Verdict)
        assert (await device.generate(request("cloud"), connection)).tokens > 0

    linked(test, methods=methods)
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info is not None
    assert fault.__name__ in "".join(code.co_name for code in _codes(record.exc_info[2]))


def _codes(trace: Any) -> Any:
    while trace is not None:
        yield trace.tb_frame.f_code
        trace = trace.tb_next


def test_a_session_that_fails_frees_its_room() -> None:
    """Twenty on a connection that has room for eight, in a context that has room for few."""
    methods = {**WITHOUT_DOCUMENTS, "broken": replace(CLOUD, name="broken", cloud=broken_at("sent", division))}

    async def test(device: Device, connection: Connection) -> None:
        for _ in range(20):
            session = await raw_session(connection, method="broken", options={}, prompt="x" * 1900)
            with pytest.raises(RemoteError, match="its log says why"):
                await to_its_end(session)
        assert (await device.generate(request(prompt="x" * 1900), connection)).tokens > 0

    linked(test, methods=methods)


def test_cancelling_a_session_that_fails() -> None:
    """Whichever comes first, it is over, and the connection lives."""
    methods = {**WITHOUT_DOCUMENTS, "broken": replace(CLOUD, name="broken", cloud=broken_at("sent", division))}

    async def test(device: Device, connection: Connection) -> None:
        for turns in range(12):
            session = await raw_session(connection, method="broken", options={})
            for _ in range(turns):
                await asyncio.sleep(0)
            await session.cancel()
            while session.alive:
                await asyncio.sleep(0)
        assert (await device.generate(request("cloud"), connection)).tokens > 0

    linked(test, methods=methods)


@dataclass(frozen=True, slots=True)
class Loudness:
    """Options that know nothing of drafts."""

    loud: bool = True


class Plain(CloudOnlyDevice):
    def __init__(self, side: DeviceSide, options: Loudness) -> None:
        super().__init__(side, NoOptions())


class PlainCloud(CloudOnlyCloud):
    def __init__(self, side: CloudSide, options: Loudness) -> None:
        super().__init__(side, NoOptions())


def test_options_of_a_method_need_not_name_a_draft_length() -> None:
    """A method of one's own: it drafts nothing, as far as anybody can know, and is answered as any other."""
    methods = {**WITHOUT_DOCUMENTS, "plain": Method("plain", "", True, Plain, PlainCloud, drafts=False, options=Loudness)}

    async def test(device: Device, connection: Connection) -> None:
        asked = request("cloud")
        own = await device.generate(replace(asked, method="plain", options=Loudness()), connection)
        assert own.token_ids == (await device.generate(asked, connection)).token_ids

    linked(test, methods=methods)

"""Whenever a device goes, and however, what its answer took comes back; `tests/support/resources.py` looks after every test."""

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from antiphon.cloud.connection import CloudConnection
from antiphon.cloud.service import Cloud
from antiphon.config import Request
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.device.runner import opening
from antiphon.engine.worker import Worker
from antiphon.methods import ALL_METHODS, WITHOUT_DOCUMENTS
from antiphon.models.toy import named_toy
from antiphon.transport.frames import MemoryTransport, memory_pair
from antiphon.wire import messages as m
from support.links import raw_session, request
from support.resources import flush, require_forgotten, require_nothing_kept

Result = TypeVar("Result")
CALLS = range(1, 6)
"""Calls that an answer of two tokens makes in the model's thread: its prompt, its context, its passes, and the close."""


class Gate(Worker):
    """A model's thread that stands still before its `stop`th call, or within it, until it is let go."""

    def __init__(self, stop: int, *, within: bool) -> None:
        super().__init__()
        self.reached, self._open = asyncio.Event(), threading.Event()
        self._left, self._within = stop, within

    async def run(self, call: Callable[[], Result]) -> Result:
        return await super().run(self._gated(call))

    def post(self, call: Callable[[], object]) -> None:
        super().post(self._gated(call))

    def _gated(self, call: Callable[[], Result]) -> Callable[[], Result]:
        self._left -= 1
        if self._left:
            return call
        self.reached.set()
        if not self._within:
            super().post(self._open.wait)
            return call
        return lambda: (self._open.wait(), call())[1]

    def let_go(self) -> None:
        self._open.set()


async def depart(connection: Connection, cloud_end: MemoryTransport, session: int, how: str) -> None:
    if how == "cancel":
        await connection.send(m.Cancel(), session)
    elif how == "leave":
        await connection.close()
    else:
        await cloud_end.close()


@pytest.mark.parametrize("how", ["cancel", "leave", "cut"])
@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_a_device_that_goes_while_its_answer_waits_for_the_model(call: int, within: bool, how: str) -> None:
    async def run() -> None:
        worker = Gate(call, within=within)
        cloud = Cloud(named_toy("toy-cloud"), worker=worker)
        async with linked_to(cloud) as (connection, served, cloud_end):
            session = await raw_session(connection, method="cloud", options={}, max_tokens=2)
            await asyncio.wait_for(asyncio.shield(worker.reached.wait()), 5)
            await depart(connection, cloud_end, session.number, how)
            for _ in range(20):
                await asyncio.sleep(0)
            worker.let_go()
            while served._hosts:
                await asyncio.sleep(0)
            require_nothing_kept(cloud)
        cloud.close()

    asyncio.run(asyncio.wait_for(run(), 30))


class linked_to:  # noqa: N801 - it is used as a function
    """A device without a model, connected in memory to this cloud."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def __aenter__(self) -> tuple[Connection, CloudConnection, MemoryTransport]:
        device_end, cloud_end = memory_pair()
        served = CloudConnection(self._cloud, cloud_end)
        self._serving = asyncio.create_task(served.serve())

        async def dial() -> MemoryTransport:
            return device_end

        self._worker = Worker()
        self._connection = Connection(dial, None, self._worker, mend_seconds=0.0)
        await self._connection.establish()
        return self._connection, served, cloud_end

    async def __aexit__(self, *_: object) -> None:
        await self._connection.close()
        await self._serving
        self._worker.close()


def at_once(*messages: m.Message) -> Coroutine[Any, Any, None]:
    """Five sessions whose messages arrive together, before any of them has begun."""

    async def run() -> None:
        cloud = Cloud(named_toy("toy-cloud"))
        async with linked_to(cloud) as (connection, served, _):
            for number in range(1, 6):
                for message in messages:
                    connection._transport._outbox.put_nowait(connection.wire.send(message, number))
            for _ in range(5):
                await asyncio.sleep(0)
            while served._hosts:
                await asyncio.sleep(0.001)
            require_forgotten(served)
        cloud.close()

    return run()


@pytest.mark.parametrize("messages", [[m.Cancel()], [m.Progress(0), m.Cancel()], [m.Draft(0, 0, b""), m.Cancel()]])
def test_a_session_that_is_opened_and_cancelled_at_once_leaves_nothing(messages: list[m.Message]) -> None:
    asyncio.run(asyncio.wait_for(at_once(opening(Request("the ", "cloud"), 1), *messages), 30))


def test_a_cloud_that_is_torn_down_gives_back_what_its_answers_took() -> None:
    """The task that serves a connection is cancelled twice, as by a server that does not wait: every session ends."""

    async def run() -> None:
        cloud = Cloud(named_toy("toy-cloud"))
        device_end, cloud_end = memory_pair()
        served = CloudConnection(cloud, cloud_end)
        serving = asyncio.create_task(served.serve())

        async def dial() -> MemoryTransport:
            return device_end

        worker = Worker()
        connection = Connection(dial, None, worker, mend_seconds=0.0)
        await connection.establish()
        for _ in range(4):
            await raw_session(connection, method="coupled", options={})  # waits for drafts that never come
        while len(cloud._answering) < 4:
            await asyncio.sleep(0)
        serving.cancel()
        await asyncio.sleep(0)
        serving.cancel()
        await asyncio.wait([serving])
        for _ in range(20):
            await asyncio.sleep(0)
        require_forgotten(served)
        require_nothing_kept(cloud)
        await connection.close()
        worker.close()
        cloud.close()

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_device_that_is_interrupted_gives_its_own_context_back() -> None:
    """Whatever the device was at: cancelled after every one of its first turns of the loop."""

    async def run() -> None:
        cloud, device = Cloud(named_toy("toy-cloud"), methods=ALL_METHODS), Device(named_toy("toy-device"))
        device_end, cloud_end = memory_pair()
        serving = asyncio.create_task(CloudConnection(cloud, cloud_end).serve())

        async def dial() -> MemoryTransport:
            return device_end

        connection = Connection(dial, device.model, device.worker, mend_seconds=0.0)
        await connection.establish()
        chance = random.Random(5)
        for _ in range(60):
            answer = asyncio.create_task(device.generate(request(chance.choice([*WITHOUT_DOCUMENTS]), tokens=6), connection))
            await asyncio.sleep(chance.uniform(0.0, 0.01))
            answer.cancel()
            await asyncio.wait([answer])
        flush(device.worker)
        assert device.model is not None
        assert device.model.in_use.contexts == 0
        await connection.close()
        await serving
        device.close()
        cloud.close()

    asyncio.run(asyncio.wait_for(run(), 60))

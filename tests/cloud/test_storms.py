"""After any storm a cloud holds what it held before, over real sockets (`tests/cloud/storms.py`)."""

import asyncio

import pytest

from antiphon.config import Timeouts
from antiphon.models.base import InUse, Model
from antiphon.models.toy import named_toy
from cloud.storms import Held, at_sea, departures, frame, greeted, opening, storm


def require_same(before: Held, after: Held) -> None:
    assert after.same_room(before), (before, after)
    assert after.in_use == InUse()
    assert after.mebibytes < before.mebibytes + 48


@pytest.mark.slow
def test_connections_that_are_cut_at_random_places() -> None:
    before, after, told = asyncio.run(asyncio.wait_for(storm(named_toy("toy-cloud"), 5.0, 32), 120))
    require_same(before, after)
    assert told["connections"] > 50


def leaving(model: Model, count: int) -> None:
    async def run() -> None:
        size = len(model.vocabulary)
        async with at_sea(model) as (url, held):
            await departures(url, size, 3)
            before = await held()
            told = await departures(url, size, count)
            assert told == {"left": count}
            require_same(before, await held())

    asyncio.run(asyncio.wait_for(run(), 900))


@pytest.mark.medium
def test_devices_that_leave_at_their_last_token_beside_busy_ones() -> None:
    leaving(named_toy("toy-cloud"), 40)


@pytest.mark.model
@pytest.mark.slow
def test_devices_that_leave_a_real_model_at_their_last_token(smollm2: Model) -> None:
    leaving(smollm2, 100)


def test_devices_that_never_read() -> None:
    async def run() -> None:
        model = named_toy("toy-cloud")
        size = len(model.vocabulary)
        async with at_sea(model, Timeouts(lost=0.9, close=0.3)) as (url, held):
            before = await held()
            deaf = []
            for _ in range(8):
                socket = await greeted(url, size)
                await socket.send(frame(1, opening("cloud", 2000)))
                socket.transport.pause_reading()
                deaf.append(socket)
            await asyncio.sleep(2.0)
            for socket in deaf:
                socket.transport.abort()
            await asyncio.sleep(0.1)
            require_same(before, await held())

    asyncio.run(asyncio.wait_for(run(), 120))

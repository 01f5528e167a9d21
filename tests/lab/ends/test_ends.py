"""Two ends in virtual time over an emulated link: the answers are those of real time, the times those of the profile."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from antiphon.core.stream import LOCKSTEP
from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.models.toy import named_toy
from antiphon_lab.ends.virtual import virtual_ends
from antiphon_lab.hardware.profiles import Compute, PassCost
from antiphon_lab.links.link import Direction, Link
from antiphon_lab.links.virtual_time import run_virtual
from support.links import linked, request

Found = TypeVar("Found")

CLOUD, DEVICE = named_toy("toy-cloud"), named_toy("toy-device")
COMPUTE = Compute("test", PassCost(4.0), PassCost(33.0, 1.0), "made up")


def link(delay: float = 0.025, *, jitter: float = 0.0, loss: float = 0.0, handshakes: int = 0) -> Link:
    """Gigabits, so that only delays count."""
    way = Direction(1e9, delay, jitter, loss)
    return Link("test", way, way, "made up", handshakes)


def between(
    test: Callable[[Device, Connection], Awaitable[Found]], over: Link | None = None, compute: Compute = COMPUTE
) -> Found:
    async def run() -> Found:
        async with virtual_ends(CLOUD, DEVICE, over or link(), compute) as (device, connection):
            return await test(device, connection)

    return run_virtual(run())


@pytest.mark.core(4)
@pytest.mark.parametrize("method", ["cloud", "coupled", "coupled-tree", "dsd", "dssd", "xcosd-e", "u-hlm"])
def test_the_tokens_are_those_of_real_time(method: str) -> None:
    """A fixed length: an automatic one goes by the clock."""
    asked = request(method, tokens=30, seed=3)

    async def test(device: Device, connection: Connection) -> Result:
        return await device.generate(asked, connection)

    virtual, real = between(test, link(jitter=0.01)), linked(test)
    assert virtual.token_ids == real.token_ids
    assert virtual.answer.text == real.answer.text
    if not method.startswith("coupled"):  # which frames cross hangs on when drafts are made
        assert virtual.traffic == real.traffic


def test_a_streamed_answer_takes_one_trip_and_its_passes() -> None:
    async def test(device: Device, connection: Connection) -> Result:
        return await device.generate(request("cloud", tokens=20, prompt="the other one"), connection)

    result = between(test)
    prompt = (result.prompt_tokens or 0) - 1
    reading = 0.033 + 0.001 * (prompt - 1)
    assert result.answer.first_token_s == pytest.approx(0.05 + reading + 0.033, abs=1e-4)
    assert result.answer.seconds == pytest.approx(result.answer.first_token_s + 0.033 * (result.tokens - 1), abs=1e-3)
    assert result.compute_ms == pytest.approx(1000 * (reading + 0.033 * result.tokens))


@pytest.mark.parametrize("draft_length", [1, 4])
def test_a_round_in_lockstep_takes_its_drafts_a_trip_and_a_pass(draft_length: int) -> None:
    async def test(device: Device, connection: Connection) -> Result:
        return await device.generate(request("dsd", tokens=40, draft_length=draft_length), connection)

    result = between(test)
    passes = 0.004 * result.answer.exchanged.drafted + 0.033 * result.answer.rounds
    wide = 0.001 * result.answer.exchanged.drafted
    reading = 0.033 + 0.004 + 0.01
    assert result.answer.seconds == pytest.approx(0.05 * result.answer.rounds + passes + wide, abs=2 * reading)


def test_drafting_ahead_is_faster_than_waiting() -> None:
    async def test(device: Device, connection: Connection) -> list[Result]:
        asked = request("coupled", tokens=60, seed=5)
        return [
            await device.generate(replace(asked, options=CoupledOptions(3, ahead, LOCKSTEP)), connection) for ahead in (0, 6)
        ]

    waiting, going_on = between(test)
    assert waiting.token_ids == going_on.token_ids
    assert going_on.answer.seconds < waiting.answer.seconds


def test_dialling_takes_the_handshakes_of_the_link() -> None:
    async def test(device: Device, connection: Connection) -> float:
        return asyncio.get_running_loop().time()

    plain, with_handshakes = between(test), between(test, link(handshakes=3))
    assert plain > 0.05, "Hello and Welcome"
    assert with_handshakes == pytest.approx(plain + 3 * 0.05)


def times(over: Link) -> list[float]:
    """When the tokens of some answers come."""

    async def test(device: Device, connection: Connection) -> list[float]:
        seen: list[float] = []
        for name in ("coupled", "xcosd-e", "cloud"):
            options = WITHOUT_DOCUMENTS[name].options()
            asked = replace(request(name, tokens=20), options=options)
            await device.generate(asked, connection, lambda pieces: seen.append(asyncio.get_running_loop().time()))
        return seen

    return between(test, over)


def test_two_runs_have_one_timeline() -> None:
    lossy = link(jitter=0.01, loss=0.05)
    first = times(lossy)
    assert len(first) > 20
    assert first == sorted(first)
    assert times(lossy) == first != times(link())


def test_a_lost_link_is_made_anew_within_virtual_time() -> None:
    asked = request("coupled", tokens=40)

    async def test(device: Device, connection: Connection) -> tuple[Result, float]:
        async def lose() -> None:
            await asyncio.sleep(0.4)
            await connection._transport.close()

        losing = asyncio.create_task(lose())
        result = await device.generate(asked, connection)
        await losing
        return result, asyncio.get_running_loop().time()

    async def undisturbed(device: Device, connection: Connection) -> Result:
        return await device.generate(asked, connection)

    (result, ended), whole = between(test, link(handshakes=3)), between(undisturbed)
    assert result.answer.resumed == 1
    assert result.token_ids == whole.token_ids
    assert ended < 30.0


def test_the_models_stay_open() -> None:
    async def test(device: Device, connection: Connection) -> int:
        return (await device.generate(request("dsd", tokens=5), connection)).tokens

    assert between(test) == between(test) > 0

"""Clouds and links that fall silent instead of ending."""

import asyncio

import pytest

from antiphon.config import Limits
from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import AntiphonError, LinkError
from device.resume.cuts import TOYS, asked, assert_same, written
from support.broken_links import End, Network, broken


def test_a_cloud_that_is_silent_when_it_comes_back_is_given_up() -> None:
    """Somebody takes the call and never greets."""

    async def test(device: Device, connection: Connection, network: Network) -> float:
        async def dial() -> End:
            network.dials += 1
            ends = End(network), End(network)
            ends[0].other, ends[1].other = ends[1], ends[0]
            return ends[0]

        network.arm((9, "before"))
        connection._dial = dial
        with pytest.raises(LinkError, match="did not come back within 30 s"):
            await device.generate(asked("coupled", tokens=40), connection)
        return asyncio.get_running_loop().time() - network.cut_at

    assert broken(test) < 35.0


def test_a_cloud_that_never_greets_is_given_up_the_first_time_too() -> None:
    """docs/protocol.md: each end counts the seconds of a handshake by its own clock."""

    async def test(device: Device, connection: Connection, network: Network) -> float:
        async def dial() -> End:
            ends = End(network), End(network)
            ends[0].other, ends[1].other = ends[1], ends[0]
            return ends[0]

        with pytest.raises(AntiphonError):
            await Connection(dial, device.model, device.worker).establish()
        return asyncio.get_running_loop().time()

    assert broken(test) <= Limits().handshake_seconds + 1.0


def test_a_cloud_that_has_not_noticed_the_loss_has_room_soon() -> None:
    """It keeps the lost session's cells until it finds out; two such prompts do not fit."""
    what = asked("dssd", prompt="x" * 2100, tokens=20)
    whole, _ = written(what)

    async def test(device: Device, connection: Connection, network: Network) -> Result:
        loop = asyncio.get_running_loop()
        ours, theirs = network.newest
        loop.call_later(0.4, ours.cut_off)
        loop.call_later(5.0, theirs.down)
        try:
            return await device.generate(what, connection)
        finally:
            theirs.down()

    assert_same(broken(test, models=lambda: TOYS), whole)


def test_room_is_waited_for_anew_after_each_loss() -> None:
    """Twice for 20 s: together more than what one wait may take, but between them the answer went on."""
    what = asked("dssd", prompt="x" * 2100, tokens=80)
    whole, _ = written(what)

    async def losing(network: Network) -> None:
        for writing in (3.0, 4.0):  # reading the prompt takes 2.3 s
            await asyncio.sleep(writing)
            ours, theirs = network.newest
            ours.cut_off()
            await asyncio.sleep(20.0)
            theirs.down()

    async def test(device: Device, connection: Connection, network: Network) -> tuple[Result, float]:
        task = asyncio.create_task(losing(network))
        result = await device.generate(what, connection)
        seconds = asyncio.get_running_loop().time()
        await task
        return result, seconds

    result, seconds = broken(test, models=lambda: TOYS)
    assert_same(result, whole)
    assert result.answer.resumed == 2
    assert seconds > 40.0


def test_a_link_that_takes_nothing_any_more_but_says_nothing_either() -> None:
    """Sending fails before receiving does, as when a task that sends runs before the one that reads."""
    what = asked("dssd", tokens=20)
    whole, _ = written(what)

    async def test(device: Device, connection: Connection, network: Network) -> tuple[Result, int]:
        asyncio.get_running_loop().call_later(0.3, setattr, network.newest[0], "mute", True)
        return await device.generate(what, connection), network.dials

    result, dials = broken(test)
    assert_same(result, whole)
    assert (result.answer.resumed, dials) == (1, 2)


def test_a_link_that_is_lost_between_answers_is_made_anew_for_the_next() -> None:
    what = asked("coupled", tokens=20)
    whole, _ = written(what)

    async def test(device: Device, connection: Connection, network: Network) -> tuple[Result, float]:
        network.cut()
        await asyncio.sleep(100.0)
        result = await device.generate(what, connection)
        return result, await connection.ping()

    result, trip = broken(test)
    assert result.token_ids == whole.token_ids
    assert trip == pytest.approx(0.04), "of the new link, and nothing is left of the old one's end"

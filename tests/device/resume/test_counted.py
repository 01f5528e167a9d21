"""Traffic and time of answers that went on, alone and two at once."""

import asyncio
from collections.abc import Sequence

import pytest

from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import LinkError
from antiphon.wire.session import Traffic, TrafficCounter
from device.resume.cuts import OTHERS, TOYS, another, asked, assert_same, frames, gone, refused, written
from support.broken_links import Cut, Network, boundaries, broken


def counted(network: Network) -> tuple[int, int]:
    """Frames and bytes of sessions that the device sent and read, over all links."""
    seen = [(envelope, size) for envelope, size in network.device_frames if envelope.session]
    return len(seen), sum(size for _, size in seen)


def total(traffic: TrafficCounter) -> tuple[int, int]:
    """Frames and bytes of a traffic, without the headers of a WebSocket: 2 bytes, and 4 more from the device."""
    parts: Sequence[Traffic] = (traffic.up, traffic.down, traffic.setup)
    return sum(part.frames for part in parts), sum(part.bits for part in parts) // 8


@pytest.mark.core(2)
@pytest.mark.parametrize("name", ["cloud", "coupled", "dssd", "xcosd-e", "u-hlm"])
def test_the_traffic_is_the_sum_of_all_sessions(name: str) -> None:
    _, network = written(asked(name))
    for cut in boundaries(frames(network))[::3]:
        result, network = written(asked(name), cut)
        number, size = counted(network)
        found, whole = total(result.traffic)
        assert found == number
        assert size + 2 * number <= whole <= size + 10 * number


@pytest.mark.parametrize("name", ["cloud", "coupled", "dssd"])
def test_what_the_cloud_did_is_not_known_where_a_session_was_lost(name: str) -> None:
    """A lost session never tells; the last one's figures are not the answer's."""
    whole, network = written(asked(name))
    figures = ("cloud_passes_per_token", "cloud_ms_per_token", "rounding_tv")
    assert all(whole.as_json()[figure] is not None for figure in figures)
    middle, end = frames(network) // 2, frames(network)
    for cut in ((middle, "before"), (end, "before")):
        row = written(asked(name), cut)[0].as_json()
        assert [row[figure] for figure in figures] == [None, None, None]


PAIRS = [("dssd", "coupled"), ("cloud", "xcosd-e"), ("coupled", "coupled-tree")]


@pytest.mark.medium
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_two_answers_at_once_on_a_link_that_is_cut(names: tuple[str, str], step: int) -> None:
    """Both go on over one new link, and each keeps its own figures, whatever each was doing when the link went."""
    each = [asked(name, tokens=10, seed=seed) for seed, name in enumerate(names)]

    async def both(device: Device, connection: Connection, network: Network, *cuts: Cut) -> tuple[list[Result], Network]:
        network.arm(*cuts)
        return await asyncio.gather(*(device.generate(one, connection) for one in each)), network

    whole, network = broken(both, models=lambda: TOYS)
    for cut in boundaries(frames(network))[::step]:
        results, after = broken(lambda *ends, cut=cut: both(*ends, cut), models=lambda: TOYS)
        for result, undisturbed in zip(results, whole, strict=True):
            assert_same(result, undisturbed)
        assert after.dials <= 2
        assert sum(total(result.traffic)[0] for result in results) == counted(after)[0]


def test_two_answers_at_once_and_a_cloud_that_does_not_come_back() -> None:
    ends = refused(asked("dssd", tokens=40), asked("coupled", tokens=40), prepare=gone)
    for error, seconds in ends:
        assert isinstance(error, LinkError)
        assert seconds <= 30.1


def test_two_answers_at_once_and_another_model() -> None:
    ends = refused(asked("dssd", tokens=40), asked("coupled", tokens=40), prepare=another(OTHERS["another name"]))
    assert {str(error) for error, _ in ends} == {"the cloud serves other now, so the answer cannot go on: ask again"}

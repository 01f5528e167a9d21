"""TCP's slow start: the window by hand, and what holds for every schedule."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_lab.links.link import Channel, Direction
from antiphon_lab.links.notation import parse_link
from antiphon_lab.links.slow_start import SlowStart
from antiphon_lab.links.traces import ConstantPipe, Pipe, Trace, TracePipe

SEGMENT = 1000
TRIP = 0.1
TIMEOUT = 0.3


def started(pipe: Pipe | None = None, window: int = 10) -> SlowStart:
    """Ten segments at first; 1 ms a segment unless another pipe is given."""
    return SlowStart(pipe or ConstantPipe(8e6), window * SEGMENT, SEGMENT, TRIP, TIMEOUT)


def test_a_window_doubles_each_round_trip() -> None:
    """10, 20 and 40 segments, each window as soon as two segments of the one before it are acknowledged."""
    pipe = started()
    assert pipe.push(10 * SEGMENT, 0.0) == pytest.approx(0.010)
    assert pipe.push(20 * SEGMENT, 0.0) == pytest.approx(0.002 + TRIP + 0.020)
    assert pipe.push(40 * SEGMENT, 0.0) == pytest.approx(0.004 + 2 * TRIP + 0.040)


def test_dense_scores_take_round_trips_at_first_and_none_later() -> None:
    """524 KB, as all scores of a step of a large vocabulary: 5 more round trips; then 1 Gbit/s is filled."""
    channel = Channel(parse_link("rtt=50ms,down=1Gbit,window=10").down, 1, opens=0.0, round_trip=0.05)
    size, alone = 524_288, 0.025 + 8 * 543_244 / 1e9
    arrivals = [channel.arrival(size, 0.0) for _ in range(40)]
    assert arrivals[0] - alone == pytest.approx(5 * 0.05, rel=0.05)
    gaps = [after - before for before, after in pairwise(arrivals)]
    assert gaps[-10:] == pytest.approx([8 * 543_244 / 1e9] * 10, rel=1e-3)


def test_a_thin_flow_keeps_its_first_window() -> None:
    """What never fills the window does not open it: after a thousand small frames a burst still waits."""
    pipe = started()
    for number in range(1000):
        pipe.push(SEGMENT, 0.01 * number)
    assert pipe.push(60 * SEGMENT, 10.0) > 10.0 + TRIP


def test_after_a_timeout_without_a_byte_it_begins_again() -> None:
    for idle, waits in ((0.9 * TIMEOUT, False), (1.1 * TIMEOUT, True)):
        pipe = started()
        last = pipe.push(70 * SEGMENT, 0.0)
        again = last + idle
        assert (pipe.push(70 * SEGMENT, again) - again > 0.070 + TRIP) == waits, idle


SCHEDULES = st.lists(st.tuples(st.floats(0, 0.5), st.integers(1, 300_000)), min_size=1, max_size=20)
PIPES = st.sampled_from([lambda: ConstantPipe(8e6), lambda: ConstantPipe(1e9), lambda: TracePipe(Trace((1, 3, 3, 10)))])


@given(st.integers(1, 40), SCHEDULES, PIPES)
def test_it_only_delays_and_keeps_to_its_window(window, schedule, make) -> None:
    """Never earlier than the pipe alone or the push before; and in no round trip more leaves than all acknowledged so far."""
    pipe, alone, now, before, sent = started(make(), window), make(), 0.0, 0.0, 0
    for gap, size in schedule:
        now += gap
        left = pipe.push(size, now)
        assert left >= max(alone.push(size, now), before) - 1e-9
        sent, before = sent + size, left
        rounds = int(left / TRIP) + 1
        assert sent <= window * SEGMENT * (2**rounds - 1)
        assert pipe.down_to(0, now) == max(now, left)
        assert now <= pipe.down_to(size // 2, now) <= max(now, left)


@given(SCHEDULES)
def test_a_window_that_is_wide_enough_is_none(schedule) -> None:
    wide, alone, now = started(window=10**6), ConstantPipe(8e6), 0.0
    for gap, size in schedule:
        now += gap
        assert wide.push(size, now) == pytest.approx(alone.push(size, now), abs=1e-9)
        for waiting in (0, size // 3, 2 * size):
            assert wide.down_to(waiting, now) == pytest.approx(alone.down_to(waiting, now), abs=1e-9)


def test_a_sender_waits_for_what_the_window_holds_back() -> None:
    direction = Direction(8e6, 0.05, mss=SEGMENT, overhead=0, queue=0, window=10)
    channel = Channel(direction, 1)
    assert channel.arrival(30 * SEGMENT, 0.0) == pytest.approx(0.05 + 0.002 + TRIP + 0.020)
    assert channel.accepted(0.0) == pytest.approx(0.002 + TRIP + 0.020)

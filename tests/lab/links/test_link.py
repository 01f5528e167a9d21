"""The model of a link against what it must be: order, the bounds of physics, exact times where nothing is random."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from antiphon.errors import UsageError
from antiphon_lab.links.link import MOST_LOSSES, Channel, Direction, Link
from antiphon_lab.links.traces import PACKET_BYTES, Trace

anything = settings(deadline=None)  # a time says nothing on a busy machine

NEAR = 1e-6
"""Seconds of rounding allowed in times of up to some thousand seconds."""


def seconds(most: float) -> st.SearchStrategy[float]:
    return st.floats(0, most, allow_nan=False)


@st.composite
def outages(draw: st.DrawFn) -> tuple[tuple[tuple[float, float], ...], float]:
    """Some outages, and their period (0: once)."""
    edges, time = [], 0.0
    for _ in range(2 * draw(st.integers(0, 3))):
        time += draw(st.floats(0.01, 2))
        edges.append(time)
    period = draw(st.sampled_from([0.0, time + 0.5, time + 7.0])) if edges else 0.0
    return tuple(zip(edges[::2], edges[1::2], strict=True)), period


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    times = sorted(draw(st.lists(st.integers(0, 200), min_size=1, max_size=30)))
    return Trace((*times, times[-1] + draw(st.integers(1, 20))))


@st.composite
def directions(draw: st.DrawFn, *, traced: bool = True, plain: bool = False) -> Direction:
    """Any direction; a plain one has no chance and no outages."""
    constant = st.floats(1e4, 1e9)
    rate = draw(st.one_of(constant, traces()) if traced else constant)
    sizes = {"mss": draw(st.integers(500, 9000)), "overhead": draw(st.integers(0, 100)), "queue": draw(st.integers(0, 10**6))}
    delay = draw(seconds(1))
    if plain:
        return Direction(rate, delay, **sizes)
    times, period = draw(outages())
    floor, jitter, loss = draw(seconds(1)), draw(st.sampled_from([0.0, 0.01, 0.2])), draw(st.sampled_from([0.0, 0.01, 0.3]))
    return Direction(rate, delay, jitter, loss, floor, times, period, **sizes)


SCHEDULES = st.lists(st.tuples(st.sampled_from([0.0, 0.0, 1e-4, 0.01, 0.3, 2.0, 9.0]), st.integers(0, 60_000)), max_size=20)
"""Frames: seconds since the one before, and bytes."""

Schedule = list[tuple[float, int]]


def timed(schedule: Schedule, start: float = 0.0) -> list[tuple[float, int]]:
    """(time, bytes) of each frame."""
    times, now = [], start
    for gap, size in schedule:
        now += gap
        times.append((now, size))
    return times


def arrivals(direction: Direction, schedule: Schedule, seed: int = 1, start: float = 0.0) -> list[float]:
    channel = Channel(direction, seed, start=start)
    return [channel.arrival(size, now) for now, size in timed(schedule, start)]


@anything
@given(directions(), SCHEDULES, st.integers(0, 2**64 - 1))
def test_order_is_kept_and_the_seed_decides_all(direction: Direction, schedule: Schedule, seed: int) -> None:
    found = arrivals(direction, schedule, seed)
    assert found == sorted(found)
    assert found == arrivals(direction, schedule, seed)


@anything
@given(directions(traced=False), SCHEDULES, st.sampled_from([0.0, 123_456.7]))
def test_nothing_is_faster_than_the_delay_and_the_rate(direction: Direction, schedule: Schedule, start: float) -> None:
    sent = 0
    for (now, size), arrived in zip(timed(schedule, start), arrivals(direction, schedule, start=start), strict=True):
        assert arrived >= now + direction.delay + 8 * direction.wire_bytes(size) / direction.rate - NEAR
        sent += size
        assert 8 * sent <= direction.rate * (arrived - start - direction.delay + NEAR)  # goodput from the beginning on


@anything
@given(directions(traced=False, plain=True), SCHEDULES)
def test_the_link_is_never_idle_while_something_waits(direction: Direction, schedule: Schedule) -> None:
    left = 0.0
    for (now, size), arrived in zip(timed(schedule), arrivals(direction, schedule), strict=True):
        left = max(left, now) + 8 * direction.wire_bytes(size) / direction.rate
        assert arrived == pytest.approx(left + direction.delay, abs=NEAR)


@anything
@given(directions(traced=False), SCHEDULES)
def test_chance_makes_nothing_earlier(direction: Direction, schedule: Schedule) -> None:
    """Chance only adds: jitter and losses make no frame earlier, and no byte of it is counted twice."""
    direction = replace(direction, outages=(), outage_period=0.0)
    channel, sure = Channel(direction, 1), Channel(replace(direction, jitter=0.0, loss=0.0), 1)
    for now, size in timed(schedule):
        assert channel.arrival(size, now) >= sure.arrival(size, now) - NEAR
    assert channel.wire_bytes >= sure.wire_bytes
    assert channel.payload_bytes == sure.payload_bytes == sum(size for _, size in schedule)
    assert channel.frames == len(schedule)


def packet_by_packet(trace: Trace, frames: list[tuple[float, int]]) -> list[float]:
    """When each frame has left, by going through every packet that the trace lets go."""

    def at(number: int) -> float:
        rounds, within = divmod(number, len(trace.milliseconds))
        return (rounds * trace.milliseconds[-1] + trace.milliseconds[within]) / 1000

    packet, room, left, times = 0, PACKET_BYTES, 0.0, []
    for now, size in frames:
        left, waiting = max(left, now), size
        while waiting > 0:
            if room == 0 or at(packet) < now - 1e-9:
                packet, room = packet + 1, PACKET_BYTES
                continue
            taken = min(room, waiting)
            room, waiting, left = room - taken, waiting - taken, max(now, at(packet))
        times.append(left)
    return times


@anything
@given(traces(), st.integers(1, 9000), st.integers(0, 100), SCHEDULES)
def test_a_trace_lets_packets_go_one_by_one(trace: Trace, mss: int, overhead: int, schedule: Schedule) -> None:
    schedule = [(min(gap, 0.05), size) for gap, size in schedule]
    direction = Direction(trace, 0.125, mss=mss, overhead=overhead)
    expected = packet_by_packet(trace, [(now, direction.wire_bytes(size)) for now, size in timed(schedule)])
    assert arrivals(direction, schedule) == pytest.approx([left + 0.125 for left in expected], abs=NEAR)


def uptime(direction: Direction, time: float) -> float:
    """Seconds outside outages up to `time`, by walking through them."""
    down, base = 0.0, 0.0
    while base <= time and direction.outages:
        down += sum(max(0.0, min(time, base + until) - (base + since)) for since, until in direction.outages)
        if direction.outage_period == 0:
            break
        base += direction.outage_period
    return time - down


@anything
@given(directions(), SCHEDULES)
def test_nothing_moves_in_an_outage_and_all_goes_on_afterwards(direction: Direction, schedule: Schedule) -> None:
    calm = Channel(replace(direction, outages=(), outage_period=0.0), 1)
    frames = timed(schedule)
    for (now, size), arrived in zip(frames, arrivals(direction, schedule), strict=True):
        base = direction.outage_period * (arrived // direction.outage_period) if direction.outage_period else 0.0
        assert not any(base + since + NEAR < arrived < base + until - NEAR for since, until in direction.outages)
        assert uptime(direction, arrived) == pytest.approx(calm.arrival(size, uptime(direction, now)), abs=NEAR)


def test_an_outage_by_hand() -> None:
    channel = Channel(Direction(8000.0, 0.5, overhead=0, outages=((1.0, 3.0),)), 1, start=100.0)
    assert channel.arrival(100, 100.0) == pytest.approx(100.6)
    assert channel.arrival(100, 100.6) == pytest.approx(103.2)  # on its way when it begins: the rest of its way waits
    assert channel.arrival(100, 102.0) == pytest.approx(103.6)  # handed over during it
    assert channel.arrival(100, 110.0) == pytest.approx(110.6)
    exact = Channel(Direction(8192.0, 0.5, overhead=0, outages=((1.0, 3.0),), outage_period=4.0), 1)
    assert exact.arrival(128, 0.25) == 0.875
    assert exact.arrival(128, 0.375) == 3.0  # would arrive as the outage begins: it is over when that ends
    assert exact.arrival(128, 4.375) == 7.0


@anything
@given(directions(traced=False, plain=True), SCHEDULES)
def test_a_sender_waits_until_the_queue_has_room(direction: Direction, schedule: Schedule) -> None:
    channel = Channel(direction, 1)
    for now, size in timed(schedule):
        left = channel.arrival(size, now) - direction.delay
        accepted = channel.accepted(now)
        waiting = (left - accepted) * direction.rate / 8
        assert now <= accepted
        assert waiting <= direction.queue + 1 + NEAR * direction.rate
        assert accepted == now or waiting == pytest.approx(direction.queue, abs=1 + NEAR * direction.rate)


def test_an_empty_queue_accepts_even_during_an_outage() -> None:
    channel = Channel(Direction(1e6, outages=((1.0, 3.0),), queue=100), 1)
    assert channel.accepted(2.0) == 2.0
    channel.arrival(1000, 2.0)
    assert channel.accepted(2.0) > 3.0


def test_jitter_is_exponential() -> None:
    channel = Channel(Direction(1e9, 0.02, jitter=0.005, overhead=0), 7)
    extra = [channel.arrival(0, float(second)) - second - 0.02 for second in range(4000)]
    assert stats.kstest(extra, stats.expon(scale=0.005).cdf).pvalue > 0.01


def test_a_lost_lone_segment_comes_after_timeouts_that_double() -> None:
    channel = Channel(Direction(1e9, 0.05, loss=0.5, overhead=0), 3)
    late = [channel.arrival(100, 100.0 * number) - 100 * number - 0.05 for number in range(4000)]
    counts = [0] * (MOST_LOSSES + 1)
    for seconds_late in late:
        times = round(math.log2(seconds_late / 0.2 + 1))
        assert seconds_late == pytest.approx(0.2 * (2**times - 1), abs=1e-3)
        counts[times] += 1
    expected = [4000 * 0.5 ** (times + 1) for times in range(MOST_LOSSES)]
    assert stats.chisquare(counts, [*expected, 4000 - sum(expected)]).pvalue > 0.01
    assert channel.lost_segments == sum(counts[1:])


def test_the_timeout_is_two_round_trips_if_that_is_more() -> None:
    channel = Channel(Direction(1e9, 0.3, loss=0.5), 3, round_trip=0.6)
    late = {round(channel.arrival(1, 1000.0 * number) - 1000 * number - 0.3, 3) for number in range(50)}
    assert late >= {0.0, 1.2, 3.6}
    assert not any(0 < seconds_late < 1.2 for seconds_late in late)


def lateness(direction: Direction, size: int, frames: int = 1000) -> list[float]:
    """How much later than without losses each of some lone frames comes, with a round trip of 0.1 s."""
    channel, sure = Channel(direction, 5, round_trip=0.1), Channel(replace(direction, loss=0.0), 5)
    times = [100.0 * number for number in range(frames)]
    return [round(channel.arrival(size, now) - sure.arrival(size, now), 4) for now in times]


def test_with_three_segments_behind_it_a_lost_one_costs_one_round_trip() -> None:
    direction = Direction(1e12, 0.05, loss=0.2, mss=1000)
    assert {0.0, 0.1, 0.2} <= set(lateness(direction, 4000))
    assert 0.1 not in lateness(direction, 3000)
    share = lateness(replace(direction, loss=0.02), 12_000).count(0.1) / 1000
    assert 0.12 < share < 0.19  # 1 - .98^9 = .166, less the .06 of them with a timeout too


def test_what_is_mended_before_the_rest_has_left_costs_only_its_bytes() -> None:
    direction = Direction(48_000.0, 0.05, loss=0.02, mss=1000, overhead=0)  # 2 s for 12 segments
    late = lateness(direction, 12_000)
    again = round(8 * 1000 / direction.rate, 4)
    assert late.count(0.0) / 1000 == pytest.approx(0.98**12, abs=0.05)
    assert late.count(again) / 1000 == pytest.approx(11 * 0.02 * 0.98**11, abs=0.04)
    assert 0 < late.count(0.2) < 40  # the last one was lost: its timeout takes longer than its bytes


@anything
@given(directions(), SCHEDULES)
def test_a_handshake_comes_before_the_first_frame(direction: Direction, schedule: Schedule) -> None:
    link = Link("any", direction, direction, "here", handshakes=2)
    plain = replace(direction, outages=(), outage_period=0.0)
    up, down = replace(link, up=plain, down=plain).channels(1, start=50.0)
    opens = 50 + 2 * link.round_trip()
    for now, size in timed(schedule, 50.0):
        assert min(up.arrival(size, now), down.arrival(size, now)) >= opens + direction.delay


def test_who_dials_later_shakes_hands_later() -> None:
    way = Direction(1e6, 0.05, overhead=0, outages=((10.0, 20.0),))
    up, _ = Link("any", way, way, "here", handshakes=3).channels(1, start=100.0, dialled=109.0)
    assert up.arrival(0, 109.0) == pytest.approx(109.35)
    assert up.arrival(0, 112.0) == pytest.approx(120.05)


def test_directions_of_a_link_have_chances_of_their_own() -> None:
    link = Link("any", *[Direction(1e6, 0.01, jitter=0.01)] * 2, "here")
    found = [channel.arrival(10, 1.0) for seed in (1, 2) for channel in link.channels(seed)]
    assert len(set(found)) == 4


def test_the_mean_round_trip() -> None:
    link = Link("any", Direction(1e6, 0.02, 0.001), Direction(Trace((1, 2)), 0.03, overhead=0), "here")
    assert link.round_trip() == pytest.approx(0.051)
    assert link.round_trip(1000, 1500) == pytest.approx(0.051 + 8 * 1052 / 1e6 + 0.001)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"rate": 0.0}, "a rate must be above 0 bit/s"),
        ({"rate": math.inf}, "a rate must be above 0 bit/s"),
        ({"delay": -1.0}, "a delay must be 0 s or more"),
        ({"jitter": math.nan}, "a jitter must be 0 s or more"),
        ({"timeout_floor": -0.1}, "a retransmission floor must be 0 s or more"),
        ({"loss": 0.6}, "loss must be a share from 0 to 0.5"),
        ({"mss": 0}, "a segment must hold at least 1 byte"),
        ({"overhead": -1}, "overhead and queue must be 0 bytes or more"),
        ({"queue": -1}, "overhead and queue must be 0 bytes or more"),
        ({"outages": ((2.0, 1.0),)}, "outages must be times from 0 s on"),
        ({"outages": ((0.0, 2.0), (1.0, 3.0))}, "outages must be times from 0 s on"),
        ({"outages": ((0.0, 2.0),), "outage_period": 1.0}, "outages must end within their period"),
        ({"outages": ((0.0, 2.0),), "outage_period": 2.0}, "and leave some of it"),
        ({"outage_period": -1.0}, "the period of outages must be 0 s"),
    ],
)
def test_what_a_direction_cannot_be(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Direction(**{"rate": 1e6, **values})


def test_what_a_link_and_a_channel_cannot_be() -> None:
    with pytest.raises(UsageError, match="handshakes must be 0 to 100 round trips, not -1"):
        Link("any", Direction(1e6), Direction(1e6), "here", handshakes=-1)
    with pytest.raises(UsageError, match=r"seed must be 0 to 2\^64 - 1, not -1"):
        Channel(Direction(1e6), -1)

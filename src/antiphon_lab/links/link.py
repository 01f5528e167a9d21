"""The model of a link, without clock and without I/O: sizes and times in, times out.

A frame that is handed to a `Channel` at `now`
1. waits until the frames before it have left (its own bytes and theirs are the queue);
2. leaves at the rate: its bytes, and `overhead` bytes for each segment of at most `mss` bytes; a lost segment leaves once more.
   Where TCP's slow start counts (`window`), it leaves only as the window opens (`antiphon_lab.links.slow_start`);
3. travels for `delay` seconds, and for jitter: a number drawn from the exponential distribution of mean `jitter`;
4. waits for what was lost of it: a segment with three others of the frame behind it comes one round trip later (fast
   retransmission), any other one retransmission timeout later; lost again, after a timeout that doubles each time;
5. never arrives before a frame that was handed over earlier: TCP keeps order, so whatever holds up a frame holds up the next.

During an outage the clock of the link stands still: nothing leaves, nothing arrives, and all goes on where it was afterwards.
A full queue loses nothing: the sender waits (`Channel.accepted`), as with TCP; the frame arrives when it would anyway.
"""

import math
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from antiphon.errors import UsageError
from antiphon_lab.links.slow_start import SlowStart
from antiphon_lab.links.traces import Pipe, Rate, mean_rate, pipe

MSS = 1448
"""Bytes of a TCP segment on Ethernet: 1500 less `HEADER_BYTES`."""

HEADER_BYTES = 52
"""IPv4 (20), TCP (20) and its timestamps (12)."""

QUEUE_BYTES = 256 * 2**10
HANDSHAKES = 3
"""Round trips before the first frame: TCP, TLS 1.3, the WebSocket upgrade."""

FAST_SEGMENTS = 3
"""Segments that must arrive after a lost one for it to be missed at once (RFC 5681, 3.2)."""

MOST_LOSSES = 6
"""A segment arrives the seventh time at the latest."""

_PURPOSES = 2**32
"""Added to the second word of the generator's key: the same seed elsewhere gives other numbers."""


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise UsageError(sentence)


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of a link. Times in seconds, sizes in bytes. Raises UsageError for what cannot be.

    rate: bit/s, or a trace. jitter: the mean (and so the standard deviation) of what is added to `delay`. loss: the share of
    segments that is lost. timeout_floor: the least retransmission timeout, which is two round trips if they are more. outages:
    times (from, to) during which nothing moves, counted from the channel's start; they come again every `outage_period`
    seconds, once only if that is 0. queue: bytes that may wait before a sender waits. window: segments that may be on their way
    at first, as TCP's slow start has it; 0 does without.
    """

    rate: Rate
    delay: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    timeout_floor: float = 0.2
    outages: tuple[tuple[float, float], ...] = ()
    outage_period: float = 0.0
    mss: int = MSS
    overhead: int = HEADER_BYTES
    queue: int = QUEUE_BYTES
    window: int = 0

    def __post_init__(self) -> None:
        rate = mean_rate(self.rate)
        _require(math.isfinite(rate) and rate > 0, f"a rate must be above 0 bit/s, not {rate}")
        for name, seconds in (("delay", self.delay), ("jitter", self.jitter), ("retransmission floor", self.timeout_floor)):
            _require(math.isfinite(seconds) and seconds >= 0, f"a {name} must be 0 s or more, not {seconds}")
        _require(0 <= self.loss <= 0.5, f"loss must be a share from 0 to 0.5 of the segments, not {self.loss}")
        _require(self.mss >= 1, f"a segment must hold at least 1 byte, not {self.mss}")
        _require(self.overhead >= 0 and self.queue >= 0, "overhead and queue must be 0 bytes or more")
        _require(0 <= self.window <= 10**6, f"the first window must be 0 (none) to 1,000,000 segments, not {self.window}")
        self._require_outages()

    def _require_outages(self) -> None:
        edges = list(chain.from_iterable(self.outages))
        in_order = all(math.isfinite(edge) and edge >= 0 for edge in edges) and all(a < b for a, b in pairwise(edges))
        _require(in_order, "outages must be times from 0 s on, each from below to, in order and apart")
        period = self.outage_period
        _require(math.isfinite(period) and period >= 0, f"the period of outages must be 0 s (once) or more, not {period}")
        down = sum(until - since for since, until in self.outages)
        fits = period == 0 or (max(edges, default=0.0) <= period and down < period)
        _require(fits, f"outages must end within their period of {period} s and leave some of it")

    def wire_bytes(self, size: int) -> int:
        """Bytes that a frame of `size` bytes takes on the wire if nothing is lost."""
        return size + self.overhead * self.segments(size)

    def segments(self, size: int) -> int:
        """Segments of a frame of `size` bytes."""
        return max(1, -(-size // self.mss))

    def timeout(self, round_trip: float) -> float:
        """Seconds after which TCP takes what was not acknowledged to be lost."""
        return max(self.timeout_floor, 2 * round_trip)

    def pipe(self, round_trip: float) -> Pipe:
        """What its bytes leave through."""
        if self.window == 0:
            return pipe(self.rate)
        segment = self.mss + self.overhead
        return SlowStart(pipe(self.rate), self.window * segment, segment, round_trip, self.timeout(round_trip))


@dataclass(frozen=True, slots=True)
class Link:
    """Both directions, `up` from the device to the cloud.

    source: a sentence that says where the figures are from. handshakes: round trips before the first frame.
    """

    name: str
    up: Direction
    down: Direction
    source: str
    handshakes: int = HANDSHAKES

    def __post_init__(self) -> None:
        _require(0 <= self.handshakes <= 100, f"handshakes must be 0 to 100 round trips, not {self.handshakes}")

    def round_trip(self, sent: int = 0, received: int = 0) -> float:
        """Mean seconds for `sent` bytes up and `received` back on an idle link without losses and outages; 0: no bytes."""
        return sum(
            direction.delay + direction.jitter + (8.0 * direction.wire_bytes(size) / mean_rate(direction.rate) if size else 0.0)
            for direction, size in ((self.up, sent), (self.down, received))
        )

    def channels(self, seed: int, start: float = 0.0, dialled: float | None = None) -> tuple["Channel", "Channel"]:
        """The two directions of a connection dialled at `dialled` (or `start`), on a link that is there since `start`."""
        trip = self.round_trip()
        opens = (start if dialled is None else dialled) + self.handshakes * trip
        up = Channel(self.up, seed, start=start, opens=opens, round_trip=trip)
        return up, Channel(self.down, seed, lane=1, start=start, opens=opens, round_trip=trip)


class Channel:
    """One direction at work: when does what is sent arrive? Calls come in order of time; the same calls give the same times.

    lane: tells the directions of a link apart, so that the same seed gives them different numbers. start: where the times of
    outages and traces begin. opens: nothing leaves before. round_trip: seconds that a retransmission takes.
    """

    def __init__(
        self,
        direction: Direction,
        seed: int,
        *,
        lane: int = 0,
        start: float = 0.0,
        opens: float | None = None,
        round_trip: float | None = None,
    ) -> None:
        _require(0 <= seed < 2**64, f"seed must be 0 to 2^64 - 1, not {seed}")
        trip = 2 * (direction.delay + direction.jitter) if round_trip is None else round_trip
        self.direction = direction
        self.frames = self.payload_bytes = self.wire_bytes = self.lost_segments = 0
        self._start, self._opens = start, (start if opens is None else opens)
        self._pipe = direction.pipe(trip)
        self._clock = _Clock(direction.outages, direction.outage_period)
        self._jitter = _Uniform(seed, 2 * lane)
        self._losses = _Losses(direction, trip, _Uniform(seed, 2 * lane + 1))
        self._arrived = 0.0

    def arrival(self, size: int, now: float) -> float:
        """The time at which a frame of `size` bytes, handed over at `now`, has wholly arrived."""
        direction = self.direction
        handed = self._clock.running(max(now, self._opens) - self._start)
        segments = direction.segments(size)
        losses = self._losses.draw(segments)
        again = sum(times for _, _, times in losses) * (direction.overhead + min(size, direction.mss))
        wire = direction.wire_bytes(size) + again
        complete = self._pipe.push(wire, handed)
        for index, late, _ in losses:
            behind = max(0, wire - (index + 1) * (direction.mss + direction.overhead))
            complete = max(complete, self._pipe.down_to(behind, handed) + late)
        self._arrived = max(self._arrived, complete + direction.delay + self._extra())
        self._count(size, wire, len(losses))
        return max(now, self._start + self._clock.at(self._arrived))

    def accepted(self, now: float) -> float:
        """The first time, from `now` on, at which the queue holds no more than it may: until then a sender waits."""
        handed = self._clock.running(max(now, self._opens) - self._start)
        room = self._pipe.down_to(self.direction.queue, handed)
        return max(now, self._start + self._clock.at(room)) if room > handed else now

    def _extra(self) -> float:
        return -self.direction.jitter * math.log(self._jitter.draw()) if self.direction.jitter else 0.0

    def _count(self, size: int, wire: int, lost: int) -> None:
        self.frames += 1
        self.payload_bytes += size
        self.wire_bytes += wire
        self.lost_segments += lost


class _Uniform:
    """Successive numbers of 53 bits in (0, 1), from raw Philox output, which is stable across numpy versions."""

    def __init__(self, seed: int, purpose: int) -> None:
        self._generator = np.random.Philox(key=np.array([seed, _PURPOSES + purpose], dtype=np.uint64))

    def draw(self) -> float:
        return ((int(self._generator.random_raw()) >> 11) + 0.5) * 2.0**-53

    def many(self, count: int) -> npt.NDArray[np.float64]:
        raw = self._generator.random_raw(count) >> np.uint64(11)
        return (raw.astype(np.float64) + 0.5) * 2.0**-53


class _Losses:
    """Which segments of a frame are lost, and how much later each then comes."""

    def __init__(self, direction: Direction, round_trip: float, uniform: _Uniform) -> None:
        self._share, self._uniform = direction.loss, uniform
        self._trip = round_trip
        self._timeout = direction.timeout(round_trip)

    def draw(self, segments: int) -> list[tuple[int, float, int]]:
        """(index, seconds late, times lost) of each lost segment."""
        if self._share == 0:
            return []
        numbers = self._uniform.many(segments)
        lost = np.flatnonzero(numbers < self._share)
        return [self._one(int(index), float(numbers[index]), segments) for index in lost]

    def _one(self, index: int, number: float, segments: int) -> tuple[int, float, int]:
        times = max(1, min(MOST_LOSSES, int(math.log(number) / math.log(self._share))))  # m times or more iff number < share^m
        if segments - 1 - index >= FAST_SEGMENTS:
            return index, self._trip + self._timeout * (2 ** (times - 1) - 1), times
        return index, self._timeout * (2**times - 1), times


class _Clock:
    """The link's clock, which stands still during outages: `running` is what it shows at a time, `at` when it shows that."""

    def __init__(self, outages: tuple[tuple[float, float], ...], period: float) -> None:
        self._outages, self._period = outages, period if outages else 0.0
        self._up = period - sum(until - since for since, until in outages)

    def running(self, time: float) -> float:
        """Seconds outside outages up to `time`."""
        if not self._outages:
            return time
        rounds = math.floor(time / self._period) if self._period else 0
        within = time - rounds * self._period
        down = sum(min(within, until) - since for since, until in self._outages if since < within)
        return rounds * self._up + within - down

    def at(self, running: float) -> float:
        """The last time at which the clock shows this: where an outage begins, its end."""
        rounds = math.floor(running / self._up) if self._period else 0
        within = running - rounds * self._up
        for since, until in self._outages:
            if within >= since:
                within += until - since
        return rounds * self._period + within

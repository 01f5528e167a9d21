"""TCP's slow start before a pipe (RFC 5681, 3.1 and 4.1; RFC 6928): a connection may have only so many bytes on their way.

At first that is its initial window. Each byte that is acknowledged, one round trip after it left, lets one more be on its way,
so the window doubles each round trip until the pipe never waits for it. It grows only while it is in use (at least half of it
on its way), and after a retransmission timeout without a byte it is the initial one again, as in Linux.
"""

from collections import deque
from dataclasses import dataclass

from antiphon_lab.links.traces import Pipe

ACKNOWLEDGED = 2
"""Segments that are acknowledged together."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Bytes that left together. begun, left: when the first and the last of them did. flying: bytes on their way with them."""

    size: int
    begun: float
    left: float
    flying: int


class SlowStart:
    """A pipe that bytes enter only as the window opens. Times in seconds, never going back.

    initial: bytes of the first window; segment: of a whole one; round_trip: from a byte's leaving to its acknowledgement;
    timeout: seconds without a byte after which the window is the first one again.
    """

    def __init__(self, pipe: Pipe, initial: int, segment: int, round_trip: float, timeout: float) -> None:
        self._pipe, self._initial, self._together = pipe, initial, ACKNOWLEDGED * segment
        self._trip, self._timeout = round_trip, timeout
        self._window, self._flying = initial, 0
        self._unacknowledged: deque[_Part] = deque()
        self._waiting: deque[_Part] = deque()
        self._now = self._last = 0.0  # the last byte was let in, and left

    def push(self, size: int, now: float) -> float:
        """Add so many bytes; the time at which the last of them has left."""
        now = max(now, self._now)
        self._acknowledge(now)
        if now - self._last > self._timeout:
            self._window = self._initial
        self._leave(now)
        while size > 0:
            self._acknowledge(now)
            room = self._window - self._flying
            if room <= 0:
                now = self._unacknowledged[0].left + self._trip
                continue
            size -= self._enter(min(size, room, self._together), now)
        self._now = now
        return self._last

    def down_to(self, waiting: int, now: float) -> float:
        """The first time, from `now` on, at which at most so many bytes still wait to leave."""
        self._leave(now)
        behind = 0
        for part in reversed(self._waiting):
            if behind + part.size > waiting:
                share = (waiting - behind) / part.size
                return max(now, part.left - share * (part.left - part.begun))
            behind += part.size
        return now

    def _enter(self, size: int, now: float) -> int:
        begun = max(now, self._last)
        self._last = self._pipe.push(size, now)
        self._flying += size
        part = _Part(size, begun, self._last, self._flying)
        self._unacknowledged.append(part)
        self._waiting.append(part)
        return size

    def _leave(self, now: float) -> None:
        while self._waiting and self._waiting[0].left <= now:
            self._waiting.popleft()

    def _acknowledge(self, now: float) -> None:
        while self._unacknowledged and self._unacknowledged[0].left + self._trip <= now:
            flying = max(self._unacknowledged[0].flying, self._unacknowledged[-1].flying)
            part = self._unacknowledged.popleft()
            self._flying -= part.size
            if self._window < 2 * flying:
                self._window += part.size

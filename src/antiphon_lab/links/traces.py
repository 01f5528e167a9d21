"""How fast bytes leave a sender: at a constant rate, or when a recorded trace lets a packet go.

A trace is mahimahi's: a text file, a line for each packet of 1500 bytes that can leave, with the millisecond at which it can. A
packet's worth may carry parts of several frames; what nobody uses is lost. After its last line the trace begins again.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol, TypeAlias

from antiphon.errors import UsageError

PACKET_BYTES = 1500
LONGEST_NUMBER = 12
"""Digits of a time at most: 30 years."""


@dataclass(frozen=True, slots=True)
class Trace:
    """When packets can leave: milliseconds from the beginning, in order; the last one is also the period.

    Raises UsageError if there is none, one comes before its predecessor, or the last is at 0.
    """

    milliseconds: tuple[int, ...]
    name: str = "trace"

    def __post_init__(self) -> None:
        times = self.milliseconds
        if not times or times[-1] <= 0:
            raise UsageError(f"the trace {self.name} must have a line, and its last time must be above 0 ms")
        if times[0] < 0 or any(after < before for before, after in pairwise(times)):
            raise UsageError(f"the times of the trace {self.name} must be from 0 on and in order")

    @property
    def rate(self) -> float:
        """The mean rate in bit/s."""
        return 8000.0 * PACKET_BYTES * len(self.milliseconds) / self.milliseconds[-1]

    def before(self, time: float) -> int:
        """How many packets could leave before `time`, in seconds: one at that very time is not among them."""
        rounds, rest = divmod(round(1000.0 * time, 6), self.milliseconds[-1])
        if rest == 0 and rounds > 0:  # the end of a round, where its last packets are, is also the beginning of the next
            rounds, rest = rounds - 1, self.milliseconds[-1]
        return int(rounds) * len(self.milliseconds) + bisect_left(self.milliseconds, rest)

    def time(self, index: int) -> float:
        """When packet number `index`, counted from 0, can leave, in seconds."""
        rounds, within = divmod(index, len(self.milliseconds))
        return (rounds * self.milliseconds[-1] + self.milliseconds[within]) / 1000.0


def read_trace(file: Path) -> Trace:
    """The trace in a file of mahimahi's form. Raises UsageError that names the line at fault."""
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except OSError as error:
        raise UsageError(f"cannot read the trace {file} ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the trace {file} is no text: each line must be a whole number of milliseconds") from error
    return Trace(tuple(_times(lines, file)), file.name)


def _times(lines: Iterable[str], file: Path) -> Iterable[int]:
    last = 0
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text.isdigit() or len(text) > LONGEST_NUMBER:
            raise UsageError(f"line {number} of the trace {file} must be a whole number of milliseconds, not {text[:40]!r}")
        if int(text) < last:
            raise UsageError(f"line {number} of the trace {file} goes back in time, from {last} to {int(text)} ms")
        last = int(text)
        yield last


Rate: TypeAlias = float | Trace
"""Bit/s, or a trace."""


def mean_rate(rate: Rate) -> float:
    """Bit/s on average."""
    return rate.rate if isinstance(rate, Trace) else rate


class Pipe(Protocol):
    """What bytes leave through: first come, first served, never idle while some wait. Times in seconds, never going back."""

    def push(self, size: int, now: float) -> float:
        """Add so many bytes; the time at which the last of them has left."""
        ...

    def down_to(self, waiting: int, now: float) -> float:
        """The first time, from `now` on, at which at most so many bytes still wait."""
        ...


class ConstantPipe:
    """A pipe of a constant rate in bit/s."""

    def __init__(self, rate: float) -> None:
        self._seconds_a_byte = 8.0 / rate
        self._free = 0.0

    def push(self, size: int, now: float) -> float:
        """Add so many bytes."""
        self._free = max(self._free, now) + size * self._seconds_a_byte
        return self._free

    def down_to(self, waiting: int, now: float) -> float:
        """When at most so many wait."""
        return max(now, self._free - waiting * self._seconds_a_byte)


class TracePipe:
    """A pipe that a trace opens. Its state is one number: how many bytes of all that the trace has offered are used or gone."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._used = 0

    def push(self, size: int, now: float) -> float:
        """Add so many bytes."""
        self._used = max(self._used, PACKET_BYTES * self._trace.before(now)) + size
        return max(now, self._offered(self._used))

    def down_to(self, waiting: int, now: float) -> float:
        """When at most so many wait."""
        return max(now, self._offered(self._used - waiting))

    def _offered(self, total: int) -> float:
        """When the trace has offered so many bytes since its beginning."""
        return self._trace.time((total - 1) // PACKET_BYTES) if total > 0 else 0.0


def pipe(rate: Rate) -> Pipe:
    """An empty pipe of this rate."""
    return TracePipe(rate) if isinstance(rate, Trace) else ConstantPipe(rate)

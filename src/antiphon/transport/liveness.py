"""Whether a link is alive, by what crosses it: an end that gives no sign, or takes nothing, is lost.

Every byte that arrives is a sign, so a long frame on a thin link is many. What waits to be sent must get less: by the
system's own count of what the other end has not confirmed, where it has one, for its buffers are large and drain in lumps.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable

BEATS = 3
"""Looks, and pings, in the time in which a link is lost."""


class Liveness:
    """Watches one transport by the loop's clock, from now until `stop`. `lost` is called at most once, with the reason.

    ping: asks the other end for a sign; called where nothing came for a beat.
    """

    def __init__(
        self, transport: asyncio.Transport, seconds: float, ping: Callable[[], None], lost: Callable[[str], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport, self._seconds, self._ping, self._lost = transport, seconds, ping, lost
        self._heard = self._taken = self._loop.time()
        self._unsent, self._paused = 0, False
        self._timer = self._loop.call_later(seconds / BEATS, self._beat)

    def heard(self) -> None:
        """Something arrived."""
        self._heard = self._loop.time()

    def paused(self) -> None:
        """What waits to be sent is so much that more has to wait."""
        self._paused, self._taken, self._unsent = True, self._loop.time(), unsent(self._transport)

    def resumed(self) -> None:
        """It is not any more."""
        self._paused = False

    def stop(self) -> None:
        """The link has ended."""
        self._timer.cancel()

    def _beat(self) -> None:
        now, beat = self._loop.time(), self._seconds / BEATS
        if not self._transport.is_reading():
            self._heard = now  # it may well say something: it is this end that does not listen
        # Less than at the last look is a sign. Buffers of the system hold megabytes: that we could write says nothing of the
        # peer.
        if not self._paused or unsent(self._transport) < self._unsent:
            self._taken, self._unsent = now, unsent(self._transport)
        if now - self._heard >= self._seconds:
            return self._lost(f"it gave no sign for {self._seconds:g} s")
        if now - self._taken >= self._seconds:
            return self._lost(f"it took nothing for {self._seconds:g} s")
        # No ping behind a full buffer: it would wait there too, and prove nothing.
        if now - self._heard >= beat and not self._paused:
            self._ping()
        # Also exactly when the link would be lost, so that the loss comes when it was promised and not a beat later.
        due = min(self._heard, self._taken) + self._seconds - now
        self._timer = self._loop.call_later(min(beat, due), self._beat)
        return None


def unsent(transport: asyncio.Transport) -> int:
    """Bytes that were written and not confirmed: those that wait here, and those that the system tells of."""
    return transport.get_write_buffer_size() + _in_system(transport.get_extra_info("socket"))


def _in_system(end: "socket.socket | None") -> int:
    try:
        import fcntl
        import termios
    except ImportError:  # Windows does not tell
        return 0
    if end is None or end.fileno() < 0:
        return 0
    with contextlib.suppress(OSError):
        return int.from_bytes(fcntl.ioctl(end.fileno(), termios.TIOCOUTQ, bytes(4)), "little")
    return 0

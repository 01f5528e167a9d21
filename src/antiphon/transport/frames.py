"""What carries frames: whole byte strings, in order, to the other end; and what keeps what arrived until it is read."""

import asyncio
from collections import deque
from typing import Protocol, TypeVar

from antiphon.errors import LinkError, ProtocolError

Item = TypeVar("Item")


class Transport(Protocol):
    """One end of a link. A frame arrives whole and in order, or the link is down."""

    async def send(self, frame: bytes) -> None:
        """Send a frame. Raises LinkError if the link is down, or nothing is taken from it any more."""
        ...

    async def receive(self) -> bytes:
        """The next frame. Raises LinkError if the link is down, or gives no sign any more."""
        ...

    async def close(self, reason: str = "") -> None:
        """End the link, within a few seconds whatever the other end does. Closing twice is harmless."""
        ...


class MemoryTransport:
    """One end of a link inside this process."""

    def __init__(self, inbox: "asyncio.Queue[bytes | None]", outbox: "asyncio.Queue[bytes | None]") -> None:
        self._inbox, self._outbox, self._closed = inbox, outbox, False

    async def send(self, frame: bytes) -> None:
        """Put a frame into the other end's inbox."""
        if self._closed:
            raise LinkError("the link is closed")
        await self._outbox.put(frame)

    async def receive(self) -> bytes:
        """The next frame."""
        frame = None if self._closed else await self._inbox.get()
        if frame is None:
            self._closed = True
            raise LinkError("the other end closed the link")
        return frame

    async def close(self, reason: str = "") -> None:
        """Tell the other end that nothing more will come."""
        if not self._closed:
            self._closed = True
            await self._outbox.put(None)
            await self._inbox.put(None)


def memory_pair() -> tuple[MemoryTransport, MemoryTransport]:
    """Two ends of one link inside this process."""
    up: asyncio.Queue[bytes | None] = asyncio.Queue()
    down: asyncio.Queue[bytes | None] = asyncio.Queue()
    return MemoryTransport(down, up), MemoryTransport(up, down)


class Inbox(asyncio.Queue[Item]):
    """What arrived and was not read yet: so many items, and so many bytes, at most."""

    def __init__(self, most: int, most_bytes: int) -> None:
        super().__init__()
        self.came = 0.0
        """When the last item that was read had arrived, by the loop's clock."""
        self._times: deque[float] = deque()
        self._most, self._most_bytes = most, most_bytes
        self._sizes: deque[int] = deque()
        self._bytes = self._size = 0
        self._read = asyncio.Event()

    def offer(self, item: Item, size: int) -> None:
        """Take what a peer sent, of so many bytes. Raises ProtocolError if too much waits; one alone never does."""
        if not self._fits(size):
            raise ProtocolError("too many messages wait to be read: wait for answers", "busy")
        self._take(item, size)

    async def when_it_fits(self, item: Item, size: int) -> None:
        """The same, once there is room: whoever sends has to wait meanwhile."""
        while not self._fits(size):
            self._read.clear()
            await self._read.wait()
        self._take(item, size)

    def _fits(self, size: int) -> bool:
        # One alone always fits, however large: frames have a bound of their own, and with none waiting nobody could ever make
        # room.
        return not self._sizes or (len(self._sizes) < self._most and self._bytes + size <= self._most_bytes)

    def _take(self, item: Item, size: int) -> None:
        self._size = size
        self.put_nowait(item)

    def _put(self, item: Item) -> None:
        self._sizes.append(self._size)
        self._times.append(asyncio.get_running_loop().time())
        self._bytes += self._size
        self._size = 0
        super()._put(item)

    def _get(self) -> Item:
        self._bytes -= self._sizes.popleft()
        self.came = self._times.popleft()
        self._read.set()
        return super()._get()


async def next_within(queue: "asyncio.Queue[Item]", seconds: float | None) -> Item | None:
    """The next item of a queue, or None if none came in so many seconds (None: wait as long as it takes; 0: do not wait)."""
    if seconds is None:
        return await queue.get()
    # Without a turn of the event loop: what a half asks for with 0 is what has come already, and it asks often.
    if seconds <= 0:
        return None if queue.empty() else queue.get_nowait()
    try:
        async with asyncio.timeout(seconds):
            return await queue.get()
    except TimeoutError:
        return None

"""Frames and bytes delayed by the model of a link, in real or in virtual time: all by the running loop's clock.

In real time a timer is as fine as the loop's selector: about 1 ms by default, 0.1 ms with `precise_loop`.
"""

import asyncio
import select
import selectors
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

from antiphon.errors import LinkError
from antiphon.transport.frames import Transport
from antiphon.transport.websocket import header_bytes
from antiphon_lab.links.link import Channel, Link

CLOSE_BYTES = 4
"""The payload of a WebSocket's close: a code, and at the least what a short reason takes."""

Item = TypeVar("Item")


async def sleep_until(time: float) -> None:
    """Sleep until the loop's clock shows `time`; return at once if it does."""
    remaining = time - asyncio.get_running_loop().time()
    if remaining > 0:
        await asyncio.sleep(remaining)


class Delivery(Generic[Item]):
    """Delivers items when a channel says that they have arrived. A task runs only while something is on its way."""

    def __init__(self, channel: Channel, deliver: Callable[[Item], Awaitable[None]]) -> None:
        self._channel, self._deliver = channel, deliver
        self._flying: deque[tuple[float, Item]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._turn = (
            asyncio.Lock()
        )  # fair: while delivering is held up, senders wait in order, as when a receiver's window is shut
        self.error: LinkError | None = None

    async def put(self, item: Item, size: int) -> None:
        """Hand over an item of so many bytes; returns once the queue is no fuller than it may be.

        Raises the LinkError that delivering an earlier item raised.
        """
        async with self._turn:
            self.raise_error()
            now = asyncio.get_running_loop().time()
            self._flying.append((self._channel.arrival(size, now), item))
            self._start()
        await sleep_until(self._channel.accepted(now))

    def raise_error(self) -> None:
        """Raise the LinkError of a delivery, if there was one."""
        if self.error is not None:
            raise self.error

    async def flush(self) -> None:
        """Wait until all has been delivered, or an error has ended it."""
        if self._task is not None:
            await self._task

    async def drop(self) -> None:
        """Forget what is on its way."""
        if self._task is not None and self._task.cancel():
            await asyncio.wait([self._task])

    def _start(self) -> None:
        if self._task is not None and not self._task.done():
            return
        if self._task is not None:
            self._task.result()  # raises whatever ended it
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._flying:
                await sleep_until(self._flying[0][0])
                async with self._turn:
                    await self._deliver(self._flying.popleft()[1])
        except LinkError as error:
            self.error = error


class LinkedTransport:
    """One end of an emulated link: what it sends arrives when `channel` says. Receiving is the wrapped transport's own."""

    def __init__(self, transport: Transport, channel: Channel, *, from_device: bool) -> None:
        self._transport, self._from_device = transport, from_device
        self._delivery: Delivery[bytes | None] = Delivery(channel, self._arrive)
        self._closed = False

    async def send(self, frame: bytes) -> None:
        """Hand a frame to the link; waits while its queue is full. Raises LinkError, also of an earlier frame's delivery."""
        if self._closed:
            raise LinkError("the link is closed")
        await self._delivery.put(frame, len(frame) + header_bytes(len(frame), self._from_device))

    async def receive(self) -> bytes:
        """The next frame. Raises LinkError, also of an earlier frame's delivery."""
        self._delivery.raise_error()
        return await self._transport.receive()

    async def close(self, reason: str = "") -> None:
        """End the link: what was sent still arrives, and after it the notice of the end."""
        if self._closed:
            return
        self._closed = True
        size = CLOSE_BYTES + len(reason.encode())
        try:
            with suppress(LinkError):
                await self._delivery.put(None, size + header_bytes(size, self._from_device))
            await self._delivery.flush()
        finally:
            await self._delivery.drop()
            await self._transport.close(reason)

    async def _arrive(self, frame: bytes | None) -> None:
        if frame is not None:
            await self._transport.send(frame)


def emulate(
    device_end: Transport, cloud_end: Transport, link: Link, seed: int = 0, start: float | None = None
) -> tuple[LinkedTransport, LinkedTransport]:
    """The two ends with `link` between them, dialled now: each delays what it sends. Call it in a running loop.

    start: when the link's outages and traces began; now unless given (to dial once more on the same link).
    """
    now = asyncio.get_running_loop().time()
    up, down = link.channels(seed, now if start is None else start, now)
    return LinkedTransport(device_end, up, from_device=True), LinkedTransport(cloud_end, down, from_device=False)


def precise_loop() -> asyncio.AbstractEventLoop:
    """An event loop with fine timers: epoll's are whole milliseconds, so it waits in `select` for epoll's own descriptor."""
    if sys.platform != "linux":
        return asyncio.new_event_loop()

    class Fine(selectors.EpollSelector):
        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if timeout is None or timeout > 0:
                select.select([self.fileno()], [], [], timeout)
            return super().select(0)

    return asyncio.SelectorEventLoop(Fine())

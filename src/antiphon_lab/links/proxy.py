"""A TCP proxy that lets real processes meet over an emulated link, in real time.

One `Channel` each way for all connections: they share the link's rate, and its order too. What one read brings, at most
`READ_BYTES`, counts as one frame. A connection's first bytes wait for one round trip, that of TCP's handshake; TLS and the
WebSocket upgrade really cross.
"""

import asyncio
import logging
import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from antiphon.errors import LinkError, UsageError
from antiphon_lab.links.emulated import Delivery, sleep_until
from antiphon_lab.links.link import Channel, Link

READ_BYTES = 16 * 2**10
CONNECT_SECONDS = 10.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """From `HOST:PORT` or `ws://HOST:PORT`. Raises UsageError."""
        try:
            parts = urlsplit(text if "://" in text else f"ws://{text}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if host is None or port is None or parts.scheme != "ws" or parts.path not in ("", "/"):
            raise UsageError(f"{text!r} is no address: it must look like ws://127.0.0.1:8765 or 127.0.0.1:8765")
        return cls(host, port)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Proxy:
    """Carries connections over one link. `connections` are open now, `total` were ever."""

    def __init__(self, link: Link, target: Address, seed: int) -> None:
        self.connections = self.total = 0
        self.up, self.down = replace(link, handshakes=0).channels(seed, asyncio.get_running_loop().time())
        self._trip, self._target = link.round_trip(), target
        self._tasks: set[asyncio.Task[None]] = set()

    def accept(self, device: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        """Carry a connection that came in, in a task of its own."""
        task = asyncio.create_task(self._connect(device, back))
        self._tasks.add(task)
        self.connections, self.total = self.connections + 1, self.total + 1
        task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Break every connection."""
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.connections -= 1

    async def _connect(self, device: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        opens = asyncio.get_running_loop().time() + self._trip
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                cloud, on = await asyncio.open_connection(self._target.host, self._target.port, limit=READ_BYTES)
        except OSError as error:
            log.warning("antiphon: cannot reach %s (%s)", self._target, _why(error))
            back.close()
            return
        async with _closing(back, on):
            await sleep_until(opens)
            async with asyncio.TaskGroup() as both:
                both.create_task(_stream(device, on, self.up))
                both.create_task(_stream(cloud, back, self.down))


def _why(error: OSError) -> str:
    """A few words; asyncio's own repeat the address, and a missing name has no number of the system."""
    known = error.errno is not None and error.errno > 0
    return os.strerror(error.errno or 0) if known else error.strerror or "no answer"


@asynccontextmanager
async def _closing(*writers: asyncio.StreamWriter) -> AsyncIterator[None]:
    """Two ends of a connection: closed when all has been carried, broken when one of them broke or this is cancelled."""
    for writer in writers:
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    carried = False
    try:
        yield
        carried = True
    except* (LinkError, OSError):
        pass
    finally:
        for writer in writers:
            writer.close() if carried else reset(writer)


def reset(writer: asyncio.StreamWriter) -> None:
    """Break a connection so that its other end sees it broken, not ended."""
    if not writer.transport.is_closing():
        at_once = struct.pack("ii", 1, 0)  # linger for no time
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
    writer.transport.abort()


async def _stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, channel: Channel) -> None:
    """Carry one direction of a connection until its end has been delivered too."""

    async def deliver(data: bytes) -> None:
        try:
            writer.write(data) if data else writer.write_eof()
            await writer.drain()
        except OSError as error:
            raise LinkError("the receiver is gone") from error

    delivery = Delivery(channel, deliver)
    try:
        while data := await reader.read(READ_BYTES):
            await delivery.put(data, len(data))
        await delivery.put(b"", 0)
        await delivery.flush()
        delivery.raise_error()
    finally:
        await delivery.drop()


@asynccontextmanager
async def proxying(link: Link, listen: Address, target: Address, seed: int = 0) -> AsyncIterator[tuple[Proxy, Address]]:
    """A proxy that listens, and where (port 0 is any free one). Raises UsageError if it cannot listen there."""
    proxy = Proxy(link, target, seed)
    try:
        server = await asyncio.start_server(proxy.accept, listen.host, listen.port, limit=READ_BYTES)
    except OSError as error:
        raise UsageError(f"cannot listen on {listen} ({_why(error)}): choose another address or port") from error
    try:
        yield proxy, Address(*server.sockets[0].getsockname()[:2])
    finally:
        server.close()
        await proxy.stop()

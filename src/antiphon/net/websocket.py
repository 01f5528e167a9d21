"""The device's end of a WebSocket, and what WebSocket framing costs."""

import asyncio
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from antiphon.config import Patience
from antiphon.errors import LinkError, UsageError
from antiphon.net.pulse import Pulse

CONNECT_SECONDS = 10.0

FRAMES_WAITING = 4
"""Frames that are read ahead."""

UNREAD_BYTES = 2**20
"""Of answers to pings of a cloud that does not read them."""


def header_bytes(size: int, from_device: bool) -> int:
    """Bytes of the WebSocket header of a frame of `size` bytes (RFC 6455, 5.2); a device is the client, which masks."""
    extended = 0 if size < 126 else 2 if size < 65536 else 8
    return 2 + extended + (4 if from_device else 0)


class _Watched(ClientConnection):
    """A socket whose link is watched from `watch` on."""

    why_lost = ""
    _pulse: Pulse | None = None
    _unread = 0

    def watch(self, seconds: float) -> None:
        """Take it as lost after so many seconds without a sign."""
        self._pulse = Pulse(self.transport, seconds, self._ask, self.lose)

    def data_received(self, data: bytes) -> None:
        """Take bytes: a sign."""
        before = self.transport.get_write_buffer_size()
        super().data_received(data)
        if self._pulse is not None:
            self._pulse.heard()
        self._unread = self._unread + self.transport.get_write_buffer_size() - before if self.paused else 0
        if self._unread > UNREAD_BYTES:
            self.lose("it asks and reads no answer")

    def pause_writing(self) -> None:
        """Watch whether the cloud takes anything."""
        super().pause_writing()
        if self._pulse is not None:
            self._pulse.paused()

    def resume_writing(self) -> None:
        """It does."""
        super().resume_writing()
        if self._pulse is not None:
            self._pulse.resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        """Watch no longer."""
        if self._pulse is not None:
            self._pulse.stop()
        super().connection_lost(exc)

    def lose(self, why: str) -> None:
        """End the link at once."""
        self.why_lost = self.why_lost or why
        self.transport.abort()

    def _ask(self) -> None:
        if not self.transport.is_closing():
            self.protocol.send_ping(b"")
            self.send_data()


class WebSocketTransport:
    """The client's end of a WebSocket."""

    def __init__(self, socket: _Watched, url: str, patience: Patience) -> None:
        self._socket, self._url, self._patience = socket, url, patience

    async def send(self, frame: bytes) -> None:
        """Send one binary message."""
        try:
            await self._socket.send(frame)
        except ConnectionClosed as error:
            raise self._gone(error) from error

    async def receive(self) -> bytes:
        """The next binary message."""
        try:
            message = await self._socket.recv(decode=False)
        except ConnectionClosed as error:
            raise self._gone(error) from error
        return message

    async def close(self, reason: str = "") -> None:
        """Close the socket: politely if the cloud takes leave in time."""
        try:
            async with asyncio.timeout(self._patience.close):
                await self._socket.close(reason=reason[:100])
        except TimeoutError:
            self._socket.lose("it did not take leave")

    def _gone(self, error: ConnectionClosed) -> LinkError:
        if self._socket.why_lost:
            return LinkError(f"the cloud at {self._url} is lost: {self._socket.why_lost}")
        why = error.rcvd.reason or f"code {error.rcvd.code}" if error.rcvd else "it went away"
        return LinkError(f"the cloud at {self._url} closed the connection ({why})")


async def dial(url: str, max_frame_bytes: int, patience: Patience | None = None) -> WebSocketTransport:
    """Connect to a cloud. Raises UsageError for something that is no ws:// URL, LinkError if nobody answers there."""
    patience = patience or Patience()
    if urlsplit(url).scheme not in ("ws", "wss"):
        raise UsageError(f"{url!r} is no WebSocket address: it must look like ws://127.0.0.1:8765")
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            socket = await _connected(url, max_frame_bytes + 1024, patience)
    except InvalidURI as error:
        raise UsageError(f"{url!r} is no WebSocket address: it must look like ws://127.0.0.1:8765") from error
    except InvalidStatus as error:
        raise LinkError(_refused(url, error.response.status_code, error.response.body)) from error
    except InvalidHandshake as error:
        raise LinkError(f"{url} does not speak WebSocket, so it is no Antiphon cloud: check the address") from error
    except TimeoutError as error:
        raise LinkError(f"{url} did not answer in {CONNECT_SECONDS:.0f} s: check the address and the network") from error
    except OSError as error:
        why = error.strerror or str(error)
        raise LinkError(f"cannot reach the cloud at {url} ({why}): is `antiphon serve` running there?") from error
    return WebSocketTransport(socket, url, patience)


async def _connected(url: str, limit: int, patience: Patience) -> _Watched:
    settings: dict[str, Any] = {"compression": None, "proxy": None, "ping_interval": None, "close_timeout": patience.close}
    socket = await connect(url, max_size=limit, max_queue=FRAMES_WAITING, create_connection=_Watched, **settings)
    if not isinstance(socket, _Watched):
        raise LinkError(f"{url} gave a connection of another kind")
    socket.watch(patience.lost)
    return socket


def _refused(url: str, code: int, body: bytes | bytearray | None) -> str:
    """What an answer says that is no WebSocket."""
    if code == HTTPStatus.SERVICE_UNAVAILABLE:
        said = (body or b"").decode(errors="replace").strip()[:200]
        return f"{url} answers HTTP {code}: {said or 'it has no room at the moment, try again shortly'}"
    return f"{url} answers HTTP {code}, so it is no Antiphon cloud: check the address"

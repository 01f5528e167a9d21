"""The device's end of a WebSocket, and what WebSocket framing costs."""

import asyncio
import ssl
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.http11 import Response
from websockets.uri import parse_uri

from antiphon import shown
from antiphon.config import Timeouts
from antiphon.errors import LinkError, UsageError
from antiphon.transport.liveness import Liveness

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
    _pulse: Liveness | None = None
    _unread = 0

    def watch(self, seconds: float) -> None:
        """Take it as lost after so many seconds without a sign."""
        self._pulse = Liveness(self.transport, seconds, self._ask, self.lose)

    def data_received(self, data: bytes) -> None:
        """Take bytes: a sign."""
        before = self.transport.get_write_buffer_size()
        super().data_received(data)
        if self._pulse is not None:
            self._pulse.heard()
        # The library answers pings by itself, also where nobody reads the answers: what that piles up is bounded here.
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

    def __init__(self, socket: _Watched, url: str, timeouts: Timeouts) -> None:
        self._socket, self._url, self._timeouts = socket, url, timeouts

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
            async with asyncio.timeout(self._timeouts.close):
                await self._socket.close(reason=reason[:100])
        except TimeoutError:
            self._socket.lose("it did not take leave")

    def _gone(self, error: ConnectionClosed) -> LinkError:
        if self._socket.why_lost:
            return LinkError(f"the cloud at {self._url} is lost: {self._socket.why_lost}")
        why = error.rcvd.reason or f"code {error.rcvd.code}" if error.rcvd else "it went away"
        return LinkError(f"the cloud at {self._url} closed the connection ({why})")


async def dial(url: str, max_frame_bytes: int, timeouts: Timeouts | None = None) -> WebSocketTransport:
    """Connect to a cloud. Raises UsageError for something that is no ws:// URL, LinkError if nobody answers there."""
    timeouts = timeouts or Timeouts()
    _require_address(url)
    public = shown.address(url)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            # The session has the say over sizes, in a sentence; the socket's own bound is only for what no session would take.
            socket = await _connected(url, max_frame_bytes + 1024, timeouts)
    except InvalidStatus as error:
        raise LinkError(_refused(public, error.response)) from error
    except InvalidHandshake as error:
        if isinstance(error.__cause__, EOFError):  # not a byte of an answer: it stopped, or is too busy to talk
            raise LinkError(_unreachable(public, "it closed the connection")) from error
        raise LinkError(f"{public} does not speak WebSocket, so it is no Antiphon cloud: check the address") from error
    except TimeoutError as error:
        raise LinkError(f"{public} did not answer in {CONNECT_SECONDS:.0f} s: check the address and the network") from error
    except ssl.SSLCertVerificationError as error:
        sentence = f"the certificate of {public} is not one that this machine trusts ({error.verify_message})"
        raise LinkError(f"{sentence}: name the host as its certificate does, or have its issuer trusted here") from error
    except ssl.SSLError as error:
        raise LinkError(f"{public} does not speak TLS ({error.reason}): try ws:// in place of wss://") from error
    except OSError as error:
        why = error.strerror or str(error) or "it closed the connection"
        raise LinkError(_unreachable(public, why)) from error
    return WebSocketTransport(socket, public, timeouts)


def _unreachable(public: str, why: str) -> str:
    return f"cannot reach the cloud at {public} ({why}): is `antiphon serve` running there?"


def _require_address(url: str) -> None:
    """Raise UsageError for what is no address of a WebSocket."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("ws", "wss") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        parse_uri(url)
    except (ValueError, InvalidURI):
        fits = False
    if not fits:
        raise UsageError(f"{shown.address(url)!r} is no WebSocket address: it must look like ws://127.0.0.1:8765")


class _Once(connect):
    """Goes where it was told to, and nowhere else."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        """A redirect is an answer like another."""
        return exc


async def _connected(url: str, limit: int, timeouts: Timeouts) -> _Watched:
    # No compression: bits that are counted are those that cross. No proxy from the environment: a question goes to the address
    # that was given. Pings are ours (`Liveness`), which knows a long frame from silence.
    settings: dict[str, Any] = {"compression": None, "proxy": None, "ping_interval": None, "close_timeout": timeouts.close}
    socket = await _Once(url, max_size=limit, max_queue=FRAMES_WAITING, create_connection=_Watched, **settings)
    if not isinstance(socket, _Watched):
        raise LinkError(f"{url} gave a connection of another kind")
    socket.watch(timeouts.lost)
    return socket


def _refused(url: str, response: Response) -> str:
    """What an answer says that is no WebSocket."""
    code = response.status_code
    said = (response.body or b"").decode(errors="replace").strip()[:200]
    match code:
        case 401 | 407:
            return f"{url} asks who you are (HTTP {code}): give its user name and password as wss://USER:PASSWORD@HOST"
        case 403:
            return f"{url} refuses this device (HTTP 403): {said or 'it lets nobody in, or is no Antiphon cloud'}"
        case 503:
            return f"{url} answers HTTP 503: {said or 'it has no room at the moment, try again shortly'}"
        case _ if 300 <= code < 400:
            where = shown.address(response.headers.get("Location", "somewhere else"))
            return f"{url} sends its visitors to {where} (HTTP {code}): give that address if you trust it"
    return f"{url} answers HTTP {code}, so it is no Antiphon cloud: check the address"

"""The device's end of a WebSocket, and what WebSocket framing costs."""

import asyncio
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from antiphon.errors import LinkError, UsageError

CONNECT_SECONDS = 10.0


def header_bytes(size: int, from_device: bool) -> int:
    """Bytes of the WebSocket header of a frame of `size` bytes (RFC 6455, 5.2); a device is the client, which masks."""
    extended = 0 if size < 126 else 2 if size < 65536 else 8
    return 2 + extended + (4 if from_device else 0)


class WebSocketTransport:
    """The client's end of a WebSocket."""

    def __init__(self, socket: ClientConnection, url: str) -> None:
        self._socket, self._url = socket, url

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
        """Close the socket."""
        await self._socket.close(reason=reason[:100])

    def _gone(self, error: ConnectionClosed) -> LinkError:
        why = error.rcvd.reason or f"code {error.rcvd.code}" if error.rcvd else "it went away"
        return LinkError(f"the cloud at {self._url} closed the connection ({why})")


async def dial(url: str, max_frame_bytes: int) -> WebSocketTransport:
    """Connect to a cloud. Raises UsageError for something that is no ws:// URL, LinkError if nobody answers there."""
    if urlsplit(url).scheme not in ("ws", "wss"):
        raise UsageError(f"{url!r} is no WebSocket address: it must look like ws://127.0.0.1:8765")
    limit = max_frame_bytes + 1024
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            socket = await connect(url, compression=None, proxy=None, max_size=limit, ping_interval=None)
    except InvalidURI as error:
        raise UsageError(f"{url!r} is no WebSocket address: it must look like ws://127.0.0.1:8765") from error
    except InvalidStatus as error:
        code = error.response.status_code
        raise LinkError(f"{url} answers HTTP {code}, so it is no Antiphon cloud: check the address") from error
    except InvalidHandshake as error:
        raise LinkError(f"{url} does not speak WebSocket, so it is no Antiphon cloud: check the address") from error
    except TimeoutError as error:
        raise LinkError(f"{url} did not answer in {CONNECT_SECONDS:.0f} s: check the address and the network") from error
    except OSError as error:
        why = error.strerror or str(error)
        raise LinkError(f"cannot reach the cloud at {url} ({why}): is `antiphon serve` running there?") from error
    return WebSocketTransport(socket, url)

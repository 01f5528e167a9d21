"""A cloud as an ASGI application: WebSocket at `/`, and `/health`. It runs under any ASGI server, best under Antiphon's own.

What the own server (`server`, `sockets`) adds is bounds on connections: how many there are, how long one may be silent, or take
nothing, before it is ended, how large a frame may be before the handshake, and a goodbye when it stops. Under another server
those are that server's options.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from antiphon.cloud.connection import CloudConnection
from antiphon.cloud.doors import foreign_page
from antiphon.cloud.health import Health, State
from antiphon.cloud.service import Cloud
from antiphon.cloud.sockets import EXTENSION
from antiphon.config import Timeouts
from antiphon.errors import LinkError, ProtocolError
from antiphon.models.base import public_name


class Watched(Protocol):
    """What an application is told of a connection, and tells, beside its messages."""

    why_lost: str
    has_sessions: Callable[[], bool]

    def ready(self) -> None:
        """The handshake is done."""
        ...

    def dismiss(self) -> None:
        """End it at once."""
        ...


class AnySocket:
    """A connection of a server that knows nothing of devices: it sees to bounds itself."""

    def __init__(self) -> None:
        self.why_lost = "it went away"
        self.has_sessions: Callable[[], bool] = lambda: False

    def ready(self) -> None:
        """Frames were as long as the server lets them be from the beginning."""

    def dismiss(self) -> None:
        """The server does, when its own time for that is over."""


class ServerTransport:
    """The server's end of a WebSocket."""

    def __init__(self, socket: WebSocket, device: Watched, timeouts: Timeouts) -> None:
        self._socket, self._device, self._timeouts = socket, device, timeouts

    async def send(self, frame: bytes) -> None:
        """Send one binary message. A device that takes nothing is lost after a while (see `Liveness`), and this raises then."""
        try:
            await self._socket.send_bytes(frame)
        except (WebSocketDisconnect, RuntimeError) as error:
            raise self._gone() from error

    async def receive(self) -> bytes:
        """The next binary message; text is a fault of the device."""
        try:
            message = await self._socket.receive()
        except (WebSocketDisconnect, RuntimeError) as error:
            raise self._gone() from error
        if message["type"] == "websocket.disconnect":
            raise self._gone()
        frame = message.get("bytes")
        if frame is None:
            raise ProtocolError("frames are binary, this one is text")
        return bytes(frame)

    async def close(self, reason: str = "") -> None:
        """Close the socket, if it is open: politely if the device takes leave in time."""
        states = (self._socket.client_state, self._socket.application_state)
        if WebSocketState.DISCONNECTED in states:
            return
        try:
            async with asyncio.timeout(self._timeouts.close):
                await self._socket.close(reason=reason[:100])
        except TimeoutError:
            self._device.dismiss()
        except (WebSocketDisconnect, RuntimeError):
            return  # the device closed it at the same time

    def _gone(self) -> LinkError:
        return LinkError(f"the device is gone: {self._device.why_lost}")


class Application:
    """The ASGI application of one cloud; `app` is what a server runs."""

    def __init__(self, cloud: Cloud, timeouts: Timeouts | None = None) -> None:
        self.cloud = cloud
        self._timeouts = timeouts or Timeouts()
        self._health = Health(cloud)
        self._connections: set[CloudConnection] = set()
        routes = [WebSocketRoute("/", self._websocket), Route("/health", self._answer_health)]
        self.app = Starlette(routes=routes)

    async def drain(self) -> None:
        """Say goodbye to every device, as far as they listen."""
        leaving = [connection.leave("the cloud is stopping") for connection in list(self._connections)]
        await asyncio.gather(*leaving)

    async def _websocket(self, socket: WebSocket) -> None:
        device: Watched | None = socket.scope.get("extensions", {}).get(EXTENSION)
        if device is None:
            device = AnySocket()
            if (why := _foreign(socket)) is not None:
                return await _deny(socket, why)
        await socket.accept()
        transport = ServerTransport(socket, device, self._timeouts)
        connection = CloudConnection(self.cloud, transport, self._timeouts, device.ready)
        device.has_sessions = lambda: connection.at_work
        self._connections.add(connection)
        try:
            await connection.serve()
        finally:
            self._connections.discard(connection)
        return None

    async def _answer_health(self, request: Request) -> JSONResponse:
        body = {"model": public_name(self.cloud.model), "connections": len(self._connections)}
        state, why = await self._health.state()
        headers = {"Connection": "close"}  # as `Arrival` does after every answer
        if state is State.FAILING:
            return JSONResponse({"status": state.value, "why": why, **body}, 503, headers)
        return JSONResponse({"status": state.value, **body}, headers=headers)


def _foreign(socket: WebSocket) -> str | None:
    """Why a request comes from a web page that has no business here; Antiphon's own server asks before it gets here."""
    headers = socket.headers
    return foreign_page(headers.getlist("origin"), headers.getlist("host"), "")


async def _deny(socket: WebSocket, why: str) -> None:
    """Refuse a connection, with the reason where the server can say one."""
    if "websocket.http.response" in socket.scope.get("extensions", {}):
        await socket.send_denial_response(PlainTextResponse(why + "\n", 403))
    else:
        await socket.close(reason=why[:100])

"""The cloud as an ASGI application (WebSocket at `/`, `/health`), and the process that serves it."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from antiphon.cloud.connection import CloudConnection
from antiphon.cloud.doors import Doors, raise_descriptors
from antiphon.cloud.health import Health, State
from antiphon.cloud.service import Cloud
from antiphon.cloud.sockets import EXTENSION, DeviceSocket, DoorConfig
from antiphon.config import ServeConfig, Timeouts
from antiphon.errors import LinkError, ProtocolError, UsageError
from antiphon.models.base import public_name

WAITING = 1024
"""Connections that the system keeps until they are taken in."""


class ServerTransport:
    """The server's end of a WebSocket."""

    def __init__(self, socket: WebSocket, device: DeviceSocket, timeouts: Timeouts) -> None:
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
        device: DeviceSocket = socket.scope["extensions"][EXTENSION]
        await socket.accept()
        transport = ServerTransport(socket, device, self._timeouts)
        connection = CloudConnection(self.cloud, transport, self._timeouts, device.ready)
        device.has_sessions = lambda: connection.at_work
        self._connections.add(connection)
        try:
            await connection.serve()
        finally:
            self._connections.discard(connection)

    async def _answer_health(self, request: Request) -> JSONResponse:
        body = {"model": public_name(self.cloud.model), "connections": len(self._connections)}
        state, why = await self._health.state()
        headers = {"Connection": "close"}  # as `Arrival` does after every answer
        if state is State.FAILING:
            return JSONResponse({"status": state.value, "why": why, **body}, 503, headers)
        return JSONResponse({"status": state.value, **body}, headers=headers)


class _Server(uvicorn.Server):
    """uvicorn that says goodbye to devices before it closes their sockets."""

    def __init__(self, config: uvicorn.Config, application: Application) -> None:
        super().__init__(config)
        self._application = application

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(WAITING)  # uvicorn's bound is also on how many are taken in one go

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._application.drain()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs this: uvicorn would raise them again, and a clean stop would look like a crash."""
        yield


def listen(config: ServeConfig) -> socket.socket:
    """A listening socket. Raises UsageError if the address or the port cannot be had."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    # asyncio turns Nagle's algorithm off only where the protocol is named; with it small frames wait 40 ms for an ACK.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((config.host, config.port))
        listener.listen(WAITING)
    except OSError as error:
        listener.close()
        why = error.strerror or str(error)
        raise UsageError(f"cannot listen on {config.host}:{config.port} ({why}): choose another --host or --port") from error
    return listener


def address(listener: socket.socket) -> str:
    """The WebSocket address of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"ws://[{host}]:{port}" if ":" in host else f"ws://{host}:{port}"


def server_of(cloud: Cloud, config: ServeConfig | None = None) -> uvicorn.Server:
    """A server of this cloud, ready to `serve(sockets=[listener])`; `should_exit` stops it."""
    config = config or ServeConfig()
    application = Application(cloud, config.timeouts)
    return _Server(DoorConfig(application.app, Doors(config), cloud.limits), application)


def serve(cloud: Cloud, listener: socket.socket, config: ServeConfig | None = None) -> None:
    """Serve until SIGINT or SIGTERM, then say goodbye to every device and return. A second SIGINT does not wait."""
    raise_descriptors()
    server = server_of(cloud, config)

    def stop(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and server.should_exit:
            os._exit(130)
        server.handle_exit(number, frame)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    asyncio.run(server.serve(sockets=[listener]))


@asynccontextmanager
async def serving(cloud: Cloud, config: ServeConfig) -> AsyncIterator[str]:
    """A cloud served inside this event loop, for tests and benchmarks: gives its address."""
    listener = listen(config)
    server = server_of(cloud, config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started:
            await asyncio.sleep(0.005)
        yield address(listener)
    finally:
        server.should_exit = True
        await task

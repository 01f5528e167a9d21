"""The cloud as an ASGI application (WebSocket at `/`, `/health`), and the process that serves it."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from antiphon.cloud.connection import CloudConnection
from antiphon.cloud.service import Cloud
from antiphon.config import ServeConfig
from antiphon.errors import AntiphonError, LinkError, ProtocolError, UsageError
from antiphon.models.base import public_name

HEALTH_SECONDS = 30.0


class ServerTransport:
    """The server's end of a WebSocket."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def send(self, frame: bytes) -> None:
        """Send one binary message."""
        try:
            await self._socket.send_bytes(frame)
        except (WebSocketDisconnect, RuntimeError) as error:
            raise LinkError("the device went away") from error

    async def receive(self) -> bytes:
        """The next binary message; text is a fault of the device."""
        try:
            message = await self._socket.receive()
        except (WebSocketDisconnect, RuntimeError) as error:
            raise LinkError("the device went away") from error
        if message["type"] == "websocket.disconnect":
            raise LinkError("the device went away")
        frame = message.get("bytes")
        if frame is None:
            raise ProtocolError("frames are binary, this one is text")
        return bytes(frame)

    async def close(self, reason: str = "") -> None:
        """Close the socket, if it is open."""
        states = (self._socket.client_state, self._socket.application_state)
        if WebSocketState.DISCONNECTED not in states:
            try:
                await self._socket.close(reason=reason[:100])
            except (WebSocketDisconnect, RuntimeError):
                return  # the device closed it at the same time


class Application:
    """The ASGI application of one cloud; `app` is what a server runs."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self._connections: set[CloudConnection] = set()
        routes = [WebSocketRoute("/", self._websocket), Route("/health", self._health)]
        self.app = Starlette(routes=routes)

    async def drain(self) -> None:
        """Say goodbye to every device."""
        leaving = [connection.leave("the cloud is stopping") for connection in list(self._connections)]
        await asyncio.gather(*leaving)

    async def _websocket(self, socket: WebSocket) -> None:
        await socket.accept()
        connection = CloudConnection(self.cloud, ServerTransport(socket))
        self._connections.add(connection)
        try:
            await connection.serve()
        finally:
            self._connections.discard(connection)

    async def _health(self, request: Request) -> JSONResponse:
        body = {"model": public_name(self.cloud.model), "connections": len(self._connections)}
        try:
            async with asyncio.timeout(HEALTH_SECONDS):
                await self.cloud.generate_one()
        except (AntiphonError, TimeoutError) as error:
            return JSONResponse({"status": "failing", "why": str(error) or "the model does not answer", **body}, 503)
        return JSONResponse({"status": "ok", **body})


class _Server(uvicorn.Server):
    """uvicorn that says goodbye to devices before it closes their sockets."""

    def __init__(self, config: uvicorn.Config, application: Application) -> None:
        super().__init__(config)
        self._application = application

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
        listener.listen(128)
    except OSError as error:
        listener.close()
        why = error.strerror or str(error)
        raise UsageError(f"cannot listen on {config.host}:{config.port} ({why}): choose another --host or --port") from error
    return listener


def address(listener: socket.socket) -> str:
    """The WebSocket address of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"ws://[{host}]:{port}" if ":" in host else f"ws://{host}:{port}"


def server_of(cloud: Cloud) -> uvicorn.Server:
    """A server of this cloud, ready to `serve(sockets=[listener])`; `should_exit` stops it."""
    application = Application(cloud)
    frame_bytes = 2 * cloud.limits.frame_bytes  # ours is the bound that explains itself; this one guards the memory
    config = uvicorn.Config(
        application.app,
        ws="websockets-sansio",
        ws_max_size=frame_bytes,
        ws_per_message_deflate=False,
        ws_ping_interval=20,  # finds devices that vanished without a word
        ws_ping_timeout=20,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=5,
    )
    return _Server(config, application)


def serve(cloud: Cloud, listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM, then say goodbye to every device and return. A second SIGINT does not wait."""
    server = server_of(cloud)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    asyncio.run(server.serve(sockets=[listener]))


@asynccontextmanager
async def serving(cloud: Cloud, config: ServeConfig) -> AsyncIterator[str]:
    """A cloud served inside this event loop, for tests and benchmarks: gives its address."""
    listener = listen(config)
    server = server_of(cloud)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started:
            await asyncio.sleep(0.005)
        yield address(listener)
    finally:
        server.should_exit = True
        await task

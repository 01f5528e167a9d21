"""The process that serves a cloud: uvicorn with bounds of its own, that says goodbye to devices before it stops."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType

import uvicorn

from antiphon.cloud.application import Application
from antiphon.cloud.doors import Doors, raise_descriptors
from antiphon.cloud.service import Cloud
from antiphon.cloud.sockets import DoorConfig
from antiphon.config import ServeConfig
from antiphon.errors import UsageError

WAITING = 1024
"""Connections that the system keeps until they are taken in."""


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

"""The protocols of a cloud's connections, uvicorn's own with bounds: on how many there are, on time, and on who may come."""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from antiphon.cloud.doors import ACCEPTED_AT_ONCE, FULL, Doors, foreign_page
from antiphon.config import Limits
from antiphon.transport.liveness import Liveness
from antiphon.wire.session import SMALL_FRAME_BYTES

EXTENSION = "antiphon.socket"
"""Where an application finds the `DeviceSocket` of its connection."""

TOLD_SECONDS = 0.5
"""That a connection stays which was told that there is no room."""
SMALL_BYTES = 2**16
"""Of a frame that is partly here which are not worth counting."""
MOST_FRAGMENTS = 1024
"""Of one WebSocket message."""


class DoorConfig(uvicorn.Config):
    """uvicorn's configuration, with the doors that its connections come in by."""

    def __init__(self, app: Any, doors: Doors, limits: Limits) -> None:
        self.doors, self.frame_bytes = doors, limits.frame_bytes
        super().__init__(
            app,
            http=Arrival,
            ws=DeviceSocket,
            ws_max_size=2 * min(SMALL_FRAME_BYTES, limits.frame_bytes),  # until it is ready
            ws_per_message_deflate=False,
            ws_ping_interval=None,  # a `Liveness` takes a frame that is partly here for a sign
            log_config=None,  # its own would close every handler of the program that a cloud is part of
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=5,
            backlog=ACCEPTED_AT_ONCE,
        )


class Arrival(H11Protocol):
    """A connection that asks for something, or will: in time, or it is ended."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let it in, or say that there is no room."""
        super().connection_made(transport)
        self._doors = cast(DoorConfig, self.config).doors
        self._upgraded, self._admitted = False, self._doors.admit(self)
        seconds = self._doors.config.timeouts.arrive
        if not self._admitted:
            seconds = self._refuse()
        self._timer = self.loop.call_later(seconds, self._due)

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        if self._admitted:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._timer.cancel()
        self._doors.leave(self)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """One answer, and no more: whoever asked without end would always be at work."""
        self.server_state.total_requests += 1
        self.transport.close()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Go on as a `DeviceSocket`."""
        self._upgraded = True
        self._timer.cancel()
        super().handle_websocket_upgrade(event)

    @property
    def at_work(self) -> bool:
        """Whether it is being answered."""
        return self._upgraded or (self.cycle is not None and not self.cycle.response_complete)

    def dismiss(self) -> None:
        """End it."""
        self.transport.abort()

    def _refuse(self) -> float:
        """Say that there is no room; the seconds that remain to read it."""
        if not self._doors.may_be_told(self):
            return 0.0
        self.transport.write(_plain(HTTPStatus.SERVICE_UNAVAILABLE, FULL))
        self.transport.write_eof()  # to close with a request unread would take the answer back
        return TOLD_SECONDS

    def _due(self) -> None:
        if self.at_work:
            self._timer = self.loop.call_later(self._doors.config.timeouts.arrive, self._due)
        else:
            self.dismiss()


class DeviceSocket(WebSocketsSansIOProtocol):
    """A device's WebSocket."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the place of the request that it began with."""
        super().connection_made(transport)
        config = cast(DoorConfig, self.config)
        self._doors, self._frame_bytes = config.doors, config.frame_bytes
        self.close_timeout = self._doors.config.timeouts.close
        self.why_lost, self._begun = "it went away", 0
        self.has_sessions: Callable[[], bool] = lambda: False  # until the application says how to tell
        self._pulse = Liveness(self.transport, self._doors.config.timeouts.lost, self._ping, self._lost)
        former = self.transport.get_protocol()
        if isinstance(former, Arrival):
            self._doors.become(former, self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._pulse.stop()
        self._doors.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        self._pulse.heard()
        self._begun += len(data)
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self._refuse(HTTPStatus.BAD_REQUEST, "this is no request that begins a WebSocket: connect with `antiphon`")
        if not self.transport.is_closing():
            self._doors.begun(self, self._begun if self._begun > SMALL_BYTES else 0)

    def pause_writing(self) -> None:
        """Watch whether it takes anything."""
        self._pulse.paused()
        super().pause_writing()

    def resume_writing(self) -> None:
        """It does."""
        self._pulse.resumed()
        super().resume_writing()

    def shutdown(self) -> None:
        """Close, and do not wait for what it does not take."""
        super().shutdown()
        self.loop.call_later(self.close_timeout, self.transport.abort)  # it may never take the rest

    def handle_connect(self, event: Request) -> None:
        """Let devices in, and no page of another origin."""
        headers = event.headers
        why = foreign_page(headers.get_all("Origin"), headers.get_all("Host"), self._doors.config.host)
        if why is None:
            super().handle_connect(event)
            if not self.close_sent:
                self.scope["extensions"][EXTENSION] = self  # type: ignore[assignment]
            return
        self._refuse(HTTPStatus.FORBIDDEN, why)

    def handle_cont(self, event: Frame) -> None:
        """Take a fragment; there are only so many in a message."""
        super().handle_cont(event)
        if len(self.frames) > MOST_FRAGMENTS:
            self.transport.abort()

    def send_receive_event_to_app(self) -> None:
        """A message is whole."""
        self._begun = 0
        if self.curr_msg_data_type == "text":
            self.frames = [b""]  # it is refused whatever it says, and may not even be text
        super().send_receive_event_to_app()

    def handle_ping(self) -> None:
        """Answer, unless it asks without reading the answers."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()  # the answer is not kept

    @property
    def at_work(self) -> bool:
        """Whether a session is under way."""
        return self.has_sessions()

    def ready(self) -> None:
        """The handshake is done: frames may be as long as the limits say, and twice that before the socket itself refuses."""
        self.conn.max_message_size = 2 * self._frame_bytes

    def dismiss(self) -> None:
        """End it at once."""
        self.transport.abort()

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        """Say why it does not come in."""
        self.handshake_complete = self.close_sent = True
        self.transport.write(_plain(status, why))
        self.transport.close()

    def _ping(self) -> None:
        if self.handshake_complete and not self.close_sent and not self.transport.is_closing():
            self.conn.send_ping(b"")
            self.transport.write(b"".join(self.conn.data_to_send()))

    def _lost(self, why: str) -> None:
        self.why_lost = why
        self.transport.abort()


def _plain(status: HTTPStatus, sentence: str) -> bytes:
    """A whole answer in one sentence."""
    body = f"{sentence}\n".encode()
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body

"""An answer that a device mixes with one or several clouds, each with documents of its own (METHODS 4)."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from antiphon.config import Request
from antiphon.device.connection import CLOSE_SECONDS, Connection, DeviceSession
from antiphon.device.host import Host, run_half
from antiphon.device.writing import opening
from antiphon.errors import LinkError, ProtocolError
from antiphon.methods.base import DeviceSide, Method
from antiphon.methods.effects import Finish
from antiphon.wire.messages import Closed
from antiphon.wire.session import TrafficCounter


class Mixture:
    """One answer under way. A cloud that is lost on the way is gone for this answer; the device goes on without it."""

    def __init__(self, method: Method, request: Request, seed: int, side: DeviceSide) -> None:
        self.traffic = TrafficCounter()
        self.closed: Closed | None = None
        self.prompt_tokens: int | None = None
        self._method, self._request, self._seed, self._side = method, request, seed, side

    async def run(self, connections: Sequence[Connection], host: Host) -> Finish:
        """Write it to its end, then tell the clouds to stop."""
        try:
            for end, connection in enumerate(connections):
                host.sessions.append(await self._opened(connection, host, end))
            return await run_half(self._method.device(self._side, self._request.options).run(), host)
        finally:
            await self._dismiss(host)

    async def _opened(self, connection: Connection, host: Host, end: int) -> DeviceSession:
        asked = opening(self._request, self._seed)
        try:
            return await connection.open(asked, host.inbox, end)
        except LinkError as lost:  # it broke since the last answer
            cloud = _identity(connection)
            await connection.mend(lost)
            if _identity(connection) != cloud:
                sentence = f"the cloud serves {connection.welcome.model} with other tokens or documents scored otherwise now"
                raise ProtocolError(f"{sentence}: ask again") from lost
            return await connection.open(asked, host.inbox, end)

    async def _dismiss(self, host: Host) -> None:
        """The answer is complete, so nothing that goes wrong here matters."""
        for session in host.sessions:
            with suppress(LinkError, ProtocolError):
                await session.cancel()
        words: list[Closed] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                while any(session.alive for session in host.sessions) or not host.inbox.empty():
                    _, arrived = await host.inbox.get()
                    words += [arrived] if isinstance(arrived, Closed) else []
        self.closed = _together(words) if words and len(words) == len(host.sessions) else None
        for session in host.sessions:
            self.traffic += session.traffic()
        self.prompt_tokens = host.sessions[0].prompt_tokens if host.sessions else None


def _identity(connection: Connection) -> tuple[bytes, str, tuple[str, ...]]:
    """What the device looked at before it asked this cloud."""
    welcome = connection.welcome
    return welcome.vocabulary, welcome.scorer, welcome.methods


def _together(words: Sequence[Closed]) -> Closed:
    """The costs of all clouds."""
    passes, milliseconds = sum(word.passes for word in words), sum(word.compute_ms for word in words)
    shared, rounding = any(word.shared for word in words), max(word.rounding for word in words)
    return Closed(words[0].reason, passes, milliseconds, shared, rounding)

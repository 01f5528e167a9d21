"""One answer under way with a cloud, over as many sessions as links break."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict

from antiphon.config import Request
from antiphon.device.answer import Answer
from antiphon.device.connection import MEND_SECONDS, Connection, DeviceSession
from antiphon.device.host import Host, now, run_half
from antiphon.errors import LinkError, ProtocolError, RemoteError
from antiphon.methods.base import DeviceSide, Method
from antiphon.methods.effects import Finish, Half
from antiphon.wire.messages import Closed, Open
from antiphon.wire.session import TrafficCounter

IN_VAIN = 10
"""Losses without a new token between them, after which an answer is given up."""


class Writing:
    """One answer under way with a cloud, over as many sessions as links break."""

    def __init__(self, method: Method, request: Request, seed: int, side: DeviceSide, answer: Answer) -> None:
        self.answer = answer
        self.traffic = TrafficCounter()
        self.closed: Closed | None = None
        self.prompt_tokens: int | None = None
        self.session = 0
        """The number of the last session."""
        self._method, self._request, self._seed, self._side = method, request, seed, side
        self._lost_at, self._in_vain = -1, 0
        self._refused_since: float | None = None

    async def run(self, connection: Connection, host: Host) -> Finish:
        """Write it to its end. After a loss it goes on where it was, in a new session."""
        cloud = connection.welcome.model, connection.common.digest
        while True:
            try:
                return await self._session(connection, host)
            except LinkError as lost:
                if self.answer.stopped:
                    return Finish.STOP
                if (finish := self._side.transcript.finish) is not None:
                    return host.finish(finish)  # only the cloud's last word was lost
                self._count_loss(lost)
                await connection.mend(lost)
            except RemoteError as refusal:
                await self._wait_for_room(refusal)
            if (connection.welcome.model, connection.common.digest) != cloud:
                name = connection.welcome.model
                raise ProtocolError(f"the cloud serves {name} now, so the answer cannot go on: ask again")

    def _count_loss(self, lost: LinkError) -> None:
        """Raise it if the cloud is lost at the same place again and again."""
        position = self._side.transcript.position
        if self._lost_at < position:
            self._lost_at, self._in_vain, self._refused_since = position, 0, None
        else:
            self._in_vain += 1
        self.answer.resumed += 1
        if self._in_vain >= IN_VAIN:
            raise lost

    async def _wait_for_room(self, refusal: RemoteError) -> None:
        """A cloud may still keep room for the session that was lost; it notices in a while. Raises any other refusal."""
        since = self._refused_since = now() if self._refused_since is None else self._refused_since
        if refusal.code != "busy" or not self.answer.resumed or now() - since > MEND_SECONDS:
            raise refusal
        await asyncio.sleep(1.0)

    async def _session(self, connection: Connection, host: Host) -> Finish:
        session = await connection.open(opening(self._request, self._seed, self._side.transcript.numbers))
        host.sessions, self.session = [session], session.number
        try:
            finish = await _run_over(session, self._method.device(self._side, self._request.options).run(), host)
            self.closed = await session.closed()
        finally:
            self.traffic += session.traffic()
            self.prompt_tokens = self.prompt_tokens or session.prompt_tokens
        return finish


async def _run_over(session: DeviceSession, half: Half, host: Host) -> Finish:
    """Run a half; whatever ends it before its time also ends the session in the cloud."""
    try:
        finish = await run_half(half, host)
    except BaseException:
        with suppress(LinkError, ProtocolError):
            await session.cancel()
        raise
    if finish is Finish.STOP:
        await session.cancel()
    return finish


def opening(request: Request, seed: int, committed: Sequence[int] = ()) -> Open:
    """What begins a session for this answer."""
    sampling = request.sampling
    options = {} if request.options is None else asdict(request.options)
    max_tokens = request.max_tokens
    return Open(request.method, options, sampling, request.prompt, request.chat, max_tokens, seed, tuple(committed))

"""One answer under way with any number of clouds: with none, with one, or, where documents are mixed, with several.

What a lost link means is the method's (`OnLoss`). An answer that cannot do without its cloud waits for it and goes on where it
was, in a new session that begins with the tokens so far (docs/protocol.md, "Going on after a lost connection").
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from enum import Enum

from antiphon.config import Request
from antiphon.device.answer import Answer
from antiphon.device.connection import MEND_SECONDS, Connection
from antiphon.device.host import Host, now, run_half
from antiphon.device.session import CLOSE_SECONDS, DeviceSession
from antiphon.errors import LinkError, ProtocolError, RemoteError
from antiphon.methods.base import DeviceSide, Method
from antiphon.methods.effects import Finish
from antiphon.wire.messages import Closed, Open
from antiphon.wire.session import TrafficCounter

IN_VAIN = 10
"""Losses without a new token between them, after which an answer is given up."""


class OnLoss(Enum):
    """What becomes of an answer whose link to a cloud is lost."""

    WAIT = "it waits for the cloud, and goes on with it where it was"
    DROP = "it goes on without the cloud"


class Runner:
    """One answer under way: the device half of its method, and a session with each of its clouds."""

    def __init__(self, method: Method, request: Request, seed: int, side: DeviceSide, answer: Answer) -> None:
        self.answer = answer
        self.traffic = TrafficCounter()
        self.closed: Closed | None = None
        self.prompt_tokens: int | None = None
        self.session = 0
        """The number of the last session with the one cloud; 0 if there is none, or if documents are mixed."""
        self._method, self._request, self._seed, self._side = method, request, seed, side
        self._on_loss = OnLoss.DROP if method.mixes else OnLoss.WAIT
        self._lost_at, self._in_vain = -1, 0
        self._refused_since: float | None = None

    async def run(self, connections: Sequence[Connection], host: Host) -> Finish:
        """Write it to its end."""
        while True:
            identities = list(map(self._identity, connections))
            try:
                return await self._attempt(connections, host)
            except LinkError as lost:
                if self._on_loss is OnLoss.DROP:
                    raise
                if (finish := self._complete(host)) is not None:
                    return finish
                await self._mend(connections, lost)
            except RemoteError as refusal:
                await self._wait_for_room(refusal)
            self._require_same(connections, identities)

    async def _attempt(self, connections: Sequence[Connection], host: Host) -> Finish:
        """From new sessions to the end of the answer, or to a loss that it waits for."""
        host.begin()
        try:
            for end, connection in enumerate(connections):
                host.sessions.append(await self._opened(connection, host, end))
            finish = await self._written(host)
            if not self._method.mixes:
                self.closed = together([await session.closed() for session in host.sessions])
            return finish
        finally:
            if self._method.mixes:  # its cloud half serves until it is told to stop
                await self._dismiss(host)
            self._count(host.sessions)

    async def _opened(self, connection: Connection, host: Host, end: int) -> DeviceSession:
        asked = opening(self._request, self._seed, self._side.transcript.numbers)
        try:
            return await connection.open(asked, host.inbox, end)
        except LinkError as lost:  # it broke since the last answer
            if self._on_loss is OnLoss.WAIT:
                raise
            identity = self._identity(connection)
            await connection.mend(lost)
            self._require_same([connection], [identity])
            return await connection.open(asked, host.inbox, end)

    async def _written(self, host: Host) -> Finish:
        """Run the half; whatever ends it before its time also ends the sessions in the clouds."""
        try:
            finish = await run_half(self._method.device(self._side, self._request.options).run(), host)
        except BaseException:
            await _cancel(host.sessions)
            raise
        if finish is Finish.STOP and not self._method.mixes:
            for session in host.sessions:
                await session.cancel()
        return finish

    def _complete(self, host: Host) -> Finish | None:
        """Why the answer is over though a link was lost: only the cloud's last word is missing then."""
        if self.answer.stopped:
            return Finish.STOP
        finish = self._side.transcript.finish
        return None if finish is None else host.finish(finish)

    async def _mend(self, connections: Sequence[Connection], lost: LinkError) -> None:
        """Connect anew. Raises the loss if it comes again and again at the same place."""
        position = self._side.transcript.position
        if self._lost_at < position:
            self._lost_at, self._in_vain, self._refused_since = position, 0, None
        else:
            self._in_vain += 1
        self.answer.resumed += 1
        if self._in_vain >= IN_VAIN:
            raise lost
        for connection in connections:
            await connection.mend(lost)

    async def _wait_for_room(self, refusal: RemoteError) -> None:
        """A cloud may still keep room for the session that was lost; it notices in a while. Raises any other refusal."""
        since = self._refused_since = now() if self._refused_since is None else self._refused_since
        if refusal.code != "busy" or not self.answer.resumed or now() - since > MEND_SECONDS:
            raise refusal
        await asyncio.sleep(1.0)

    async def _dismiss(self, host: Host) -> None:
        """The answer is complete, so nothing that goes wrong here matters."""
        await _cancel(host.sessions)
        words: list[Closed] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                while any(session.alive for session in host.sessions) or not host.inbox.empty():
                    _, arrived = await host.inbox.get()
                    words += [arrived] if isinstance(arrived, Closed) else []
        self.closed = together(words) if len(words) == len(host.sessions) else None

    def _count(self, sessions: Sequence[DeviceSession]) -> None:
        for session in sessions:
            self.traffic += session.traffic()
        if sessions:
            self.prompt_tokens = self.prompt_tokens or sessions[0].prompt_tokens
            self.session = 0 if self._method.mixes else sessions[0].number

    def _identity(self, connection: Connection) -> tuple[object, ...]:
        """What the device looked at before it asked this cloud: with another one the answer cannot go on."""
        welcome = connection.welcome
        if self._method.mixes:
            return welcome.vocabulary, welcome.scorer, welcome.methods
        return welcome.model, connection.common.digest

    def _require_same(self, connections: Sequence[Connection], identities: Sequence[tuple[object, ...]]) -> None:
        for connection, identity in zip(connections, identities, strict=True):
            if self._identity(connection) != identity:
                raise ProtocolError(f"the cloud serves {self._now_serves(connection)}: ask again")

    def _now_serves(self, connection: Connection) -> str:
        name = connection.welcome.model
        if self._method.mixes:
            return f"{name} with other tokens or documents scored otherwise now"
        return f"{name} now, so the answer cannot go on"


async def _cancel(sessions: Sequence[DeviceSession]) -> None:
    for session in sessions:
        with suppress(LinkError, ProtocolError):
            await session.cancel()


def opening(request: Request, seed: int, committed: Sequence[int] = ()) -> Open:
    """What begins a session for this answer."""
    sampling = request.sampling
    options = {} if request.options is None else asdict(request.options)
    max_tokens = request.max_tokens
    return Open(request.method, options, sampling, request.prompt, request.chat, max_tokens, seed, tuple(committed))


def together(words: Sequence[Closed]) -> Closed | None:
    """The costs of all clouds; None of none."""
    if not words:
        return None
    passes, milliseconds = sum(word.passes for word in words), sum(word.compute_ms for word in words)
    shared, rounding = any(word.shared for word in words), max(word.rounding for word in words)
    return Closed(words[0].reason, passes, milliseconds, shared, rounding)

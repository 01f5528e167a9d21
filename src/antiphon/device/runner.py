"""One answer under way with any number of clouds: with none, with one, or, where documents are mixed, with several.

What a lost link means is the method's (`OnLoss`). An answer that cannot do without its cloud waits for it and goes on where it
was, in a new session that begins with the tokens so far (docs/protocol.md, "Going on after a lost connection"), or, if it was
asked to, the device writes on alone meanwhile.

`Runner` has the half run, `Host` carries out what it asks for.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from typing import TypeVar

from antiphon.config import Request
from antiphon.core.distributions import Logits
from antiphon.device.answer import Answer, Piece
from antiphon.device.connection import LONGEST_PAUSE_SECONDS, MEND_SECONDS, Connection
from antiphon.device.sessions import IN_VAIN, ROOM_SECONDS, Identity, Sessions, require_same
from antiphon.engine.worker import Worker
from antiphon.errors import AntiphonError, LinkError, RemoteError
from antiphon.methods.base import Alone, DeviceSide, Method, OnLoss
from antiphon.methods.drive import drive
from antiphon.methods.effects import Arrived, Emit, Finish, Half, Provisional, Step
from antiphon.wire.messages import Closed, Message, Open
from antiphon.wire.session import TrafficCounter

Result = TypeVar("Result")

Show = Callable[[Sequence[Piece]], None]
"""Called once a round with the text that it brought, perhaps none yet."""


class _StopString(Exception):  # noqa: N818 - it is no error
    """A stop string came: the answer is over, whatever the method still plans."""


class _AloneNoMore(Exception):  # noqa: N818 - it is no error
    """A device that writes alone need not go on: the cloud is there again, or a stop string came."""


class Host:
    """Carries out what a device half asks for: in the model's thread, its sessions with clouds, and the answer that grows."""

    sessions: Sessions
    """Those of the answer, or of the part of it since the last loss."""
    back: "asyncio.Future[None] | None" = None
    """While the device writes alone: done once the cloud is there again, or given up."""

    def __init__(self, worker: Worker, answer: Answer, show: Show) -> None:
        self._worker = worker
        self._answer, self._show = answer, show

    async def compute(self, call: Callable[[], Result]) -> Result:
        """Run a call in the model's thread."""
        return await self._worker.run(call)

    def step(self, step: Step) -> Logits:
        """Run a pass."""
        return self._worker.timed(step.run, len(step.tokens), step.keep + len(step.tokens))[0]

    async def send(self, message: Message, to: int) -> None:
        """Send to a cloud."""
        await self.sessions.send(message, to)

    async def receive(self, within: float | None) -> Message | None:
        """The next message of the one cloud."""
        return await self.sessions.receive(within)

    async def receive_any(self, within: float | None) -> Arrived | None:
        """The next message of any cloud."""
        return await self.sessions.receive_any(within)

    def now(self) -> float:
        """The time in seconds."""
        return now()

    def came(self) -> float:
        """When the message that was received last had arrived."""
        return self.sessions.inbox.came

    async def emit(self, emit: Emit) -> None:
        """Add to the answer, and show it."""
        self._show(self._answer.take(emit, now()))
        # By an exception and not a flag: the half is a generator, which ends wherever it is without a say in it.
        if self._answer.stopped:
            raise _StopString
        self._require_alone()

    async def propose(self, provisional: Provisional) -> None:
        """Show what follows the answer for now."""
        pieces, stopped = self._answer.propose(provisional)
        if pieces:
            self._show(pieces)
        # The answer does not end at a stop string that a cloud has not seen, but nobody would read what comes behind it.
        if self.back is not None and stopped:
            raise _AloneNoMore
        self._require_alone()

    def _require_alone(self) -> None:
        if self.back is not None and self.back.done():
            raise _AloneNoMore

    def finish(self, finish: Finish) -> Finish:
        """Show what was held back. Why the answer ended: perhaps at a stop string that was found only now."""
        if pieces := self._answer.end():
            self._show(pieces)
        return Finish.STOP if self._answer.stopped else finish

    def leave(self) -> None:
        """Show what was held back of an answer that goes on no more; what is provisional stays where it was shown."""
        if not self._answer.unsettled.numbers and (pieces := self._answer.end()):
            self._show(pieces)


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
        self._lost_at, self._in_vain, self._begun = -1, 0, False
        self._refused_since: float | None = None

    async def run(self, connections: Sequence[Connection], known: Sequence[Identity], host: Host) -> Finish:
        """Write it to its end. known: who the clouds were when the device looked at them."""
        try:
            return await self._run(connections, known, host)
        except LinkError:
            host.leave()
            raise

    async def _run(self, connections: Sequence[Connection], known: Sequence[Identity], host: Host) -> Finish:
        while True:
            # Before each attempt, the first one too, for it may have waited for room while another answer had a link made anew:
            # an answer that went on with another model would be neither's.
            for connection, one in zip(connections, known, strict=True):
                require_same(connection, self._method, one)
            try:
                return await self._attempt(connections, host)
            except LinkError as lost:
                if self._method.on_loss is not OnLoss.WAIT:
                    raise
                if (finish := self._complete(host) or await self._after(lost, connections, host)) is not None:
                    return finish
            except RemoteError as refusal:
                await self._wait_for_room(refusal)

    async def _attempt(self, connections: Sequence[Connection], host: Host) -> Finish:
        """From new sessions to the end of the answer, or to a loss that it waits for."""
        sessions = host.sessions = Sessions(connections, self._opening, self._method)
        try:
            await sessions.open()
            self._begun = True
            async with self._timing(connections):
                finish = await self._written(sessions, host)
            if not self._method.mixes:
                self.closed = await sessions.closed()
            return finish
        finally:
            if self._method.mixes:  # their cloud halves serve until they are told to stop
                self.closed = await sessions.dismissed()
            self._count(sessions)

    @asynccontextmanager
    async def _timing(self, connections: Sequence[Connection]) -> AsyncIterator[None]:
        """Find out the round trip to the one cloud while the answer is written, for a method that hangs on it."""
        timing = asyncio.ensure_future(self._time(connections[0])) if self._method.coupled and connections else None
        try:
            yield
        finally:
            if timing is not None:
                timing.cancel()
                await asyncio.wait([timing])

    async def _time(self, connection: Connection) -> None:
        with suppress(AntiphonError):  # whoever writes the answer is told of it too
            self._side.round_trip = await connection.ping()

    def _opening(self) -> Open:
        return opening(self._request, self._seed, self._side.transcript.numbers)

    async def _written(self, sessions: Sessions, host: Host) -> Finish:
        """Run the half; whatever ends it before its time also ends the sessions in the clouds."""
        try:
            finish = await run_half(self._method.device(self._side, self._request.options).run(), host)
        except BaseException:
            await sessions.cancel()
            raise
        if finish is Finish.STOP and not self._method.mixes:
            for session in sessions.now:
                await session.cancel()
        return finish

    def _complete(self, host: Host) -> Finish | None:
        """Why the answer is over though a link was lost: only the cloud's last word is missing then."""
        if self.answer.stopped:
            return Finish.STOP
        finish = self._side.transcript.finish
        return None if finish is None else host.finish(finish)

    async def _after(self, lost: LinkError, connections: Sequence[Connection], host: Host) -> Finish | None:
        """Go on after a loss as the request says: until the cloud is there again, or why the answer is over without it."""
        # One that broke before the answer began is no loss of this answer: it is made anew as for any other.
        if self._request.on_loss == "fail" and self._begun:
            raise lost
        self._require_progress(lost)
        if self._request.on_loss == "local" and self._method.alone is not None:
            return await self._alone(self._method.alone, connections[0], lost, host)
        for connection in connections:
            await connection.mend(lost)
        return None

    async def _alone(self, alone: Alone, connection: Connection, lost: LinkError, host: Host) -> Finish | None:
        """Write on until the cloud is back. Why the answer is over, if all of it was written; else it is waited for."""
        back = host.back = asyncio.ensure_future(_back(connection, lost))
        try:
            half = alone(self._side, self._request.options, keep=self._request.on_return == "keep")
            with suppress(_AloneNoMore, _StopString):
                await drive(half, host)
            if (finish := self._complete(host)) is not None:
                return finish
            await asyncio.wait([back], timeout=connection.mend_seconds)
            if not back.done():
                raise LinkError(self._not_back(connection, lost))
            await back
            return None
        finally:
            host.back = None
            back.cancel()
            await asyncio.wait([back])

    def _not_back(self, connection: Connection, lost: LinkError) -> str:
        behind = len(self.answer.unsettled.numbers)
        sentence = f"{lost}, and it did not come back within {connection.mend_seconds:g} s after the device had written alone"
        return f"{sentence}: {self.answer.committed} tokens stand, and the {behind} behind them are not verified"

    def _require_progress(self, lost: LinkError) -> None:
        """Raise the loss if it comes again and again at the same place."""
        position = self._side.transcript.position
        # A loss is in vain if no token came since the one before: a link that breaks always at one frame must not be tried for
        # ever.
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
        await asyncio.sleep(ROOM_SECONDS)

    def _count(self, sessions: Sessions) -> None:
        self.traffic += sessions.traffic()
        self.answer.resumed += sessions.rejoined
        if sessions.now:
            first = sessions.now[0]
            self.prompt_tokens = self.prompt_tokens or first.prompt_tokens
            self.session = 0 if self._method.mixes else first.number


async def _back(connection: Connection, lost: LinkError) -> None:
    """Connect anew, and try for as long as somebody waits for it."""
    while True:
        try:
            return await connection.mend(lost)
        except LinkError:
            await asyncio.sleep(LONGEST_PAUSE_SECONDS)


async def run_half(half: Half, host: Host) -> Finish:
    """Run a half to its end, or to a stop string."""
    try:
        finish = await drive(half, host)
    except _StopString:
        return Finish.STOP
    return host.finish(finish)


def now() -> float:
    """The running loop's time in seconds."""
    return asyncio.get_running_loop().time()


def opening(request: Request, seed: int, committed: Sequence[int] = ()) -> Open:
    """What begins a session for this answer."""
    sampling = request.sampling
    options = {} if request.options is None else asdict(request.options)
    max_tokens = request.max_tokens
    return Open(request.method, options, sampling, request.prompt, request.chat, max_tokens, seed, tuple(committed))

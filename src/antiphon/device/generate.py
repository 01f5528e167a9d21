"""Writing one answer: a device half driven over a connection, or alone."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, replace
from typing import Any

from antiphon.config import Request, SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.core.distributions import Logits
from antiphon.device.answer import Answer, Piece, Result
from antiphon.device.connection import MEND_SECONDS, Connection, DeviceSession
from antiphon.errors import LinkError, ProtocolError, RemoteError, UsageError
from antiphon.methods import METHODS, find
from antiphon.methods.base import DeviceSide, Method, Transcript
from antiphon.methods.drafter import Drafter
from antiphon.methods.effects import Effect, Emit, Finish, Half, Step, drive
from antiphon.models.base import Model
from antiphon.models.chat import prompt_ids
from antiphon.net.worker import Worker
from antiphon.vocabulary import CommonVocabulary, identity
from antiphon.wire.messages import Closed, Message, Open
from antiphon.wire.session import Ledger

Show = Callable[[Sequence[Piece]], None]
"""Called once a round with the text that it brought, perhaps none yet."""


class _StopString(Exception):  # noqa: N818 - it is no error
    """A stop string came: the answer is over, whatever the method still plans."""


class Device:
    """A device: its model, if it has one, and the thread that the model computes in."""

    def __init__(self, model: Model | None, methods: Mapping[str, Method] = METHODS, worker: Worker | None = None) -> None:
        self.model = model
        self.methods = methods
        self.worker = worker or Worker()

    def close(self) -> None:
        """Free the model."""
        self.worker.close()
        if self.model is not None:
            self.model.close()

    async def generate(self, request: Request, connection: Connection | None, show: Show = lambda pieces: None) -> Result:
        """Write one answer, showing text as it comes. Raises one of `antiphon.errors`, one sentence each."""
        method = find(request.method, self.methods)
        request = _with_options(request, method)
        seed = secrets.randbits(64) if request.seed is None else request.seed
        if method.cloud is None:
            return await self._alone(method, request, seed, show)
        if connection is None:
            raise UsageError(f"the method {method.name} needs a cloud: give --cloud ws://HOST:PORT")
        return await self._together(method, request, seed, connection, show)

    async def _together(self, method: Method, request: Request, seed: int, connection: Connection, show: Show) -> Result:
        if method.name not in connection.welcome.methods:
            known = ", ".join(connection.welcome.methods)
            raise UsageError(f"the cloud does not know the method {method.name}: it has {known}")
        common = connection.common
        async with self._side(method, request, common, seed) as side:
            writing = _Writing(method, request, seed, side, Answer(common, request.stop, _now()))
            finish = await writing.run(connection, _Host(self.worker, writing.answer, show))
        answer, ledger = writing.answer, writing.ledger
        token_ids = tuple(common.cloud_ids[answer.numbers].tolist())
        form = method.bits(answer.work(), common, request.options) if method.bits else None
        return Result(
            method.name, method.exact, finish, answer, token_ids, seed, ledger, writing.closed, writing.prompt_tokens, form
        )

    async def _alone(self, method: Method, request: Request, seed: int, show: Show) -> Result:
        if self.model is None:
            raise UsageError(f"the method {method.name} needs a model on the device: give --model")
        common = identity(self.model.vocabulary)
        async with self._side(method, request, common, seed) as side:
            answer = Answer(common, request.stop, _now())
            finish = await _run(method.device(side, request.options).run(), _Host(self.worker, answer, show))
        token_ids = tuple(answer.numbers)
        return Result(method.name, method.exact, finish, answer, token_ids, seed, Ledger(), None, None)

    @asynccontextmanager
    async def _side(self, method: Method, request: Request, common: CommonVocabulary, seed: int) -> AsyncIterator[DeviceSide]:
        transcript, chance = Transcript(common.ends, request.max_tokens), PhiloxChance(seed)
        if not method.drafts:
            yield DeviceSide(common, transcript, chance)
            return
        model = self.model
        if model is None:
            raise UsageError(f"the method {method.name} drafts on the device: give --model")
        chat = request.chat and model.chat_template is not None  # a drafter without a template drafts from the bare prompt
        prompt = await self.worker.run(lambda: prompt_ids(model, request.prompt, chat=chat))
        context = await self.worker.run(model.open)
        try:
            yield DeviceSide(common, transcript, chance, Drafter(model, context, prompt, common, request.sampling))
        finally:
            await self.worker.run(context.close)


IN_VAIN = 10
"""Losses without a new token between them, after which an answer is given up."""


class _Writing:
    """One answer under way with a cloud, over as many sessions as links break."""

    def __init__(self, method: Method, request: Request, seed: int, side: DeviceSide, answer: Answer) -> None:
        self.answer = answer
        self.ledger = Ledger()
        self.closed: Closed | None = None
        self.prompt_tokens: int | None = None
        self._method, self._request, self._seed, self._side = method, request, seed, side
        self._lost_at, self._in_vain = -1, 0
        self._refused_since: float | None = None

    async def run(self, connection: Connection, host: "_Host") -> Finish:
        """Write it to its end. After a loss it goes on where it was, in a new session."""
        cloud = connection.welcome.model, connection.common.digest
        while True:
            try:
                return await self._session(connection, host)
            except LinkError as lost:
                if self.answer.stopped:
                    return Finish.STOP
                if (finish := self._side.transcript.finish) is not None:
                    host.finish()
                    return finish  # only the cloud's last word was lost
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
        self._in_vain = self._in_vain + 1 if self._lost_at == position else 0
        self._lost_at = position
        self.answer.resumed += 1
        if self._in_vain >= IN_VAIN:
            raise lost

    async def _wait_for_room(self, refusal: RemoteError) -> None:
        """A cloud may still keep room for the session that was lost; it notices in a while. Raises any other refusal."""
        since = self._refused_since = self._refused_since or _now()
        if refusal.code != "busy" or not self.answer.resumed or _now() - since > MEND_SECONDS:
            raise refusal
        await asyncio.sleep(1.0)

    async def _session(self, connection: Connection, host: "_Host") -> Finish:
        opening = _opening(self._request, self._seed, self._side.transcript.numbers)
        session = host.session = await connection.open(opening)
        try:
            finish = await _run_over(session, self._method.device(self._side, self._request.options).run(), host)
            self.closed = await session.closed()
        finally:
            self.ledger += session.ledger()
            self.prompt_tokens = self.prompt_tokens or session.prompt_tokens
        return finish


async def _run_over(session: DeviceSession, half: Half, host: "_Host") -> Finish:
    """Run a half; whatever ends it before its time also ends the session in the cloud."""
    try:
        finish = await _run(half, host)
    except BaseException:
        with suppress(LinkError, ProtocolError):
            await session.cancel()
        raise
    if finish is Finish.STOP:
        await session.cancel()
    return finish


class _Host:
    """Carries out what a device half asks for."""

    session: DeviceSession | None = None

    def __init__(self, worker: Worker, answer: Answer, show: Show) -> None:
        self._worker = worker
        self._answer, self._show = answer, show

    async def compute(self, call: Callable[[], Effect | Finish]) -> Effect | Finish:
        return await self._worker.run(call)

    def step(self, step: Step) -> Logits:
        return self._worker.timed(step.run, len(step.tokens), step.keep + len(step.tokens))[0]

    async def send(self, message: Message) -> None:
        await self._linked().send(message)

    async def receive(self, within: float | None) -> Message | None:
        return await self._linked().receive(within)

    def now(self) -> float:
        return _now()

    async def emit(self, emit: Emit) -> None:
        self._show(self._answer.take(emit, _now()))
        if self._answer.stopped:
            raise _StopString

    def finish(self) -> None:
        """Show what was held back."""
        if pieces := self._answer.end():
            self._show(pieces)

    def _linked(self) -> DeviceSession:
        if self.session is None:
            raise ProtocolError("a method without a cloud half sends and receives nothing")
        return self.session


class _LinkHost:
    """Carries out a half that only sends and receives."""

    def __init__(self, session: DeviceSession) -> None:
        self.send = session.send
        self.receive = session.receive
        self.now = _now

    async def compute(self, call: Callable[[], Effect | Finish]) -> Effect | Finish:
        return call()

    def step(self, step: Step) -> Logits:
        raise ProtocolError("this half has no model")

    async def emit(self, emit: Emit) -> None:
        """Nobody reads here."""


async def drive_session(half: Half, session: DeviceSession) -> Finish:
    """Run a half that needs no model over a session."""
    return await drive(half, _LinkHost(session))


async def _run(half: Half, host: _Host) -> Finish:
    try:
        finish = await drive(half, host)
    except _StopString:
        return Finish.STOP
    host.finish()
    return finish


def _with_options(request: Request, method: Method) -> Request:
    options: Any = method.options() if request.options is None else request.options
    fits = isinstance(options, method.options)
    if not fits:
        given, wanted = type(options).__name__, method.options.__name__
        raise UsageError(f"the options of {method.name} are {wanted}, not {given}: make them with Method.options_from")
    return replace(request, options=options)


def _opening(request: Request, seed: int, committed: Sequence[int]) -> Open:
    sampling: SamplingParams = request.sampling
    options = {} if request.options is None else asdict(request.options)
    max_tokens = request.max_tokens
    return Open(request.method, options, sampling, request.prompt, request.chat, max_tokens, seed, tuple(committed))


def _now() -> float:
    return asyncio.get_running_loop().time()

"""A device and the answers that it writes: a half driven over connections to clouds, or alone."""

import asyncio
import logging
import os
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from antiphon.config import Limits, ModelConfig, Request, Timeouts
from antiphon.core.chance import PhiloxChance, answer_key
from antiphon.device.answer import Answer, Result
from antiphon.device.clouds import Clouds
from antiphon.device.connection import Connection
from antiphon.device.disclosure_log import disclosure_log
from antiphon.device.fitting import require_clouds, require_documents, require_fit, require_given, require_loss
from antiphon.device.room import Room
from antiphon.device.runner import Host, Runner, Show, now
from antiphon.device.sessions import Identity
from antiphon.device.sessions import identity as cloud_identity
from antiphon.device.stream import Stream
from antiphon.engine.worker import Worker
from antiphon.errors import ModelError, UsageError
from antiphon.methods import find
from antiphon.methods.base import DeviceMixing, DeviceSide, Method, Transcript
from antiphon.methods.drafter import Drafter
from antiphon.methods.effects import Finish
from antiphon.methods.mixture.context_budget import fitted, together
from antiphon.methods.speculative.options import MAX_AHEAD, MAX_TREE_NODES
from antiphon.models.base import Model
from antiphon.models.catalog import AnyModel, model_of
from antiphon.models.chat import prompt_ids
from antiphon.options import options_of
from antiphon.retrieval.context import Looked, context, look
from antiphon.retrieval.opening import AnyLibrary, library_of
from antiphon.vocabulary import CommonVocabulary, identity

MOST_AHEAD = MAX_AHEAD + MAX_TREE_NODES
"""Drafts behind an answer's end that a device's context may hold at most."""

log = logging.getLogger(__name__)


class Device:
    """A device: its model, its documents, and the clouds that write with it; for one `async with` block.

    model: itself, or what names it (see `ModelConfig`), and the device's own from then on; None for methods that need none
    here. cloud: an address such as ws://127.0.0.1:8765, or several; `ws://a,ws://b` are two of one cloud, of which the other
    goes on with an answer that one of them leaves. Each cloud is connected to when an answer first needs it, and
    again when it was lost. library: documents for the methods that mix them, an open index or where it lies; what is opened
    here is closed here. disclosure_log: a file to which every frame that leaves is added before it does. timeouts: how long a
    cloud is waited for. methods: by name; None for all that there are. worker: the thread that the model computes in.

    Answers can be written at the same time; where they would not fit beside each other, they wait.
    """

    def __init__(
        self,
        model: AnyModel | None = None,
        *,
        cloud: str | Sequence[str] | None = None,
        library: AnyLibrary | None = None,
        disclosure_log: str | os.PathLike[str] | None = None,
        timeouts: Timeouts | None = None,
        methods: Mapping[str, Method] | None = None,
        worker: Worker | None = None,
    ) -> None:
        addresses = (cloud,) if isinstance(cloud, str) else tuple(cloud or ())
        self.methods = methods
        self.worker = worker or Worker()
        self.model = None if isinstance(model, str | os.PathLike | ModelConfig) else model
        self.library = None if isinstance(library, str | os.PathLike) else library
        self.clouds = Clouds(addresses, timeouts)
        self._given, self._log_path = (model, library), disclosure_log
        self._opened, self._closed = ExitStack(), False
        self._answers, self._cells = Room(), Room()
        self._streaming: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        """Open the library and the disclosure log, and load the model. Raises one of `antiphon.errors`."""
        try:
            await self._open()
        except BaseException:
            self.close()
            raise
        return self

    async def _open(self) -> None:
        """Everything that can fail here does before anything leaves the device."""
        model, library = self._given
        if library is not None:
            self.library = library_of(library, self._opened)
        if self._log_path is not None:
            self.clouds.log = self._opened.enter_context(disclosure_log(Path(self._log_path), self.clouds.addresses))
        if model is not None:
            await self.worker.run(lambda: self._load(model))

    def _load(self, model: AnyModel) -> None:
        self.model = model_of(model)  # kept at once, so that it is freed also where whoever waits for it is cancelled

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the streams that are under way, say goodbye to the clouds, and free everything."""
        try:
            # Streams first: each tells its clouds to stop, which takes the connections that are closed behind it.
            for task in self._streaming:
                task.cancel()
            if self._streaming:
                await asyncio.wait(self._streaming)
            await self.clouds.close()
        finally:
            self.close()

    def close(self) -> None:
        """Free the model, and close what was opened."""
        self._closed = True
        # The thread first, for a pass under way uses the model that is freed behind it.
        self.worker.close()
        if self.model is not None:
            self.model.close()
        self._opened.close()

    async def connect(self) -> list[Connection]:
        """Connect to the clouds now, not only when an answer needs them. Raises one of `antiphon.errors`."""
        self._require_open()
        return await self.clouds.connected(self.model, self.worker)

    def stream(self, request: Request | str) -> Stream:
        """Write one answer, piece by piece: `async for piece in device.stream(request)`."""
        return Stream(lambda show: self._streamed(request, show))

    async def _streamed(self, request: Request | str, show: Show) -> Result:
        """In a task of its own, which ends with the device."""
        task = asyncio.current_task()
        assert task is not None  # coroutines run in one
        self._streaming.add(task)
        try:
            return await self.generate(request, show=show)
        finally:
            self._streaming.discard(task)

    async def generate(
        self,
        request: Request | str,
        connection: Connection | Sequence[Connection] | None = None,
        show: Show = lambda pieces: None,
    ) -> Result:
        """Write one answer, showing text as it comes. Raises one of `antiphon.errors`, one sentence each.

        request: a prompt alone stands for `Request(prompt)`. connection: to a cloud, or to several, in place of the device's.
        """
        request = Request(request) if isinstance(request, str) else request
        method = find(request.method, self.methods)
        request = _with_options(request, method)
        require_loss(method, request)
        # Drawn once, here: a resumed answer, and `--check`, need the same one again.
        seed = secrets.randbits(64) if request.seed is None else request.seed
        connections = await self._connected(method, connection)
        known = [cloud_identity(one, method) for one in connections]
        async with self._answers.holding(1, _at_once(connections)):
            return await self._written(method, request, seed, connections, known, show)

    async def _written(
        self,
        method: Method,
        request: Request,
        seed: int,
        connections: Sequence[Connection],
        known: Sequence[Identity],
        show: Show,
    ) -> Result:
        common, looked = self._common(method, connections), await self._looked(method, request) if method.mixes else None
        async with self._side(method, request, common, seed, looked, len(connections)) as side:
            runner = Runner(method, request, seed, side, Answer(common, request.stop, now()))
            finish = await runner.run(connections, known, Host(self.worker, runner.answer, show))
        return _result(method, request, seed, finish, runner, common, looked)

    async def _connected(self, method: Method, given: Connection | Sequence[Connection] | None) -> list[Connection]:
        """Connections to as many clouds as the method needs, which fit. Raises UsageError."""
        connections = await self._own(method) if given is None else [given] if isinstance(given, Connection) else list(given)
        if method.cloud is None:
            return []
        require_clouds(method, connections)
        for one in connections:
            require_fit(method, one, self.model, self.library)
        return connections

    async def _own(self, method: Method) -> list[Connection]:
        """The connections of this device, as far as the method asks clouds."""
        model, library = self._given
        require_given(method, model=model, clouds=self.clouds.addresses, library=library)
        self._require_open()
        if method.cloud is None:
            return []
        connections = await self.clouds.connected(self.model, self.worker)
        for address, one in zip(self.clouds.addresses, connections, strict=True):
            require_documents(method, one, address)
        return connections

    def _require_open(self) -> None:
        model, library = self._given
        unopened = (model is not None and self.model is None) or (library is not None and self.library is None)
        if unopened or self._closed:
            raise UsageError("the device is not open: write `async with Device(...) as device`")

    def _common(self, method: Method, connections: Sequence[Connection]) -> CommonVocabulary:
        """The tokens of the answer. Raises UsageError if nobody is there to have any."""
        if connections:
            return connections[0].common
        if self.model is None:
            raise UsageError(f"the method {method.name} needs a model on the device: give --model")
        return identity(self.model.vocabulary)

    @asynccontextmanager
    async def _side(
        self,
        method: Method,
        request: Request,
        common: CommonVocabulary,
        seed: int,
        looked: Looked | None,
        clouds: int,
    ) -> AsyncIterator[DeviceSide]:
        transcript = Transcript(common.ends, request.max_tokens)
        chance = PhiloxChance(answer_key(seed, request.prompt, chat=request.chat))
        if not method.drafts:
            yield DeviceSide(common, transcript, chance)
            return
        model = self.model
        if model is None:
            raise UsageError(f"the method {method.name} drafts on the device: give --model")
        chat = request.chat and model.chat_template is not None  # a drafter without a template drafts from the bare prompt
        room = _room(model, request)
        form: Any = None if looked is None else request.options.prompt_format
        if looked is not None:
            prompt = await self.worker.run(lambda: prompt_ids(model, context(looked.passages, request.prompt, form), chat=chat))
        else:
            read = prompt_ids if method.cloud is None or method.mixes else _drafting_prompt
            prompt = await self.worker.run(lambda: read(model, request.prompt, chat=chat))
        cells = model.context_length if looked is not None else len(prompt) + request.max_tokens + MOST_AHEAD
        async with self._cells.holding(cells, model.context_length), self.worker.holding(model.open) as opened:
            drafter = Drafter(model, opened, prompt, common, request.sampling)

            def reread(passages: Sequence[str]) -> None:
                own = looked.passages if looked else ()
                drafter.restart(together(model, passages, own, request.prompt, form, chat, room))

            sampled = request.sampling.temperature > 0
            mixing = None if looked is None else DeviceMixing(looked.log_mass, sampled, reread, clouds)
            yield DeviceSide(common, transcript, chance, drafter, mixing, goes_on=request.on_loss == "local")

    async def _looked(self, method: Method, request: Request) -> Looked:
        library = self.library
        if library is None:
            raise UsageError(f"the method {method.name} reads documents of the device: give --library FILE")
        options, model = request.options, self.model
        found = await self.worker.run(lambda: self.worker.searched(lambda: look(library, request.prompt, options.passages)))
        if model is None:
            return found
        chat, room = request.chat and model.chat_template is not None, _room(model, request)
        fits, _ = await self.worker.run(lambda: fitted(model, found, request.prompt, options.prompt_format, chat, room))
        return fits


def _result(
    method: Method,
    request: Request,
    seed: int,
    finish: Finish,
    runner: Runner,
    common: CommonVocabulary,
    looked: Looked | None,
) -> Result:
    answer = runner.answer
    token_ids = tuple(common.cloud_ids[answer.numbers].tolist())
    form = method.bits(answer.work(), common, request.options) if method.bits else None
    figures = runner.traffic, runner.closed, runner.prompt_tokens, form, looked, runner.session
    return Result(method.name, method.exact, finish, answer, token_ids, seed, *figures)


def _drafting_prompt(model: Model, text: str, *, chat: bool) -> list[int]:
    """What a drafter reads: a template that fails costs acceptance, not the answer, and is said once."""
    try:
        return prompt_ids(model, text, chat=chat)
    except ModelError:
        if not chat:
            raise
    log.warning("antiphon: the chat template of %s fails on this prompt, so the drafts follow the bare prompt", model.name)
    return prompt_ids(model, text, chat=False)


def _options(method: Method, given: Mapping[str, object]) -> Any:
    """The options of these names, their values as a command line takes them too. Raises UsageError for what does not fit."""
    known = {one.name: one for one in options_of(method.options)}
    named = {name.replace("-", "_"): value for name, value in given.items()}
    if unknown := sorted(named.keys() - known.keys()):
        raise UsageError(f"the method {method.name} has no option {unknown[0]}: it has {', '.join(known) or 'none'}")
    values = {name: known[name].value(value) if isinstance(value, str) else value for name, value in named.items()}
    try:
        return msgspec.convert(values, method.options)
    except msgspec.ValidationError as error:
        raise UsageError(f"an option of {method.name} does not fit: {error}") from error


def _at_once(connections: Sequence[Connection]) -> int:
    """Answers that may be under way at the same time: each has a session with every cloud."""
    most = (connection.welcome.limits.sessions_per_connection for connection in connections)
    return min(most, default=Limits().sessions_per_connection)


def _room(model: Model, request: Request) -> int:
    """Tokens that a prompt may have before an answer whose last token nobody reads."""
    return model.context_length - max(0, request.max_tokens - 1)


def _with_options(request: Request, method: Method) -> Request:
    options: Any = method.options() if request.options is None else request.options
    if isinstance(options, Mapping):
        options = _options(method, options)
    fits = isinstance(options, method.options)
    if not fits:
        given, wanted = type(options).__name__, method.options.__name__
        raise UsageError(f"the options of {method.name} are {wanted}, not {given}: make them with Method.options_from")
    return replace(request, options=options)

"""Writing one answer: a device half driven over a connection, over several, or alone."""

import logging
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from antiphon.config import Request
from antiphon.core.chance import PhiloxChance, answer_key
from antiphon.device.answer import Answer, Result
from antiphon.device.connection import Connection
from antiphon.device.host import Host, Show, now
from antiphon.device.runner import Runner
from antiphon.engine.worker import Worker
from antiphon.errors import ModelError, UsageError
from antiphon.methods import ALL_METHODS, find, require_no_baseline
from antiphon.methods.base import DeviceMixing, DeviceSide, Method, Transcript
from antiphon.methods.drafter import Drafter
from antiphon.methods.effects import Finish
from antiphon.methods.mixture.context_budget import fitted, together
from antiphon.models.base import Model
from antiphon.models.chat import prompt_ids
from antiphon.retrieval.context import Looked, context, look
from antiphon.retrieval.index import Index
from antiphon.vocabulary import CommonVocabulary, identity

log = logging.getLogger(__name__)


class Device:
    """A device: its model, if it has one, and the thread that the model computes in."""

    def __init__(
        self,
        model: Model | None,
        methods: Mapping[str, Method] = ALL_METHODS,
        worker: Worker | None = None,
        library: Index | None = None,
    ) -> None:
        self.model = model
        self.methods = methods
        self.worker = worker or Worker()
        self.library = library

    def close(self) -> None:
        """Free the model."""
        self.worker.close()
        if self.model is not None:
            self.model.close()

    async def generate(
        self, request: Request, connection: Connection | Sequence[Connection] | None, show: Show = lambda pieces: None
    ) -> Result:
        """Write one answer, showing text as it comes. Raises one of `antiphon.errors`, one sentence each.

        connection: to the cloud; a method that mixes documents can have several.
        """
        method = find(request.method, self.methods)
        request = _with_options(request, method)
        seed = secrets.randbits(64) if request.seed is None else request.seed
        connections = self._fitting(method, connection)
        common, looked = self._common(method, connections), await self._looked(method, request) if method.mixes else None
        async with self._side(method, request, common, seed, looked, len(connections)) as side:
            runner = Runner(method, request, seed, side, Answer(common, request.stop, now()))
            finish = await runner.run(connections, Host(self.worker, runner.answer, show))
        return _result(method, request, seed, finish, runner, common, looked)

    def _fitting(self, method: Method, given: Connection | Sequence[Connection] | None) -> list[Connection]:
        """The connections, if there are as many as the method needs, to clouds that fit. Raises UsageError."""
        if method.cloud is None:
            return []
        connections = [given] if isinstance(given, Connection) else list(given or ())
        if not connections:
            raise UsageError(f"the method {method.name} needs a cloud: give --cloud ws://HOST:PORT")
        require_clouds(method, len(connections))
        for one in connections:
            self._require_fit(method, one)
        return connections

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
        form: Any = None if looked is None else request.options.form
        if looked is not None:
            prompt = await self.worker.run(lambda: prompt_ids(model, context(looked.passages, request.prompt, form), chat=chat))
        else:
            read = prompt_ids if method.cloud is None or method.mixes else _drafting_prompt
            prompt = await self.worker.run(lambda: read(model, request.prompt, chat=chat))
        async with self.worker.holding(model.open) as opened:
            drafter = Drafter(model, opened, prompt, common, request.sampling)

            def reread(passages: Sequence[str]) -> None:
                own = looked.passages if looked else ()
                drafter.restart(together(model, passages, own, request.prompt, form, chat, room))

            sampled = request.sampling.temperature > 0
            mixing = None if looked is None else DeviceMixing(looked.log_mass, sampled, reread, clouds)
            yield DeviceSide(common, transcript, chance, drafter, mixing)

    async def _looked(self, method: Method, request: Request) -> Looked:
        library = self.library
        if library is None:
            raise UsageError(f"the method {method.name} reads documents of the device: give --library FILE")
        options, model = request.options, self.model
        found = await self.worker.run(lambda: self.worker.searched(lambda: look(library, request.prompt, options.kept)))
        if model is None:
            return found
        chat, room = request.chat and model.chat_template is not None, _room(model, request)
        fits, _ = await self.worker.run(lambda: fitted(model, found, request.prompt, options.form, chat, room))
        return fits

    def _require_fit(self, method: Method, connection: Connection) -> None:
        """Raise UsageError unless the cloud has the method; if it mixes, also the same tokens, and scores passages alike."""
        if method.name not in connection.welcome.methods:
            if connection.welcome.scorer or not method.mixes:
                require_no_baseline(method.name)
            known = ", ".join(connection.welcome.methods)
            raise UsageError(f"the cloud does not know the method {method.name}: it has {known}")
        if method.mixes:
            self._require_alike(method, connection)

    def _require_alike(self, method: Method, connection: Connection) -> None:
        welcome, model, library = connection.welcome, self.model, self.library
        if model is not None and model.vocabulary.fingerprint != welcome.vocabulary:
            sentence = f"{method.name} mixes scores token by token, so both ends need the same tokenizer; "
            raise UsageError(f"{sentence}{model.name} and the cloud's {welcome.model} differ: serve a model of one family")
        if library is not None and library.scorer.scorer_id != welcome.scorer:
            sentence = "both ends must score passages alike to be weighed against each other; "
            raise UsageError(f"{sentence}this library has {library.scorer.scorer_id!r}, the cloud's {welcome.scorer!r}")


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


def require_clouds(method: Method, count: int) -> None:
    """Raise UsageError if these are more clouds than the method works with."""
    if count > 1 and (method.one_cloud or not method.mixes):
        raise UsageError(f"the method {method.name} works with one cloud, not with {count}")


def _room(model: Model, request: Request) -> int:
    """Tokens that a prompt may have before an answer whose last token nobody reads."""
    return model.context_length - max(0, request.max_tokens - 1)


def _with_options(request: Request, method: Method) -> Request:
    options: Any = method.options() if request.options is None else request.options
    fits = isinstance(options, method.options)
    if not fits:
        given, wanted = type(options).__name__, method.options.__name__
        raise UsageError(f"the options of {method.name} are {wanted}, not {given}: make them with Method.options_from")
    return replace(request, options=options)

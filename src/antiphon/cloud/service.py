"""What a cloud offers, apart from any connection: its model, its methods, and room for answers."""

from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, Self

import msgspec
from starlette.applications import Starlette

from antiphon.config import Limits, ServeConfig
from antiphon.core.chance import PhiloxChance, answer_key
from antiphon.core.pass_costs import PassCosts
from antiphon.engine.worker import Worker
from antiphon.errors import AntiphonError, CapacityError, ModelError, UsageError
from antiphon.methods import PROBES, find, offered
from antiphon.methods.base import CloudMixing, CloudSide, Method, Transcript
from antiphon.methods.effects import ServingHalf, Step
from antiphon.methods.mixture.cloud import kept_bytes
from antiphon.methods.mixture.context_budget import fitted
from antiphon.methods.speculative.options import LONGEST_PATIENCE
from antiphon.methods.verifier import Verifier
from antiphon.models.base import public_name
from antiphon.models.catalog import AnyModel, model_of
from antiphon.models.chat import prompt_ids
from antiphon.models.needs import Need
from antiphon.retrieval.context import Looked, look
from antiphon.retrieval.opening import AnyLibrary, library_of
from antiphon.vocabulary import CommonVocabulary, from_members, identity
from antiphon.wire.messages import WIDEST, Open

COMMONS_KEPT = 16
"""Common vocabularies kept for devices to come back to; each is a few megabytes."""
_NOTHING: Mapping[int, Sequence[Step]] = {}

SCORES_BYTES = 2**29
"""Of memory for the scores that sessions of methods that mix documents keep, all of them together."""


@dataclass(slots=True, eq=False)
class Answering:
    """An answer under way: the cloud half, its prompt's tokens, and whether others were under way at the same time."""

    method: Method
    half: ServingHalf
    verifier: Verifier
    prompt_tokens: int
    shared: bool = False


class Cloud:
    """One model, served to many devices. Forward passes go one after the other, in the order in which they are asked for.

    model: itself, or what names it (see `ModelConfig`); it is the cloud's own from then on. library: documents for the methods
    that mix them: an open index, or where it lies; one that is opened here is closed here. limits: what a device may ask for.
    Raises one of `antiphon.errors`: a model or a library that cannot be had.
    """

    def __init__(
        self,
        model: AnyModel,
        limits: Limits | None = None,
        methods: Mapping[str, Method] | None = None,
        worker: Worker | None = None,
        library: AnyLibrary | None = None,
        patience: float = 0.0,
    ) -> None:
        """patience: seconds that a device must let it wait for drafts, at least, where it would write on without."""
        if not 0 <= patience <= LONGEST_PATIENCE / 1000:
            raise UsageError(f"a cloud's patience must be 0 to {LONGEST_PATIENCE:g} ms, not {patience * 1000:g}")
        offers = {**(offered() if methods is None else methods), **PROBES}
        with ExitStack() as opened:
            self.model = model_of(model)
            opened.callback(self.model.close)
            self.library = None if library is None else library_of(library, opened)
            self._opened = opened.pop_all()
        self.limits = limits or Limits()
        self.methods = {name: method for name, method in offers.items() if self._serves(method)}
        self.worker = worker or Worker()
        self.costs = PassCosts()
        """Of its model's passes, as they were measured."""
        self._patience = patience
        self._reserved = self._reserved_bytes = 0
        self._answering: set[Answering] = set()
        self._commons: OrderedDict[bytes, CommonVocabulary] = OrderedDict()
        self._identity = identity(self.model.vocabulary)
        self._packed: bytes | None = None

    def _serves(self, method: Method) -> bool:
        has = self.model.offers | (set() if self.library is None else {Need.DOCUMENTS})
        return method.cloud is not None and method.needs <= has

    def close(self) -> None:
        """Free the model, once its pass under way is over."""
        self.worker.close()
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @cached_property
    def app(self) -> Starlette:
        """An ASGI application: devices at `/` over WebSocket, and `GET /health`.

        `antiphon.cloud.application` says what `serving` and `antiphon serve` add to it.
        """
        from antiphon.cloud.application import Application  # only now: it needs this module

        return Application(self).app

    def serving(self, host: str = "127.0.0.1", port: int = 0) -> AbstractAsyncContextManager[str]:
        """Serve it in this event loop for one `async with` block, which is given the address. port: 0 for any that is free."""
        from antiphon.cloud.server import serving  # only now: it needs this module

        return serving(self, ServeConfig(host, port))

    def known(self, digest: bytes) -> CommonVocabulary | None:
        """The common vocabulary of this digest, if a device has brought it already."""
        if digest == self._identity.digest:
            return self._identity
        if digest in self._commons:
            self._commons.move_to_end(digest)
        return self._commons.get(digest)

    async def vocabulary(self) -> bytes:
        """The model's vocabulary as it crosses the link; packed once."""
        return await self.worker.run(self._pack) if self._packed is None else self._packed

    def _pack(self) -> bytes:
        if self._packed is None:
            self._packed = self.model.vocabulary.pack()
        return self._packed

    async def learn(self, members: bytes) -> CommonVocabulary:
        """The common vocabulary that a device describes. Raises ProtocolError if it does not fit the model's own."""
        common = await self.worker.run(lambda: from_members(self.model.vocabulary, members))
        self._remember(common)
        return common

    @asynccontextmanager
    async def answering(
        self, opening: Open, common: CommonVocabulary, recorded: Mapping[int, Sequence[Step]] = _NOTHING
    ) -> AsyncIterator[Answering]:
        """Room for one answer, and its cloud half. Raises UsageError or CapacityError: one sentence for the device.

        recorded: the passes of earlier answers of the same device, by session.
        """
        method, options = self._method(opening)
        self._check(opening)
        _check_committed(opening, common)
        found = await self._looked(opening, options) if method.mixes else None
        looked, prompt = await self.worker.run(lambda: self._read(opening, options, found))
        if not prompt:  # no model has logits behind nothing
            raise UsageError(f"the tokenizer of {public_name(self.model)} cannot spell the prompt: ask another cloud")
        needed = len(prompt) + opening.max_tokens
        drafts = options.max_drafts if Need.TREE in method.needs else 0  # those of a chain lie where the answer will
        drafts = WIDEST if method.name in PROBES else drafts
        if method.coupled or method.name in PROBES:  # a tree that does not fit is not read: the answer does not hang on it
            # Nor for other answers under way: then `cloud` would be served. Where probes are read they are to be read alike.
            held = self._reserved if method.coupled else 0
            drafts = max(0, min(drafts, self.model.context_length - held - needed))
        cells = needed + drafts
        # Nothing waits on the way out, so no cancellation can keep any of it.
        scores = kept_bytes(method.cloud, options, opening.max_tokens, len(self.model.vocabulary)) if method.mixes else 0
        # Room for the longest that the answer can get, before anything is read: an answer that was begun never fails for want
        # of cells.
        with self._reserving(cells, len(prompt), scores):
            async with self.worker.holding(self.model.open) as opened:
                verifier = Verifier(opened, prompt, common, opening.sampling, opening.committed)
                transcript = Transcript(common.ends, opening.max_tokens, opening.committed)
                chance = PhiloxChance(answer_key(opening.seed, opening.prompt, chat=opening.chat))
                side = CloudSide(common, transcript, chance, verifier, None, drafts, recorded, self.costs, self._patience)
                if looked is not None:
                    side.mixing = _mixing(looked, opening)
                assert method.cloud is not None  # only such methods are offered
                half = method.cloud(side, options).run()
                with self._under_way(Answering(method, half, verifier, len(prompt))) as answering:
                    yield answering

    def _read(self, opening: Open, options: Any, found: Looked | None) -> tuple[Looked | None, list[int]]:
        """The prompt's ids, behind as many of the passages as fit."""
        if found is None:
            return None, prompt_ids(self.model, opening.prompt, chat=opening.chat)
        room = self.model.context_length - opening.max_tokens
        return fitted(self.model, found, opening.prompt, options.prompt_format, opening.chat, room)

    async def _looked(self, opening: Open, options: Any) -> Looked:
        library = self.library
        assert library is not None  # such methods are only offered with one
        return await self.worker.run(lambda: self.worker.searched(lambda: look(library, opening.prompt, options.passages)))

    async def generate_one(self) -> None:
        """Really generate a token: what a health check should know."""

        def once() -> None:
            context = self.model.open()
            try:
                context.extend([self.model.vocabulary.end])
            finally:
                context.close()

        await self.worker.run(once)

    @contextmanager
    def _under_way(self, answering: Answering) -> Iterator[Answering]:
        self._answering.add(answering)
        # Marked on all of them: whoever was served beside others has logits that may have moved, and is told so in `Closed`.
        if len(self._answering) > 1:
            for one in self._answering:
                one.shared = True
        try:
            yield answering
        finally:
            self._answering.discard(answering)

    def _remember(self, common: CommonVocabulary) -> None:
        self._commons[common.digest] = common
        # The one that was longest unused goes; its devices send their map once more.
        if len(self._commons) > COMMONS_KEPT:
            self._commons.popitem(last=False)

    def _method(self, opening: Open) -> tuple[Method, Any]:
        method = find(opening.method, self.methods)
        try:
            # Strict: a number in quotes from a peer is an error, not a number. The dataclass refuses the rest itself.
            return method, msgspec.convert(opening.options, method.options, strict=True)
        except msgspec.ValidationError as error:
            raise UsageError(f"an option of {method.name} does not fit: {error}") from error

    def _check(self, opening: Open) -> None:
        size = len(opening.prompt.encode())
        if size > self.limits.prompt_bytes:
            raise UsageError(f"the prompt has {size} bytes; this cloud takes at most {self.limits.prompt_bytes}")
        if not 1 <= opening.max_tokens <= self.limits.max_tokens:
            raise UsageError(f"max-tokens must be 1 to {self.limits.max_tokens} here, not {opening.max_tokens}")
        if opening.seed >= 2**64:
            raise UsageError("the seed must be below 2^64")
        vocabulary_size = len(self.model.vocabulary)
        if not all(0 <= token < vocabulary_size for token, _ in opening.sampling.logit_bias):
            raise UsageError(f"a logit bias names a token that {public_name(self.model)} does not have")

    @contextmanager
    def _reserving(self, cells: int, prompt_tokens: int, scores: int) -> Iterator[None]:
        self._require_room(cells, prompt_tokens, scores)
        self._reserved += cells
        self._reserved_bytes += scores
        try:
            yield
        finally:
            self._reserved -= cells
            self._reserved_bytes -= scores

    def _require_room(self, cells: int, prompt_tokens: int, scores: int) -> None:
        room = self.model.context_length
        if cells > room:
            longest = max(0, room - (cells - prompt_tokens))
            raise UsageError(
                f"the prompt has {prompt_tokens} tokens, but with this max-tokens at most {longest} fit into the cloud's "
                f"context of {room}: shorten the prompt, or ask for fewer tokens"
            )
        if scores > SCORES_BYTES:
            asked, had = scores >> 20, SCORES_BYTES >> 20
            sentence = f"the scores of so many steps ahead would take {asked} MiB of the {had} that this cloud has"
            raise UsageError(f"{sentence}: choose a smaller ahead")
        if self._reserved + cells > room or self._reserved_bytes + scores > SCORES_BYTES:
            raise CapacityError("the cloud is full at the moment: try again shortly")


def _mixing(looked: Looked, opening: Open) -> CloudMixing:
    return CloudMixing(looked.log_mass, opening.sampling.temperature > 0, looked.passages, looked.left_out)


def _check_committed(opening: Open, common: CommonVocabulary) -> None:
    """An answer that goes on has to be one that this cloud could have begun."""
    committed = opening.committed
    if len(committed) >= opening.max_tokens:
        raise UsageError(f"an answer of {opening.max_tokens} tokens at most cannot go on after {len(committed)}")
    if not all(number < common.target_size for number in committed):
        raise UsageError("what was committed before holds a token that this cloud's model does not have")
    if any(map(common.ends.__contains__, committed)):
        raise UsageError("an answer that has ended cannot go on")


def failure_code(error: BaseException) -> str:
    """The code that a refusal, or a fault of ours, carries on the wire."""
    match error:
        case CapacityError():
            return "busy"
        case ModelError():
            return "model"
        case AntiphonError():
            return "refused"
        case _:
            return "fault"

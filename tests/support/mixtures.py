"""A device and clouds with documents of their own, in virtual time, and what their answers must be (METHODS 4)."""

import asyncio
import hashlib
import math
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from antiphon.cloud.connection import CloudConnection
from antiphon.cloud.service import Cloud
from antiphon.config import Limits, Request, SamplingParams
from antiphon.core.chance import PhiloxChance, answer_key
from antiphon.core.distributions import Logits, Probs, process
from antiphon.core.mixture.scores import SCORES
from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import AntiphonError, LinkError
from antiphon.methods import WITH_DOCUMENTS
from antiphon.methods.base import Method
from antiphon.methods.effects import Consulted, Emit, Kind
from antiphon.models.chat import prompt_ids
from antiphon.models.toy import END, ToyModel
from antiphon.retrieval.context import context, look
from antiphon.retrieval.documents import Place
from antiphon.retrieval.index import Found
from antiphon.retrieval.passages import Passage
from antiphon.retrieval.weights import Scorer
from antiphon.transport.frames import Transport, memory_pair
from antiphon.wire import messages as m
from antiphon_lab.links.emulated import emulate
from antiphon_lab.links.notation import parse_link
from antiphon_lab.links.virtual_time import VirtualWorker, run_virtual
from support.frames import Passing

Answer = TypeVar("Answer")

PIECES = (*(bytes([value]) for value in (10, *range(32, 127))), b"th", b" the", b"an", END)
"""The tokens of both ends: what prompts are made of, and an end."""

LINK = "rtt=50ms,up=100Mbit,down=100Mbit,handshakes=0"
PASS_SECONDS = 0.015
BUSY_SECONDS = 60
"""Of the processor's time, after which a test whose clock does not move is taken to hang."""


class Reader(ToyModel):
    """A toy whose scores depend on every token before, so on its documents too; `agree` is the part of the last two alone.

    end: added to the score of the end of an answer.
    """

    def __init__(
        self,
        seed: int,
        *,
        agree: float = 0.6,
        sharpness: float = 4.0,
        end: float = -3.0,
        pieces: Sequence[bytes] = PIECES,
        context_length: int = 4096,
    ) -> None:
        super().__init__(pieces, seed=seed, sharpness=sharpness, context_length=context_length, name=f"reader-{seed}")
        self._agree, self._end = agree, end
        self._known: dict[tuple[int, ...], Logits] = {}

    def logits(self, tokens: Sequence[int]) -> Logits:
        key = tuple(tokens)
        if key not in self._known:
            own, shared = _normal(f"{self._seed}|{key}", len(self._ids) + 1), _normal(f"{key[-2:]}", len(self._ids) + 1)
            scores = self._sharpness * (self._agree * shared + (1 - self._agree) * own)
            scores[self.vocabulary.end] += self._end
            self._known[key] = scores.astype(np.float32)
        return self._known[key]


def _normal(label: str, count: int) -> Probs:
    key = int.from_bytes(hashlib.sha256(label.encode()).digest()[:8], "little")
    return np.random.Generator(np.random.PCG64(key)).standard_normal(count)


class Shelf:
    """An index that finds the same passages for every question: texts with their scores, the best first."""

    def __init__(self, *found: tuple[str, float], scorer: str = "shelf") -> None:
        self._found = [Found(Passage("file", "", text, Place("line", 1, 1)), score) for text, score in found]
        self.scorer = Scorer(scorer, 1.0)

    def search(self, question: str, count: int) -> list[Found]:
        return self._found[:count]

    @property
    def log_mass(self) -> float:
        scores = [found.score for found in self._found[:2]]
        return float(np.logaddexp.reduce(scores)) if scores else -math.inf


@dataclass
class End:
    """A model and its documents."""

    model: ToyModel
    shelf: Shelf


@dataclass
class World:
    """Who is there. links: one for each cloud. halves: cloud halves by end and method, in place of the real ones.

    wrap: makes something else of the device's end of a link, given the number of the cloud and of the connection.
    """

    device: End
    clouds: list[End]
    links: Sequence[str] = (LINK,)
    draft_s: float = PASS_SECONDS
    verify_s: float = PASS_SECONDS
    halves: Mapping[int, Mapping[str, type]] = field(default_factory=dict)
    wrap: Callable[[Transport, int, int], Transport] = lambda transport, end, number: transport
    limits: Limits | None = None
    mend_seconds: float = 0.5
    device_methods: Mapping[str, Method] = field(default_factory=lambda: WITH_DOCUMENTS)
    served: list[Cloud] = field(default_factory=list)

    @asynccontextmanager
    async def ends(self) -> AsyncIterator[tuple[Device, list[Connection]]]:
        """The clouds, a device, and its connection to each cloud."""
        self.served = [self.cloud(end) for end in range(len(self.clouds))]
        async with self.beside() as ends:
            yield ends

    @asynccontextmanager
    async def beside(self) -> AsyncIterator[tuple[Device, list[Connection]]]:
        """Another such device of the same clouds; within `ends`."""
        device = Device(
            self.device.model,
            methods=self.device_methods,
            worker=VirtualWorker(lambda width, length: self.draft_s),
            library=self.device.shelf,
        )
        serving: list[asyncio.Task[None]] = []
        connections = [self._connection(end, device, serving) for end in range(len(self.clouds))]
        for connection in connections:
            await connection.establish()
        try:
            yield device, connections
        finally:
            for connection in connections:
                await connection.close()
            for task in serving:
                task.cancel()
            await asyncio.gather(*serving, return_exceptions=True)

    def cloud(self, end: int) -> Cloud:
        """A cloud of this world, with its halves replaced."""
        one = self.clouds[end]
        cloud = Cloud(one.model, self.limits, WITH_DOCUMENTS, VirtualWorker(lambda width, length: self.verify_s), one.shelf)
        for name, half in self.halves.get(end, {}).items():
            cloud.methods[name] = replace(cloud.methods[name], cloud=half)
        return cloud

    def _connection(self, end: int, device: Device, serving: list[asyncio.Task[None]]) -> Connection:
        cloud, link, dialled = self.served[end], parse_link(self.links[end % len(self.links)]), [0]

        async def dial() -> Transport:
            device_end, cloud_end = emulate(*memory_pair(), link, 10 * end + dialled[0])
            serving.append(asyncio.create_task(CloudConnection(cloud, cloud_end).serve()))
            dialled[0] += 1
            return self.wrap(device_end, end, dialled[0] - 1)

        return Connection(dial, device.model, device.worker, self.mend_seconds)


@dataclass(frozen=True)
class Step:
    """A token of an answer: who took part in its decision, and how long it took (virtual seconds since the question)."""

    number: int
    kind: Kind
    ends: tuple[int, ...]
    consulted: Consulted | None

    @property
    def is_consulted(self) -> bool:
        """Whether it was decided with evidence."""
        return self.consulted is not None and self.consulted.effort is not None


@dataclass
class Told:
    """An answer, token by token, and the virtual seconds until all was over."""

    result: Result
    steps: list[Step]
    seconds: float

    @property
    def numbers(self) -> list[int]:
        return [step.number for step in self.steps]

    @property
    def kinds(self) -> list[Kind]:
        return [step.kind for step in self.steps]


def virtually(main: Awaitable[Answer], seconds: float = 600.0) -> Answer:
    """Run in virtual time, for so many of its seconds at most; and no longer than a test may compute, if time stands still."""

    async def bounded() -> Answer:
        async with asyncio.timeout(seconds):
            return await main

    def hangs(*_: object) -> None:
        raise AssertionError(f"it computes and computes, and nothing comes of it: {BUSY_SECONDS} s")

    before = signal.signal(signal.SIGPROF, hangs)
    signal.setitimer(signal.ITIMER_PROF, BUSY_SECONDS)
    try:
        return run_virtual(bounded())
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def noted(half: Generator[Any, Any, Any], note: Callable[[Any], None]) -> Generator[Any, Any, Any]:
    """The same half; `note` sees each of its effects."""
    try:
        effect = next(half)
        while True:
            note(effect)
            try:
                answer = yield effect
            except AntiphonError as error:
                effect = half.throw(error)
            else:
                effect = half.send(answer)
    except StopIteration as stop:
        return stop.value


def recording(method: Method, steps: list[Step]) -> Method:
    """The same method, whose device half writes down its steps."""

    class Recording(method.device):  # type: ignore[name-defined,misc]
        def run(self) -> Any:
            self.heard: tuple[int, ...] = ()
            return noted(super().run(), self.note)

        def note(self, effect: Any) -> None:
            if not isinstance(effect, Emit):
                return
            consulted = effect.consulted
            decided = consulted is not None and consulted.effort is not None
            partners = tuple(line.end for line in self.partners()) if hasattr(self, "lines") else ()
            ends = self.heard if decided else partners
            steps.extend(Step(token.number, token.kind, ends, consulted) for token in effect.tokens)

        def decide(self, certificate: Any, distribution: Probs, proofs: Any, lines: Any) -> Any:
            found = yield from super().decide(certificate, distribution, proofs, lines)
            self.heard = tuple(lines[number].end for number in certificate.ends)
            return found

    return replace(method, device=Recording)


def question(method: str = "concord", *, temperature: float = 0.0, tokens: int = 16, seed: int = 1, **given: Any) -> Request:
    """A request; what is given that is no field of it is an option of the method."""
    own = {name: given.pop(name) for name in ("stop", "chat") if name in given}
    sampling = given.pop("sampling", None) or SamplingParams(temperature=temperature)
    prompt, options = given.pop("prompt", "who is it?"), WITH_DOCUMENTS[method].options_from(given)
    assert not given.keys() - set(options.__dataclass_fields__), given
    return Request(prompt, method, options, sampling, tokens, seed=seed, **own)


async def ask(world: World, device: Device, connections: Sequence[Connection], asked: Request) -> Told:
    """One answer, with its steps. The device's half is replaced by one that writes them down, for this answer."""
    steps: list[Step] = []
    loop, methods = asyncio.get_running_loop(), device.methods
    device.methods = {**methods, asked.method: recording(methods[asked.method], steps)}
    started = loop.time()
    try:
        result = await device.generate(asked, connections if methods[asked.method].cloud else None)
    finally:
        device.methods = methods
    return Told(result, steps, loop.time() - started)


def answer(world: World, asked: Request, seconds: float = 600.0) -> Told:
    """The answer to one question, in virtual time."""

    async def run() -> Told:
        async with world.ends() as (device, connections):
            return await ask(world, device, connections, asked)

    return virtually(run(), seconds)


# What must come out, from the two models directly


def distribution(end: End, asked: Request, numbers: Sequence[int]) -> Probs:
    """An end's distribution of the token after these; greedy answers go by the distributions at temperature 1."""
    options = asked.options
    text = context(look(end.shelf, asked.prompt, options.passages).passages, asked.prompt, options.prompt_format)
    tokens = [*prompt_ids(end.model, text, chat=asked.chat), *numbers]
    sampling = asked.sampling if asked.sampling.temperature else replace(asked.sampling, temperature=1.0)
    return process(end.model.logits(tokens), sampling, tokens)


def decoded(probs: Probs) -> Probs:
    """What of a remote distribution crosses the link."""
    return SCORES.values(SCORES.codes(probs))


def chance_of(asked: Request) -> PhiloxChance:
    """The chance of an answer with a given seed."""
    assert asked.seed is not None
    return PhiloxChance(answer_key(asked.seed, asked.prompt, chat=asked.chat))


def noise(asked: Request, position: int, size: int) -> Probs:
    if not asked.sampling.temperature:
        return np.ones(size)
    return chance_of(asked).race(position, np.arange(size, dtype=np.int32)).times()


def local_token(world: World, asked: Request, numbers: Sequence[int]) -> int:
    """What the device says by itself."""
    own = distribution(world.device, asked, numbers)
    return int(np.argmax(own / noise(asked, len(numbers), len(own))))


def dense_token(world: World, asked: Request, numbers: Sequence[int], ends: Sequence[int]) -> int:
    """The arg-max of the mixture of the device and these clouds on decoded scores, plus noise if the answer is sampled."""
    present = [world.device, *(world.clouds[end] for end in ends)]
    masses = np.array([end.shelf.log_mass for end in present])
    weights = np.ones(len(present)) if np.isneginf(masses).all() else np.exp(masses - masses.max())
    distributions = [
        distribution(present[0], asked, numbers),
        *(decoded(distribution(end, asked, numbers)) for end in present[1:]),
    ]
    mixed = sum(weight / weights.sum() * one for weight, one in zip(weights, distributions, strict=True))
    return int(np.argmax(mixed / noise(asked, len(numbers), len(distributions[0]))))


def cloud_draft(world: World, asked: Request, numbers: Sequence[int], end: int) -> int:
    """What a cloud says by itself."""
    scores = decoded(distribution(world.clouds[end], asked, numbers))
    return int(np.argmax(scores / noise(asked, len(numbers), len(scores))))


def submits_own(world: World, asked: Request, numbers: Sequence[int], ends: Sequence[int]) -> bool:
    """Whether CONCORD's algorithm 1 departs from the dense token: it is neither the device's own nor a cloud's."""
    if asked.options.undrafted == "dense" or WITH_DOCUMENTS[asked.method].device.patient:
        return False
    drafts = [local_token(world, asked, numbers), *(cloud_draft(world, asked, numbers, end) for end in ends)]
    return dense_token(world, asked, numbers, ends) not in drafts


def require_true(world: World, asked: Request, told: Told) -> None:
    """Every token is what its mark says: the device's own, or the dense one of the ends that took part.

    With evidence it is always the dense one, but where the paper's own rule departs from that, and it was asked for.
    """
    numbers: list[int] = []
    for step in told.steps:
        place = f"token {len(numbers)} of {told.steps}"
        local = local_token(world, asked, numbers)
        if step.kind is Kind.LOCAL:
            assert step.number == local, place
            assert not step.is_consulted or submits_own(world, asked, numbers, step.ends), place
        else:
            assert step.number == dense_token(world, asked, numbers, step.ends), place
            assert (step.kind is Kind.CHANGED) == (step.number != local), place
            assert not (step.is_consulted and submits_own(world, asked, numbers, step.ends)), place
            assert step.ends, place
        numbers.append(step.number)
    require_whole(world, asked, told)


def require_whole(world: World, asked: Request, told: Told) -> None:
    """All tokens are there: as many as were asked for, or up to an end."""
    numbers, end = told.numbers, world.device.model.vocabulary.end
    assert list(told.result.token_ids) == numbers
    assert end not in numbers[:-1]
    assert len(numbers) == asked.max_tokens or numbers[-1] == end
    assert told.result.finish_reason == ("end" if numbers[-1] == end else "length")


def dense_answer(world: World, asked: Request, ends: Sequence[int] = (0,)) -> list[int]:
    """The whole answer of the dense mixture."""
    numbers: list[int] = []
    while len(numbers) < asked.max_tokens and (not numbers or numbers[-1] != world.device.model.vocabulary.end):
        numbers.append(dense_token(world, asked, numbers, ends))
    return numbers


def world(seed: int = 0, clouds: int = 1, **more: Any) -> World:
    """Ends that agree in part, each with passages of its own."""
    given = {name: more.pop(name) for name in ("agree", "sharpness", "end") if name in more}
    masses = more.pop("masses", (1.0,) * (clouds + 1))
    shelves = [
        Shelf() if mass == -math.inf else Shelf((f"passage {place} a", mass), (f"passage {place} b", mass - 1))
        for place, mass in enumerate(masses)
    ]
    ends = [End(Reader(1000 * seed + place, **given), shelf) for place, shelf in enumerate(shelves)]
    return World(ends[0], ends[1:], **more)


# What crosses the link


class Tap:
    """Writes down every frame, and may cut the link before one: the n-th after the handshake, both ways counted together."""

    def __init__(self, transport: Transport, frames: "list[Crossed]", act: "Callable[[Crossed], bool] | None" = None) -> None:
        self._transport, self._frames, self._act = transport, frames, act
        self._up, self._down = Passing(), Passing()

    async def send(self, frame: bytes) -> None:
        await self._pass(Crossed(frame, True, self._up.read(frame)))
        await self._transport.send(frame)

    async def receive(self) -> bytes:
        frame = await self._transport.receive()
        await self._pass(Crossed(frame, False, self._down.read(frame)))
        return frame

    async def close(self, reason: str = "") -> None:
        await self._transport.close(reason)

    async def _pass(self, crossed: "Crossed") -> None:
        if self._act is not None and self._act(crossed):
            await self._transport.close()
            raise LinkError("the link was cut")
        self._frames.append(crossed)


@dataclass(frozen=True)
class Crossed:
    """A frame; up: from the device."""

    frame: bytes
    up: bool
    envelope: m.Envelope

    @property
    def message(self) -> m.Message:
        return self.envelope.message

    @property
    def session(self) -> int:
        return self.envelope.session

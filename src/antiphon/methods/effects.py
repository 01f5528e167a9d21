"""What a half may ask of its driver: a method's half is a generator that yields one of these and is sent the answer.

Halves know no socket, clock or thread. The same code runs under enumeration (`testing.lockstep`), over a real socket
(`antiphon.device`, `antiphon.cloud`) and in virtual time.
"""

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, Protocol, TypeAlias

from antiphon.core.distributions import Logits
from antiphon.core.mixture.consult import Effort
from antiphon.errors import AntiphonError, ProtocolError
from antiphon.methods.outcome import UNTESTED, Outcome
from antiphon.models.base import Context, Preempted, Stop
from antiphon.wire.messages import Message


@dataclass(frozen=True, slots=True)
class Step:
    """One forward pass: rewind `context` to `keep` tokens, read `tokens`, answer the logits of the last `rows`.

    With `parents` the tokens are a tree, and all of them answer. node: of the tree that the context holds, this node and its
    ancestors are kept first; None leaves the tree to grow (then nothing is rewound). gives_way: where a message of this kind
    comes before the pass is over, it may be given up: the answer then is None, and of the context only `keep` tokens are sure.
    """

    context: Context
    keep: int
    tokens: Sequence[int]
    rows: int
    parents: Sequence[int] | None = None
    node: int | None = -1
    gives_way: type[Message] | None = None

    def run(self) -> Logits:
        """Do it; float32, shape (rows, vocabulary)."""
        self._rewind()
        if self.parents is None:
            return self.context.extend(self.tokens, self.rows)
        return self.context.grow(self.tokens, self.parents)

    def run_unless(self, stop: Stop) -> Logits | None:
        """Do it, or give up where `stop` is set in time: None."""
        self._rewind()
        try:
            return None if stop.is_set else self.context.extend(self.tokens, self.rows, stop)
        except Preempted:
            return None

    def _rewind(self) -> None:
        if self.node is not None:
            self.context.settle(self.node)
            self.context.rewind(self.keep)


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message to the other half. No answer. to: which of several clouds."""

    message: Message
    to: int = 0


@dataclass(frozen=True, slots=True)
class Receive:
    """Wait for the next message of the other half. The answer is the message.

    within: at most so many seconds, 0 for what has come already; the answer is None if nothing came.
    """

    within: float | None = None


@dataclass(frozen=True, slots=True)
class ReceiveAny:
    """As `Receive`, from any of several clouds, and an error of one of them is no error of all: the answer is an `Arrived`."""

    within: float | None = None


@dataclass(frozen=True, slots=True)
class Arrived:
    """What came from a cloud, or what went wrong with it."""

    end: int
    message: Message | AntiphonError


@dataclass(frozen=True, slots=True)
class Now:
    """What time is it? The answer is in seconds, since any beginning; only differences mean something."""


class Kind(StrEnum):
    """Where a committed token came from.

    The last three are of a mixture: the device's own token, where no evidence could change it, or where the cloud's evidence
    confirmed it; or the token that it was changed to.
    """

    ACCEPTED = "accepted"
    CORRECTION = "correction"
    BONUS = "bonus"
    STREAMED = "streamed"
    LOCAL = "local"
    CERTAIN = "certain"
    CONFIRMED = "confirmed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Emitted:
    """One committed token, by its wire number."""

    number: int
    kind: Kind


@dataclass(slots=True)
class Exchanged:
    """What crossed the link for a round: drafts, round trips, candidates for a correction, whole target distributions.

    Of truncated draft distributions also how many, the tokens that they list, and the mass that was cut off them.
    """

    drafted: int = 0
    trips: int = 0
    candidates: int = 0
    distributions: int = 0
    draft_distributions: int = 0
    entries: int = 0
    cut: float = 0.0

    def __iadd__(self, other: "Exchanged") -> "Exchanged":
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


@dataclass(frozen=True, slots=True)
class Consulted:
    """What a step of a mixture took: seconds waited for evidence, and the effort that settled it; None if none came in time.

    drafted: the token was also the cloud's own draft. ends: clouds whose evidence decided.
    """

    waited: float
    effort: Effort | None
    drafted: bool = False
    ends: int = 0


@dataclass(frozen=True, slots=True)
class Emit:
    """Committed tokens for the reader, and what they took. No answer.

    exact: whether these tokens are what an exact method would have written; None where that is a matter of the method alone.
    """

    tokens: tuple[Emitted, ...]
    exchanged: Exchanged = field(default_factory=Exchanged)
    consulted: "Consulted | None" = None
    tested: Outcome = UNTESTED
    exact: bool | None = None


class Finish(StrEnum):
    """Why an answer ended: at an end-of-sequence token, at its longest, at a stop string, or on request."""

    END = "end"
    LENGTH = "length"
    STOP = "stop"
    CANCELLED = "cancelled"


Effect: TypeAlias = Step | Send | Receive | ReceiveAny | Now | Emit
Half: TypeAlias = Generator[Effect, Any, Finish]


class Host(Protocol):
    """What carries out effects: a model's thread, a link and a screen, or their stand-ins."""

    @property
    def in_one_go(self) -> bool:
        """Whether passes that follow each other are made in one `compute`; not where others wait for the model."""
        ...

    def compute(self, call: Callable[[], Effect | Finish]) -> Awaitable[Effect | Finish]:
        """Run a call where models compute, without blocking others."""
        ...

    def step(self, step: Step) -> Logits:
        """Run a forward pass; called within `compute`."""
        ...

    def preemptible(self, step: Step) -> Awaitable[Logits | None]:
        """Run a forward pass where models compute, or give it up for what it gives way to."""
        ...

    def send(self, message: Message, to: int) -> Awaitable[None]:
        """Send to the other half, or to one of several clouds."""
        ...

    def receive(self, within: float | None) -> Awaitable[Message | None]:
        """The next message of the other half; None if none came in so many seconds."""
        ...

    def receive_any(self, within: float | None) -> Awaitable[Arrived | None]:
        """The next message of any cloud, or what went wrong with one; None if nothing came in so many seconds."""
        ...

    def now(self) -> float:
        """The time in seconds."""
        ...

    def emit(self, emit: Emit) -> Awaitable[None]:
        """Take committed tokens."""
        ...


async def drive(half: Half, host: Host) -> Finish:
    """Run a half to its end on `host`.

    From a forward pass to the next effect that is none, the half runs where models compute: one hand-over a round instead
    of one a pass, and the maths over a whole vocabulary does not block the event loop.
    """
    effect = _resume(half, None)
    while not isinstance(effect, Finish):
        answer: Message | Arrived | float | None = None
        match effect:
            case Step(gives_way=None):
                effect = await host.compute(partial(_through_steps, half, effect, host))
                continue
            case Step():
                effect = await _preemptible(half, effect, host)
                continue
            case Now():
                answer = host.now()
            case ReceiveAny(within):
                answer = await host.receive_any(within)
            case Emit():
                await host.emit(effect)
            case _:
                effect = await _linked(half, effect, host)
                continue
        effect = _resume(half, answer)
    return effect


async def _linked(half: Half, effect: Send | Receive, host: Host) -> Effect | Finish:
    """Send or receive. What the link raises is raised inside the half: some go on without it."""
    answer: Message | None = None
    try:
        if isinstance(effect, Send):
            await host.send(effect.message, effect.to)
        else:
            answer = await host.receive(effect.within)
    except AntiphonError as error:
        return _resume(half, None, error)
    return _resume(half, answer)


async def _preemptible(half: Half, step: Step, host: Host) -> Effect | Finish:
    """A pass of its own, for what was computed behind one that is given up could not be taken back."""
    try:
        logits = await host.preemptible(step)
    except AntiphonError as error:
        return _resume(half, None, error)
    return await host.compute(partial(_on, half, logits, host))


def _on(half: Half, logits: Logits | None, host: Host) -> Effect | Finish:
    return _through_steps(half, _resume(half, logits), host)


def _resume(half: Half, answer: Any, error: AntiphonError | None = None) -> Effect | Finish:
    try:
        return half.send(answer) if error is None else half.throw(error)
    except StopIteration as stop:
        finish: Finish = stop.value
        return finish


def _through_steps(half: Half, effect: Effect | Finish, host: Host) -> Effect | Finish:
    """Run forward passes until the half asks for something else, or others may have a turn.

    What a pass raises is raised inside the half.
    """
    while isinstance(effect, Step) and effect.gives_way is None:
        try:
            logits = host.step(effect)
        except AntiphonError as error:
            effect = _resume(half, None, error)
        else:
            effect = _resume(half, logits)
        if not host.in_one_go:
            break
    return effect


def expect(message: Message, kind: type[Any], turn: int | None = None) -> Any:
    """`message` if it is of `kind` and, where given, of round `turn`. Raises ProtocolError otherwise."""
    if not isinstance(message, kind):
        raise ProtocolError(f"{type(message).__name__} came where {kind.__name__} was due", "out-of-turn")
    if turn is not None and message.round != turn:
        raise ProtocolError(f"{kind.__name__} of round {message.round} came in round {turn}", "out-of-turn")
    return message

"""What a half may ask of its driver: a method's half is a generator that yields one of these and is sent the answer.

Halves know no socket, clock or thread. The same code runs under enumeration (`testing.lockstep`), over a real socket
(`antiphon.device`, `antiphon.cloud`) and in virtual time.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

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
class Rejoined:
    """A cloud that was lost is back: a new session with it has begun, behind the tokens that are committed now."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """What came from a cloud, or what went wrong with it."""

    end: int
    message: Message | AntiphonError | Rejoined


@dataclass(frozen=True, slots=True)
class Now:
    """What time is it? The answer is in seconds, since any beginning; only differences mean something."""


@dataclass(frozen=True, slots=True)
class Came:
    """When did the message that was received last arrive? It may have waited to be read. The answer is as that of `Now`."""


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


@dataclass(frozen=True, slots=True)
class Provisional:
    """How the answer goes on for now behind the committed tokens: written here alone, and to be settled by a cloud. No answer.

    numbers: all of it, in place of what was shown so before; what is committed at its beginning then need not be shown anew.
    """

    numbers: tuple[int, ...]


class Finish(StrEnum):
    """Why an answer ended: at an end-of-sequence token, at its longest, at a stop string, or on request."""

    END = "end"
    LENGTH = "length"
    STOP = "stop"
    CANCELLED = "cancelled"


LinkEffect: TypeAlias = Send | Receive
ServingEffect: TypeAlias = Step | LinkEffect | Now | Came
Effect: TypeAlias = ServingEffect | ReceiveAny | Emit | Provisional

Half: TypeAlias = Generator[Effect, Any, Finish]
"""A half of a method under way. Those of a device may ask for everything."""
ServingHalf: TypeAlias = Generator[ServingEffect, Any, Finish]
"""A cloud's: nobody reads there, and there is one device."""
LinkHalf: TypeAlias = Generator[LinkEffect, Any, Finish]
"""One that needs no model, clock or reader."""


def expect(message: Message, kind: type[Any], turn: int | None = None) -> Any:
    """`message` if it is of `kind` and, where given, of round `turn`. Raises ProtocolError otherwise."""
    if not isinstance(message, kind):
        raise ProtocolError(f"{type(message).__name__} came where {kind.__name__} was due", "out-of-turn")
    if turn is not None and message.round != turn:
        raise ProtocolError(f"{kind.__name__} of round {message.round} came in round {turn}", "out-of-turn")
    return message

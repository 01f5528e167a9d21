"""What a method is, and what its two halves are given."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Protocol

from antiphon.core.chance import Chance, Place
from antiphon.core.pass_costs import PassCosts
from antiphon.methods.closed_forms import ClosedForm
from antiphon.methods.drafter import Drafter, Guess
from antiphon.methods.effects import Finish, Half, ServingHalf, Step
from antiphon.methods.lookup import Lookup
from antiphon.methods.speculative.draft_length import Lengths
from antiphon.methods.speculative.options import ChainOptions, LookingUp
from antiphon.methods.verifier import Verifier
from antiphon.models.needs import OVER_CHAINS, Need
from antiphon.vocabulary import CommonVocabulary
from antiphon.wire.messages import Retrieved


class Transcript:
    """The committed tokens of one answer, by wire number, and whether it is finished. Both ends keep the same one."""

    def __init__(self, ends: frozenset[int], limit: int, committed: Sequence[int] = ()) -> None:
        self.numbers = list(committed)
        self.finish: Finish | None = None
        self._ends, self._limit = ends, limit

    @property
    def position(self) -> int:
        """The index of the next token in the answer."""
        return len(self.numbers)

    @property
    def remaining(self) -> int:
        """Tokens that may still be committed."""
        return self._limit - self.position

    def place(self, index: int = 0) -> Place:
        """Where what is drawn for the token `index` tokens after the next one is drawn, in a round that begins now."""
        return Place(self.position, index)

    def is_end(self, number: int) -> bool:
        """True if this token ends the answer."""
        return number in self._ends

    def until_end(self, numbers: Sequence[int]) -> list[int]:
        """These tokens up to the first that ends the answer."""
        ends = (place for place, number in enumerate(numbers, 1) if self.is_end(number))
        return list(numbers[: next(ends, len(numbers))])

    def commit(self, number: int) -> None:
        """Add a token; the answer finishes at an end-of-sequence token (which is part of it) or at its longest."""
        if self.finish is not None:
            raise RuntimeError("a finished answer takes no more tokens")
        self.numbers.append(number)
        if self.is_end(number):
            self.finish = Finish.END
        elif self.remaining == 0:
            self.finish = Finish.LENGTH


@dataclass(frozen=True, slots=True)
class DeviceMixing:
    """What the device found in its library: the logarithm of what the passages weigh, whether tokens are sampled.

    reread: makes the drafter's prompt anew, with the passages of another end in front. clouds: how many take part.
    """

    log_mass: float
    sampled: bool
    reread: Callable[[Sequence[str]], None]
    clouds: int = 1


@dataclass(frozen=True, slots=True)
class CloudMixing:
    """What the cloud found in its library, and whether tokens are sampled. left_out: passages for which there is no room."""

    log_mass: float
    sampled: bool
    passages: tuple[str, ...]
    left_out: int = 0

    def retrieved(self) -> Retrieved:
        """What the device is told of it."""
        return Retrieved(len(self.passages), self.log_mass, self.left_out)


@dataclass(slots=True)
class Memory:
    """What a device half leaves to the next one of the same answer, should the link be lost (METHODS 3, resuming).

    round: what was drawn for the round under way, of the method's own kind; None between rounds. It is done again with that:
    whether a link breaks can hang on what the round brings, so dividing a round anew would change the distribution. lengths:
    the rule of how far to draft. learned: what else the method has learned, of its own kind; as it was when the round began.
    line: drafts of a coupled method that no verdict has settled. lookup: what its drafts are looked up in.
    """

    round: Any = None
    lengths: Lengths | None = None
    learned: Any = None
    line: list[Guess] = field(default_factory=list)
    lookup: Lookup | None = None


@dataclass(slots=True)
class DeviceSide:
    """What a device half works with. `drafter` is None for a method that needs no model here.

    round_trip: to the cloud in seconds, where it has been timed. goes_on: where the cloud is silent too, the answer goes on,
    and is shown.
    """

    common: CommonVocabulary
    transcript: Transcript
    chance: Chance
    drafter: Drafter | None = None
    mixing: "DeviceMixing | None" = None
    memory: Memory = field(default_factory=Memory)
    goes_on: bool = False
    round_trip: float | None = None

    def lookup(self, drafter: Drafter, wanted: LookingUp) -> Lookup:
        """What is looked up: that of the answer so far, if its link was lost, else a new one (METHODS 3, Lookup)."""
        if self.memory.lookup is None:
            self.memory.lookup = Lookup(drafter.prompt_numbers, self.common.size, wanted)
        return self.memory.lookup


@dataclass(slots=True)
class CloudSide:
    """What a cloud half works with.

    spare: cells for drafts beyond those of the longest answer; None: as many as it takes. recorded: the passes of earlier
    answers of this connection, by session. costs: of the model's passes. least_patience: seconds that the cloud asks to wait
    for drafts, at least.
    """

    common: CommonVocabulary
    transcript: Transcript
    chance: Chance
    verifier: Verifier
    mixing: "CloudMixing | None" = None
    spare: int | None = None
    recorded: Mapping[int, Sequence[Step]] = field(default_factory=dict)
    costs: PassCosts = field(default_factory=PassCosts)
    least_patience: float = 0.0

    def has_room_for(self, drafts: int) -> bool:
        """Whether so many drafts can be read at once behind the transcript."""
        return self.spare is None or drafts <= self.transcript.remaining + self.spare


class DeviceHalf(Protocol):
    """The device's half of a method, for one answer."""

    def __init__(self, side: DeviceSide, options: Any) -> None: ...

    def run(self) -> Half:
        """Write the answer."""
        ...


class CloudHalf(Protocol):
    """The cloud's half of a method, for one answer."""

    def __init__(self, side: CloudSide, options: Any) -> None: ...

    def run(self) -> ServingHalf:
        """Serve the answer."""
        ...


class Alone(Protocol):
    """A device's half without a cloud."""

    def __call__(self, side: DeviceSide, options: Any, *, keep: bool) -> Half:
        """Write on behind what is committed. How the answer ends if all of it stands."""
        ...


class OnLoss(Enum):
    """What becomes of an answer when the link to a cloud is lost (METHODS 3, resuming; METHODS 4).

    WAIT: it waits for the cloud, and goes on with it where it was. REJOIN: it goes on without the cloud, and takes it in again
    when it is back. DROP: it goes on without the cloud, or ends if it cannot.
    """

    WAIT = "wait"
    REJOIN = "rejoin"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Method:
    """A method: its promise and its two halves.

    exact: the emitted tokens have the cloud model's own distribution. drafts: it needs a model on the device. cloud: None if
    the device works alone. options: the dataclass of its options; its defaults are the method's. bits: the closed form of what
    crosses the link, if there is one. coupled: with the same seed it writes the very tokens of `cloud`, at any temperature.
    one_cloud: it mixes with one cloud only; others with any number. needs: what the cloud's half asks for; a cloud announces a
    method where it has all of it. Unless said, `OVER_CHAINS`. on_loss: what a lost link means. alone: writes on while the link
    is lost and nobody waits, until it is stopped; with `keep` what it writes is committed; None where the method cannot.
    """

    name: str
    summary: str
    exact: bool
    device: type[DeviceHalf]
    cloud: type[CloudHalf] | None
    drafts: bool = True
    options: type = ChainOptions
    bits: ClosedForm | None = None
    coupled: bool = False
    one_cloud: bool = False
    needs: frozenset[Need] = OVER_CHAINS
    on_loss: OnLoss = OnLoss.WAIT
    alone: "Alone | None" = None

    @property
    def mixes(self) -> bool:
        """Both ends look into their libraries, and the device decides; it is exact as the dense mixture is (METHODS 4)."""
        return Need.DOCUMENTS in self.needs

    def options_from(self, given: Mapping[str, object]) -> Any:
        """The options of this method, with those of `given` that it has. Raises UsageError for a value that does not fit."""
        own = {field.name for field in fields(self.options)}
        return self.options(**{name: value for name, value in given.items() if name in own})

"""The options that chains share, and those that trees share: how many drafts a round has, and the bits of a probability."""

import operator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, Protocol, TypeAlias, get_args

from antiphon.core.stream import AUTO, LOCKSTEP, OBJECTIVES
from antiphon.options import MethodOptions, option, require

MAX_DRAFT_LENGTH = 16
"""Drafts a round at most: a frame of `dsd` with 16 dense distributions over 50,000 tokens is 3 MiB."""

AUTO_DRAFT_LENGTH = 6
"""Drafts a round at most where their number is automatic: passes of at most 7 tokens have the logits of token by token."""


def draft_length_option(default: int) -> Any:
    """The field `draft_length` of a chain."""
    return option(default, f"Tokens drafted a round, 1 to {MAX_DRAFT_LENGTH}, or auto: as many as pay.", {"auto": 0})


Verification: TypeAlias = Literal["token", "block"]
"""How drafts are tested: each by itself, or all of a round together (METHODS 2, block verification)."""


def require_verification(verification: str) -> None:
    """Raise UsageError unless drafts can be tested so."""
    known = get_args(Verification)
    require(verification in known, f"verification must be {' or '.join(known)}, not {verification!r}")


def require_bits(name: str, bits: int, *allowed: int) -> None:
    """Raise UsageError unless a probability may have so many bits."""
    listed = f"{', '.join(map(str, allowed[:-1]))} or {allowed[-1]}"
    require(bits in allowed, f"{name} must be {listed} bits, not {bits}")


class RoundOptions(MethodOptions, Protocol):
    """What the options of every chain have."""

    @property
    def draft_length(self) -> int:
        """Drafts a round at most; 0 is auto."""
        ...


class WithDraftLength:
    """What the options of every chain have besides their fields: the most drafts that `draft_length` stands for."""

    __slots__ = ()
    draft_length: int

    @property
    def max_drafts(self) -> int:
        """Drafts a round at most."""
        return self.draft_length or AUTO_DRAFT_LENGTH

    def require_draft_length(self) -> None:
        """Raise UsageError if it is none."""
        drafts = self.draft_length
        fits = 0 <= drafts <= MAX_DRAFT_LENGTH
        require(fits, f"draft length must be 1 to {MAX_DRAFT_LENGTH}, or 0 (auto), not {drafts}")


@dataclass(frozen=True, slots=True)
class ChainOptions(WithDraftLength):
    """Options of `gr` and `tr`. draft_length: 0 is auto. draft_precision: 16 or 32. Raises UsageError."""

    draft_length: int = draft_length_option(3)
    draft_precision: int = option(16, "Bits of a draft probability on the wire: 16 or 32.")

    def __post_init__(self) -> None:
        self.require_draft_length()
        require_bits("draft precision", self.draft_precision, 16, 32)


MAX_AHEAD = 32
"""Drafts that may be on their way unasked, at most."""

AHEAD_IN_LOCKSTEP = 3
"""Drafts made while a verdict is waited for, unless said."""

MAX_SETTLE = 64
"""Tokens that one pass settles of what was written while the link was lost, at most."""

LONGEST_PATIENCE = 60_000.0
"""Milliseconds; what is longer is lockstep."""


def patience_option() -> Any:
    """The field `patience` of a coupled method."""
    words = {"auto": AUTO, "lockstep": LOCKSTEP}
    return option(AUTO, "Milliseconds that the cloud waits for drafts, auto: as pays, or lockstep: without end.", words)


def objective_option() -> Any:
    """The field `objective` of a coupled method."""
    return option("speed", "What is saved besides time: nothing (speed), the cloud's passes, data, or the device's battery.")


LookingUp: TypeAlias = Literal["auto", "on", "off"]
"""Where what was looked up is drafted (`methods.lookup`)."""

LOOKUP_HELP = "Draft what followed where the text stood before: auto, where that pays; on, wherever it did; or off."


def require_lookup(lookup: str) -> None:
    """Raise UsageError unless it is one of `LookingUp`."""
    known = get_args(LookingUp)
    require(lookup in known, f"lookup must be {', '.join(known[:-1])} or {known[-1]}, not {lookup!r}")


def settle_option() -> Any:
    """The field `settle_width` of a coupled method."""
    return option(AUTO_DRAFT_LENGTH + 1, f"Tokens written without the cloud that one of its passes reads, 2 to {MAX_SETTLE}.")


class InStream:
    """What the options of a coupled method have besides their fields: how its ends keep step (METHODS 3, *Stream*)."""

    __slots__ = ()
    patience: float
    objective: str

    @property
    def lockstep(self) -> bool:
        """Whether the cloud waits for drafts without end."""
        return self.patience == LOCKSTEP

    @property
    def seconds(self) -> float:
        """The cloud's patience in seconds, or AUTO."""
        return AUTO if self.patience == AUTO else self.patience / 1000

    def require_patience(self) -> None:
        """Raise UsageError if it is none."""
        known = self.patience in (AUTO, LOCKSTEP) or 0 <= self.patience <= LONGEST_PATIENCE
        sentence = f"patience must be 0 to {LONGEST_PATIENCE:.0f} milliseconds, auto or lockstep, not {self.patience}"
        require(known, sentence)
        require(self.objective in OBJECTIVES, f"objective must be one of {', '.join(OBJECTIVES)}, not {self.objective!r}")


@dataclass(frozen=True, slots=True)
class CoupledOptions(WithDraftLength, InStream):
    """Options of `coupled`. draft_length: of a pass; 0 is auto. ahead: drafts made besides, -1 is auto. Raises UsageError."""

    draft_length: int = draft_length_option(0)
    ahead: int = option(-1, f"Drafts made while the cloud's word is on its way, 0 to {MAX_AHEAD}, or auto.", {"auto": -1})
    patience: float = patience_option()
    objective: Literal["speed", "cloud", "data", "battery"] = objective_option()
    lookup: LookingUp = option("auto", LOOKUP_HELP)
    settle_width: int = settle_option()

    def __post_init__(self) -> None:
        self.require_draft_length()
        require(-1 <= self.ahead <= MAX_AHEAD, f"ahead must be 0 to {MAX_AHEAD} drafts, or -1 (auto), not {self.ahead}")
        self.require_patience()
        require(2 <= self.settle_width <= MAX_SETTLE, f"settle_width must be 2 to {MAX_SETTLE} tokens, not {self.settle_width}")
        require_lookup(self.lookup)

    @property
    def most_ahead(self) -> int:
        """Drafts made while the cloud's word is on its way, at most."""
        if self.ahead >= 0:
            return self.ahead
        return AHEAD_IN_LOCKSTEP if self.lockstep else MAX_AHEAD


@dataclass(frozen=True, slots=True)
class DsdOptions(ChainOptions):
    """Options of `dsd`. verification: see `Verification`."""

    verification: Verification = option("token", "token: drafts are tested one by one; block: together, so more of them stand.")

    def __post_init__(self) -> None:
        ChainOptions.__post_init__(self)
        require_verification(self.verification)


@dataclass(frozen=True, slots=True)
class SplitOptions(ChainOptions):
    """Options of the methods that send target distributions down, `dssd` and `xcosd`. precision: 16 or 32."""

    precision: int = option(16, "Bits of a target probability on the wire: 16 (logarithms) or 32 (float32).")

    def __post_init__(self) -> None:
        ChainOptions.__post_init__(self)
        require_bits("precision", self.precision, 16, 32)


MAX_TREE_NODES = 63
"""Nodes of a token tree at most: with the token before it, one pass of a model's batch of logits."""


def expansion_option() -> Any:
    """The field `expansion` of a tree."""
    return option("2,2,2", f"Children of each node by depth, at most {MAX_TREE_NODES} nodes in all.")


class WithTree:
    """What the options of every tree method have besides their fields: the shape that `expansion` names."""

    __slots__ = ()
    expansion: str

    @property
    def widths(self) -> tuple[int, ...]:
        """Children of a node at each depth."""
        parts = self.expansion.split(",")
        fits = all(part.strip().isascii() and part.strip().isdigit() and int(part) > 0 for part in parts)
        sentence = f"expansion must be numbers from 1 on with commas between, not {self.expansion!r}"
        require(fits and len(parts) <= 16, sentence)
        return tuple(int(part) for part in parts)

    @property
    def max_drafts(self) -> int:
        """Nodes of a full tree."""
        return self.full

    @property
    def full(self) -> int:
        """Nodes of a tree that has all of the children of `expansion`."""
        return sum(accumulate(self.widths, operator.mul))

    def require_fit(self) -> None:
        """Raise UsageError if it is no tree, or too large a one."""
        fits = self.full <= MAX_TREE_NODES
        require(fits, f"a tree may have at most {MAX_TREE_NODES} nodes, but {self.expansion} has {self.full}")


NODES_IN_LOCKSTEP, NODES_IN_STREAM = 12, 32
"""Nodes of a tree that grows, unless said: in a stream the first levels are past before a tree is there."""

GROW = ""
"""What `expansion` is for a tree without a fixed shape."""


@dataclass(frozen=True, slots=True)
class CoupledTreeOptions(WithTree, InStream):
    """Options of `coupled-tree`. expansion: of a fixed shape, in lockstep; nodes: of one that grows. Raises UsageError."""

    expansion: str = option(
        GROW,
        f"grow: best first; or children of each node by depth, at most {MAX_TREE_NODES} in all, in lockstep.",
        {"grow": GROW},
    )
    nodes: int = option(0, f"Nodes of a tree that grows best first, 1 to {MAX_TREE_NODES}, or auto.", {"auto": 0})
    patience: float = patience_option()
    objective: Literal["speed", "cloud", "data", "battery"] = objective_option()
    lookup: LookingUp = option("auto", LOOKUP_HELP)

    def __post_init__(self) -> None:
        require(0 <= self.nodes <= MAX_TREE_NODES, f"a tree has 1 to {MAX_TREE_NODES} nodes, or 0 (auto), not {self.nodes}")
        self.require_patience()
        require_lookup(self.lookup)
        if self.expansion != GROW:
            self.require_fit()
            self._require_lockstep()

    def _require_lockstep(self) -> None:
        """Raise UsageError for what would do nothing beside a fixed shape."""
        waits, plain = self.patience in (AUTO, LOCKSTEP), self.objective == "speed" and self.lookup != "on"
        sentence = f"the shape {self.expansion} is drafted in lockstep: leave patience, objective and lookup out"
        require(waits and plain, sentence)

    @property
    def max_drafts(self) -> int:
        """Nodes of a tree at most."""
        if self.expansion != GROW:
            return self.full
        return self.nodes or (NODES_IN_LOCKSTEP if self.lockstep else NODES_IN_STREAM)

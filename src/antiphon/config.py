"""Configuration: frozen dataclasses, validated once. The only home of defaults."""

import math
import operator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol, runtime_checkable

from antiphon.errors import UsageError


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise UsageError(sentence)


MAX_LOGIT_BIASES = 1024
"""Tokens with a logit bias of their own, at most: each pass goes through them."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the target distribution is made from logits (METHODS 0, the target; in this order).

    Raises UsageError if a value is out of range. `logit_bias` holds (cloud token id, addend to its logit).
    """

    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    temperature: float = 0.7
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        floats = (self.temperature, self.top_p, self.min_p, self.repetition_penalty)
        finite = all(math.isfinite(x) for x in (*floats, self.presence_penalty, self.frequency_penalty))
        _require(finite, "every sampling parameter must be a finite number")
        _require(0 <= self.temperature <= 100, f"temperature must be between 0 and 100, not {self.temperature}")
        _require(self.top_k >= 0, f"top-k must be 0 (off) or more, not {self.top_k}")
        _require(0 < self.top_p <= 1, f"top-p must be above 0 and at most 1 (off), not {self.top_p}")
        _require(0 <= self.min_p <= 1, f"min-p must be between 0 (off) and 1, not {self.min_p}")
        _require(self.repetition_penalty > 0, f"repetition penalty must be above 0, not {self.repetition_penalty}")
        count = len(self.logit_bias)
        _require(count <= MAX_LOGIT_BIASES, f"at most {MAX_LOGIT_BIASES} tokens can have a logit bias, not {count}")
        biases = (value for _, value in self.logit_bias)
        _require(all(math.isfinite(value) for value in biases), "every logit bias must be a finite number")

    @property
    def has_penalties(self) -> bool:
        """True if the distribution at a position depends on which tokens stand before it."""
        return (self.repetition_penalty, self.presence_penalty, self.frequency_penalty) != (1.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class NoOptions:
    """The options of a method that has none."""


MAX_DRAFT_LENGTH = 16
"""Drafts a round at most: a frame of `dsd` with 16 dense distributions over 50,000 tokens is 3 MiB."""


MAX_AHEAD = 32
"""Drafts that may be on their way unasked, at most."""


def _require_bits(name: str, bits: int) -> None:
    _require(bits in (16, 32), f"{name} must be 16 or 32 bits, not {bits}")


def _require_draft_length(drafts: int) -> None:
    _require(0 <= drafts <= MAX_DRAFT_LENGTH, f"draft length must be 1 to {MAX_DRAFT_LENGTH}, or 0 (auto), not {drafts}")


AUTO_DRAFT_LENGTH = 6
"""Drafts a round at most where their number is automatic: passes of at most 7 tokens have the logits of token by token."""


def longest(draft_length: int) -> int:
    """Drafts a round at most, from the option: 0 is auto."""
    return draft_length or AUTO_DRAFT_LENGTH


@dataclass(frozen=True, slots=True)
class ChainOptions:
    """Options of the chain methods: drafts a round (0 is auto), and the bits of a draft probability on the wire (16 or 32)."""

    draft_length: int = 3
    draft_precision: int = 16

    def __post_init__(self) -> None:
        _require_draft_length(self.draft_length)
        _require_bits("draft precision", self.draft_precision)


@dataclass(frozen=True, slots=True)
class SplitOptions(ChainOptions):
    """Options of the methods that send target distributions down: also the bits of a target probability.

    precision: 16 (logarithms) or 32 (float32).
    """

    precision: int = 16

    def __post_init__(self) -> None:
        ChainOptions.__post_init__(self)
        _require_bits("precision", self.precision)


MAX_CANDIDATES = 31
"""Candidates in one message of `xcosd-e` at most: with none, a count of 5 bits."""


@dataclass(frozen=True, slots=True)
class CandidateOptions(SplitOptions):
    """Options of `xcosd-e`: candidates a message (K; 0 is auto), and how many messages of them (M) before a whole distribution.

    as_paper: candidates are drawn as the paper draws them, all K of a message from the whole target; else without the draft
    that was rejected, and none after one that is sure to pass.
    """

    candidates: int = 0
    iterations: int = 10
    as_paper: bool = False

    def __post_init__(self) -> None:
        SplitOptions.__post_init__(self)
        fits = 0 <= self.candidates <= MAX_CANDIDATES
        _require(fits, f"candidates must be 1 to {MAX_CANDIDATES}, or 0 (auto), not {self.candidates}")
        _require(1 <= self.iterations <= 64, f"iterations must be 1 to 64, not {self.iterations}")


@dataclass(frozen=True, slots=True)
class Truncation:
    """Which part of the draft probs is kept: the `top_k` likeliest tokens, or the fewest with a mass of at least `top_p`."""

    top_k: int = 0
    top_p: float = 1.0

    @classmethod
    def parse(cls, text: str) -> "Truncation":
        """From `k=320` or `p=0.95`; `off` keeps everything. Raises UsageError."""
        name, _, value = text.partition("=")
        try:
            match name:
                case "off" if text == "off":
                    return cls()
                case "k" if int(value) >= 1:
                    return cls(top_k=int(value))
                case "p" if 0 < float(value) <= 1:
                    return cls(top_p=float(value))
        except ValueError:
            pass
        raise UsageError(f"truncate must be k=NUMBER from 1 on, p=SHARE above 0 and at most 1, or off, not {text!r}")


@dataclass(frozen=True, slots=True)
class SparseOptions:
    """Options of the methods that send truncated draft distributions.

    draft_precision: bits of a probability, 8 or 16 (logarithms) or 32 (float32). truncate: see `Truncation.parse`. wire: how
    tokens and probabilities are packed: `delta`, `plain` or `tight`.
    """

    draft_precision: int = 8
    truncate: str = "k=320"
    wire: str = "delta"

    def __post_init__(self) -> None:
        Truncation.parse(self.truncate)
        _require(self.draft_precision in (8, 16, 32), f"draft precision must be 8, 16 or 32 bits, not {self.draft_precision}")
        _require(self.wire in ("delta", "plain", "tight"), f"wire must be delta, plain or tight, not {self.wire!r}")
        fits = self.wire != "tight" or self.draft_precision < 32
        _require(fits, "wire tight needs a draft precision of 8 or 16 bits")


@dataclass(frozen=True, slots=True)
class CoupledOptions:
    """Options of `coupled`: drafts a round (0 is auto), and how many more are drafted while the cloud's word is on its way."""

    draft_length: int = 0
    ahead: int = 3

    def __post_init__(self) -> None:
        _require_draft_length(self.draft_length)
        _require(0 <= self.ahead <= MAX_AHEAD, f"ahead must be 0 (wait) to {MAX_AHEAD} drafts, not {self.ahead}")


@dataclass(frozen=True, slots=True)
class TsltOptions(SparseOptions):
    """Options of `tslt`: also the drafts a round (0 is auto)."""

    draft_length: int = 3

    def __post_init__(self) -> None:
        SparseOptions.__post_init__(self)
        _require_draft_length(self.draft_length)


MAX_TREE_NODES = 63
"""Nodes of a token tree at most: with the token before it, one pass of a model's batch of logits."""


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
        _require(fits and len(parts) <= 16, sentence)
        return tuple(int(part) for part in parts)

    @property
    def nodes(self) -> int:
        """Nodes of a full tree."""
        return sum(accumulate(self.widths, operator.mul))

    def require_fit(self) -> None:
        """Raise UsageError if it is no tree, or too large a one."""
        fits = self.nodes <= MAX_TREE_NODES
        _require(fits, f"a tree may have at most {MAX_TREE_NODES} nodes, but {self.expansion} has {self.nodes}")


@dataclass(frozen=True, slots=True)
class TreeOptions(SparseOptions, WithTree):
    """Options of `tslt-tree`: children of each node by depth, and whether they are drawn with replacement."""

    expansion: str = "2,2,2"
    replacement: bool = False

    def __post_init__(self) -> None:
        SparseOptions.__post_init__(self)
        self.require_fit()


@dataclass(frozen=True, slots=True)
class CoupledTreeOptions(WithTree):
    """Options of `coupled-tree`: children of each node by depth."""

    expansion: str = "2,2,2"

    def __post_init__(self) -> None:
        self.require_fit()


@dataclass(frozen=True, slots=True)
class UncertaintyOptions:
    """Options of `u-hlm` and `cu-hlm`: draws that judge a draft, and the share of other tokens from which it is uncertain.

    kept: the draft's likeliest tokens that `cu-hlm` sends with their probabilities.
    """

    draft_precision: int = 16
    draws: int = 20
    uncertain: float = 0.5
    kept: int = 64

    @property
    def draft_length(self) -> int:
        """One draft a round, always."""
        return 1

    def __post_init__(self) -> None:
        _require_bits("draft precision", self.draft_precision)
        _require(1 <= self.draws <= 1000, f"draws must be 1 to 1000, not {self.draws}")
        _require(0 <= self.uncertain <= 1, f"uncertain must be a share from 0 to 1, not {self.uncertain}")
        _require(1 <= self.kept <= 4096, f"kept must be 1 to 4096, not {self.kept}")


@runtime_checkable
class RoundOptions(Protocol):
    """What the options of every chain method have."""

    @property
    def draft_length(self) -> int:
        """Drafts a round at most; 0 is auto."""
        ...


def most_drafts(options: object) -> int:
    """Tokens that a round drafts at most: the nodes of a tree, or the length of a chain; 0 where the options name neither."""
    match options:
        case WithTree():
            return options.nodes
        case RoundOptions():
            return longest(options.draft_length)
        case _:
            return 0


@dataclass(frozen=True, slots=True)
class Limits:
    """What a cloud accepts, told to the device in the handshake. Sizes in bytes, tokens or seconds as named."""

    frame_bytes: int = 8 * 2**20
    prompt_bytes: int = 256 * 2**10
    max_tokens: int = 4096
    sessions_per_connection: int = 8
    handshake_seconds: float = 300.0
    idle_seconds: float = 300.0

    def __post_init__(self) -> None:
        counts = (self.prompt_bytes, self.max_tokens, self.sessions_per_connection)
        _require(self.frame_bytes >= 1024, f"frames of at least 1024 bytes must be accepted, not {self.frame_bytes}")
        _require(all(count >= 1 for count in counts), "every limit must be at least 1")
        _require(self.handshake_seconds > 0 and self.idle_seconds > 0, "every limit of time must be above 0 seconds")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long an end waits for the other, in seconds. A device that asks for less, or for more, is served alike.

    arrive: until a connection has made its request. lost: for a sign on a link, and for the other end to take what was sent;
    a frame that is partly here is a sign. stalled: for a session to get on. close: to take leave.
    """

    arrive: float = 10.0
    lost: float = 45.0
    stalled: float = 300.0
    close: float = 2.0

    def __post_init__(self) -> None:
        every = (self.arrive, self.lost, self.stalled, self.close)
        _require(all(0 < seconds < math.inf for seconds in every), "every time to wait must be above 0 seconds")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """How a model is loaded: its name (see `antiphon.models.load`), context cells, threads (0: one a core)."""

    name: str
    context: int = 4096
    threads: int = 0

    def __post_init__(self) -> None:
        _require(self.name.strip() != "", "a model needs a name: a GGUF path, hf:repo/file, or a packaged name")
        _require(16 <= self.context <= 2**20, f"context must be 16 to 1048576 tokens, not {self.context}")
        _require(0 <= self.threads <= 1024, f"threads must be 0 (one a core) to 1024, not {self.threads}")


@dataclass(frozen=True, slots=True)
class ServeConfig:
    """Where a cloud listens, and what it accepts: connections at once at most, and how long it waits for them."""

    host: str = "127.0.0.1"
    port: int = 8765
    limits: Limits = Limits()
    connections: int = 1024
    timeouts: Timeouts = Timeouts()

    def __post_init__(self) -> None:
        _require(self.connections >= 1, f"at least one connection must be accepted, not {self.connections}")
        _require(0 <= self.port <= 65535, f"port must be 0 (any free one) to 65535, not {self.port}")


@dataclass(frozen=True, slots=True)
class Request:
    """One answer to write: the prompt, the method, and when to stop.

    options: of the method's own dataclass, or a mapping of their names to values; None means the method's defaults. seed: None
    means a fresh one.
    """

    prompt: str
    method: str = "coupled"
    options: Any = None
    sampling: SamplingParams = SamplingParams()
    max_tokens: int = 64
    stop: tuple[str, ...] = ()
    chat: bool = False
    seed: int | None = None

    def __post_init__(self) -> None:
        _require(self.prompt != "", "the prompt is empty: give at least one character")
        _require(self.max_tokens >= 1, f"max-tokens must be at least 1, not {self.max_tokens}")
        _require(all(self.stop), "a stop string is empty: give at least one character")
        seed_fits = self.seed is None or 0 <= self.seed < 2**64
        _require(seed_fits, f"seed must be 0 to 2^64 - 1, not {self.seed}")
        _require(self.prompt.isascii() or _encodes(self.prompt), "the prompt is not valid Unicode text")


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

"""Configuration: frozen dataclasses, validated once. Defaults stand here, those of a method's options beside the method."""

import math
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from antiphon.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise UsageError(sentence)


_KINDS = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false"}


def _is(value: object, kind: str) -> bool:
    """Whether a value is of a kind; True is no number."""
    match kind:
        case "str":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, Integral) and not isinstance(value, bool)
        case _:
            return isinstance(value, Real) and not isinstance(value, bool)


def _require_kinds(config: "DataclassInstance") -> None:
    """Raise UsageError for a field of another kind than it is declared to be: else it would fail far from who gave it."""
    for one in fields(config):
        kind, value = getattr(one.type, "__name__", ""), getattr(config, one.name)
        if kind in _KINDS and not _is(value, kind):
            raise UsageError(f"{one.name} must be {_KINDS[kind]}, not {value!r}")


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
        _require_kinds(self)
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
class Limits:
    """What a cloud accepts, told to the device in the handshake. Sizes in bytes, tokens or seconds as named."""

    frame_bytes: int = 8 * 2**20
    prompt_bytes: int = 256 * 2**10
    max_tokens: int = 4096
    sessions_per_connection: int = 8
    handshake_seconds: float = 300.0
    idle_seconds: float = 300.0

    def __post_init__(self) -> None:
        _require_kinds(self)
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
        _require_kinds(self)
        every = (self.arrive, self.lost, self.stalled, self.close)
        _require(all(0 < seconds < math.inf for seconds in every), "every time to wait must be above 0 seconds")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """How a model is loaded: its name (see `antiphon.models.load`), context cells, threads (0: one a core)."""

    name: str
    context: int = 4096
    threads: int = 0

    def __post_init__(self) -> None:
        _require_kinds(self)
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
        _require_kinds(self)
        _require(self.connections >= 1, f"at least one connection must be accepted, not {self.connections}")
        _require(0 <= self.port <= 65535, f"port must be 0 (any free one) to 65535, not {self.port}")


ON_LOSS, ON_RETURN = ("wait", "local", "fail"), ("verify", "keep")


@dataclass(frozen=True, slots=True)
class Request:
    """One answer to write: the prompt, the method, and when to stop.

    options: of the method's own dataclass, or a mapping of their names to values; None means the method's defaults. seed: None
    means a fresh one. on_loss: what becomes of the answer while the link to the cloud is lost: it waits (`wait`), the device
    goes on alone (`local`), or it ends with the error (`fail`). on_return: whether what was written alone is verified by the
    cloud once it is back (`verify`), or kept as it is (`keep`).
    """

    prompt: str
    method: str = "coupled"
    options: Any = None
    sampling: SamplingParams = SamplingParams()
    max_tokens: int = 64
    stop: tuple[str, ...] = ()
    chat: bool = False
    seed: int | None = None
    on_loss: str = "wait"
    on_return: str = "verify"

    def __post_init__(self) -> None:
        if isinstance(self.stop, str):  # one stop string, and not each of its letters
            object.__setattr__(self, "stop", (self.stop,))
        _require_kinds(self)
        _require(isinstance(self.sampling, SamplingParams), "sampling must be SamplingParams(...)")
        _require(self.seed is None or _is(self.seed, "int"), f"seed must be a whole number, not {self.seed!r}")
        _require(all(isinstance(one, str) for one in self.stop), "stop must be text, or several texts")
        _require(self.prompt != "", "the prompt is empty: give at least one character")
        _require(self.max_tokens >= 1, f"max-tokens must be at least 1, not {self.max_tokens}")
        _require(all(self.stop), "a stop string is empty: give at least one character")
        seed_fits = self.seed is None or 0 <= self.seed < 2**64
        _require(seed_fits, f"seed must be 0 to 2^64 - 1, not {self.seed}")
        _require(self.on_loss in ON_LOSS, f"on-loss must be wait, local or fail, not {self.on_loss!r}")
        _require(self.on_return in ON_RETURN, f"on-return must be verify or keep, not {self.on_return!r}")
        kept = self.on_return == "keep"
        _require(self.on_loss == "local" or not kept, "on-return keep is for what on-loss local writes: give both, or neither")
        _require(self.prompt.isascii() or _encodes(self.prompt), "the prompt is not valid Unicode text")


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

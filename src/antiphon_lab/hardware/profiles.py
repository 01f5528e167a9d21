"""What forward passes cost on some hardware, so that virtual time can charge for them: profiles by name, by file, with changes.

Only passes are charged: the maths over a vocabulary, packing and hand-overs really happen, but take no virtual time.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from antiphon.cache import cache_folder
from antiphon.errors import UsageError

FILE = "profile.json"
"""In the cache folder: what `antiphon-lab profile` measured last, which is the profile `measured`."""

FORMAT = 1
"""Of such a file."""


@dataclass(frozen=True, slots=True)
class PassCost:
    """Milliseconds of a forward pass: the first token, each further token of the pass, each 1,000 tokens that it looks back on.

    narrow: passes of 1, 2, ... tokens, where they were measured one by one; `further` then counts from the last of them on.
    source: a sentence that says where the figures come from. Raises UsageError for what cannot be.
    """

    first: float
    further: float = 0.0
    thousand: float = 0.0
    narrow: tuple[float, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        figures = (self.first, self.further, self.thousand, *self.narrow)
        if not all(math.isfinite(figure) and figure >= 0 for figure in figures):
            raise UsageError(f"the milliseconds of a pass must be finite and 0 or more, not {figures}")

    def milliseconds(self, width: int, length: int) -> float:
        """Of a pass of `width` tokens that ends at `length` of them."""
        known = self.narrow or (self.first,)
        inside = known[min(max(width, 1), len(known)) - 1]
        return inside + self.further * max(0, width - len(known)) + self.thousand * length / 1000

    def seconds(self, width: int, length: int) -> float:
        """The same in seconds."""
        return self.milliseconds(width, length) / 1000


@dataclass(frozen=True, slots=True)
class Compute:
    """Two ends' hardware. source: a sentence on the whole. retrieval: milliseconds of a search, on each end."""

    name: str
    draft: PassCost
    verify: PassCost
    source: str
    retrieval: float = 0.0
    retrieval_source: str = "nothing is charged"


_A100 = (
    "33 ms: X-CoSD's server LLM writes about 30 tokens/s, second-hand; 0.1 ms a further token: 15 Gflop at half of "
    "the A100's 312 Tflop/s; 0.04 ms for 1,000 tokens of cache: 57 MB of Qwen2-7B at 1.56 TB/s"
)
_SMALL = (
    "4 ms a step is ours: X-CoSD scales to a TITAN RTX, TSLT has an A800, and neither says the time; 0.02 ms a further token"
)
_4090D = (
    "28.5 ms: DRAGON, which waits a round trip of 50 ms a token, has a median of 78.5 ms between tokens in CONCORD's figure 6; "
    "0.05 ms a further token: 3.4 Gflop at half of 147 Tflop/s; 0.11 ms for 1,000 tokens of cache: 115 MB at 1 TB/s"
)
PROFILES: Mapping[str, Compute] = {
    "paper": Compute(
        "paper",
        PassCost(4.0, source="4 ms for any pass of the device: ours"),
        PassCost(33.0, source="33 ms for any pass of the cloud: X-CoSD's server LLM writes about 30 tokens/s, second-hand"),
        "flat costs, as in the papers' formulas, in which a pass takes the same time however wide it is",
    ),
    "a100-7b": Compute(
        "a100-7b",
        PassCost(4.0, 0.02, source=_SMALL),
        PassCost(33.0, 0.1, 0.04, source=_A100),
        "X-CoSD B and TSLT 5: 7B models on an A100 or A800, drafters of 68M",
    ),
    "4090d-1.7b": Compute(
        "4090d-1.7b",
        PassCost(28.5, 0.05, 0.11, source="as the cloud: one model on both ends, on GPUs of one kind"),
        PassCost(28.5, 0.05, 0.11, source=_4090D),
        "CONCORD V-A: Qwen3-1.7B on both ends, each on an RTX 4090D",
        retrieval_source="CONCORD gives no time of a search: nothing is charged unless retrieval=TIME is added",
    ),
}


def parse_compute(text: str) -> Compute:
    """The hardware that a text names: a profile or a file, and changes of it. Raises UsageError, one sentence."""
    head, *changes = (part.strip() for part in text.split(","))
    compute = _named(head)
    for change in changes:
        compute = _changed(compute, change)
    source = f"{compute.source}; changed: {','.join(changes)}" if changes else compute.source
    return replace(compute, name=text.strip(), source=source)


def measured_file() -> Path:
    """Where the profile `measured` is. Raises CacheError."""
    return cache_folder() / FILE


def read_compute(path: Path) -> Compute:
    """A profile that `antiphon-lab profile` wrote. Raises UsageError."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read ({error.strerror}): write it by `antiphon-lab profile --output {path}`"
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} is no profile of hardware ({error}): write one by `antiphon-lab profile --output {path}`"
        ) from error
    if found.antiphon_profile != FORMAT:
        raise UsageError(f"{path} is a profile of format {found.antiphon_profile}, not {FORMAT}: write it again")
    return found.compute


def packed(compute: Compute, measured: Mapping[str, Any]) -> bytes:
    """The content of a profile's file; `measured` stands beside the profile for a person to read."""
    return msgspec.json.format(msgspec.json.encode(_File(FORMAT, compute, dict(measured))), indent=1) + b"\n"


@dataclass(frozen=True, slots=True)
class _File:
    antiphon_profile: int
    compute: Compute
    measured: dict[str, Any]


def _named(head: str) -> Compute:
    if head in PROFILES:
        return PROFILES[head]
    if head == "measured":
        return _measured()
    if "/" in head or head.endswith(".json"):
        return read_compute(Path(head))
    raise UsageError(
        f"there is no hardware profile {head!r}: use {', '.join(PROFILES)}, measured, "
        "or a file that `antiphon-lab profile` wrote"
    )


def _measured() -> Compute:
    path = measured_file()
    if not path.exists():
        raise UsageError("this machine has not been measured yet: run `antiphon-lab profile` first, or use another --profile")
    return read_compute(path)


def _changed(compute: Compute, change: str) -> Compute:
    key, _, value = (part.strip() for part in change.partition("="))
    if key not in _KEYS:
        raise UsageError(
            f"{change!r} is no part of a profile: after its name give times of {', '.join(_KEYS)}, as in {EXAMPLE}"
        )
    milliseconds = _time(key, value)
    if key in ("draft", "verify") and milliseconds == 0:
        raise UsageError(f"{key} must be above 0, not {value!r}: a pass takes time")
    return _KEYS[key](compute, milliseconds)


EXAMPLE = "a100-7b,draft=8ms,verify=40ms,further=0.3ms"


def _line(cost: PassCost, **fields: Any) -> PassCost:
    """A changed cost, which is a straight line then."""
    return replace(cost, **fields, narrow=(), source=f"{cost.source}; changed")


_KEYS: Mapping[str, Callable[[Compute, float], Compute]] = {
    "draft": lambda compute, value: replace(compute, draft=_line(compute.draft, first=value)),
    "draft-further": lambda compute, value: replace(compute, draft=_line(compute.draft, further=value)),
    "draft-thousand": lambda compute, value: replace(compute, draft=_line(compute.draft, thousand=value)),
    "verify": lambda compute, value: replace(compute, verify=_line(compute.verify, first=value)),
    "further": lambda compute, value: replace(compute, verify=_line(compute.verify, further=value)),
    "thousand": lambda compute, value: replace(compute, verify=_line(compute.verify, thousand=value)),
    "retrieval": lambda compute, value: replace(compute, retrieval=value, retrieval_source="as given"),
}

_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


def _time(key: str, value: str) -> float:
    """Milliseconds."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(us|ms|s)", value)
    if found is None:
        raise UsageError(f"{key} must be a time such as 4ms, 300us or 1.5s, not {value!r}")
    return float(found[1]) * _UNITS[found[2]]

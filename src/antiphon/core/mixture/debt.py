"""Waiting debt: how long a step may wait for the cloud, by what waiting brought so far (METHODS 4; CONCORD IV-B).

Every step that waited in vain, or whose evidence overruled the cloud's own draft, adds 1 to the debt; evidence that was
absorbed repays some. With much debt the device waits less: tau_short(q), a function that the paper leaves open.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from antiphon.errors import UsageError

Fall = Literal["constant", "linear", "halving"]
FALLS: tuple[Fall, ...] = get_args(Fall)


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise UsageError(sentence)


@dataclass(frozen=True, slots=True)
class DebtOptions:
    """threshold: Q, from which on waits are short. limit: Q_max. repayment: rho_a.

    short: tau_short(Q), the short wait in seconds. fall: what becomes of it with more debt: it stays (`constant`), goes down to
    0 at the limit (`linear`), or halves with each 1 (`halving`). A threshold above the limit never shortens a wait. Raises
    UsageError if a value is out of range.
    """

    threshold: float = 3.0
    limit: float = 4.0
    repayment: float = 1.0
    short: float = 0.0
    fall: Fall = "constant"

    def __post_init__(self) -> None:
        for name in ("threshold", "limit", "repayment", "short"):
            value = getattr(self, name)
            _require(math.isfinite(value) and value >= 0, f"the debt's {name} must be a finite number from 0 on, not {value}")
        _require(self.repayment > 0, "the debt's repayment must be above 0, or debt would never shrink")
        _require(self.fall in FALLS, f"fall must be {', '.join(FALLS[:-1])} or {FALLS[-1]}, not {self.fall!r}")

    def short_wait(self, owed: float) -> float:
        """tau_short of a debt from the threshold on, in seconds."""
        above = owed - self.threshold
        match self.fall:
            case "constant":
                return self.short
            case "linear":
                return self.short * (self.limit - owed) / (self.limit - self.threshold) if above > 0 else self.short
            case "halving":
                return self.short * math.pow(0.5, above)


@dataclass(frozen=True, slots=True)
class WaitingDebt:
    """The debt of one link, 0 when a question begins."""

    options: DebtOptions = field(default_factory=DebtOptions)
    owed: float = 0.0

    def timeout(self, base: float) -> float:
        """How long the next step may wait, in the unit of `base`, the usual wait; never longer than that."""
        return min(base, self.options.short_wait(self.owed)) if self.owed >= self.options.threshold else base

    def absorbed(self) -> "WaitingDebt":
        """After evidence whose token was the cloud's own draft (alpha = 1)."""
        return self._changed(-self.options.repayment)

    def wasted(self) -> "WaitingDebt":
        """After a timeout, or evidence that led to another token than the cloud's draft (xi = 1)."""
        return self._changed(1.0)

    def _changed(self, amount: float) -> "WaitingDebt":
        return replace(self, owed=min(self.options.limit, max(0.0, self.owed + amount)))

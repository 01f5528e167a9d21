"""Waiting debt: how long a step may wait for the cloud, by what waiting brought so far (METHODS 4; CONCORD section IV-B).

Every step that waited in vain, or whose evidence overruled the cloud's own draft, adds 1 to the debt; evidence that was
absorbed repays some. With much debt the device waits less.
"""

import math
from dataclasses import dataclass, field, replace

from antiphon.errors import UsageError


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise UsageError(sentence)


@dataclass(frozen=True, slots=True)
class DebtOptions:
    """threshold: Q, from which on waits are short. limit: Q_max. repayment: rho_a. short: tau_short, the short wait in seconds.

    A threshold above the limit never shortens a wait. Raises UsageError if a value is out of range.
    """

    threshold: float = 3.0
    limit: float = 4.0
    repayment: float = 1.0
    short: float = 0.0

    def __post_init__(self) -> None:
        for name in ("threshold", "limit", "repayment", "short"):
            value = getattr(self, name)
            _require(math.isfinite(value) and value >= 0, f"the debt's {name} must be a finite number from 0 on, not {value}")
        _require(self.repayment > 0, "the debt's repayment must be above 0, or debt would never shrink")


@dataclass(frozen=True, slots=True)
class WaitingDebt:
    """The debt of one link, 0 when a question begins."""

    options: DebtOptions = field(default_factory=DebtOptions)
    owed: float = 0.0

    def patience(self, base: float) -> float:
        """How long the next step may wait, in the unit of `base`, the usual wait; never longer than that."""
        return min(base, self.options.short) if self.owed >= self.options.threshold else base

    def absorbed(self) -> "WaitingDebt":
        """After evidence whose token was the cloud's own draft (alpha = 1)."""
        return self._changed(-self.options.repayment)

    def wasted(self) -> "WaitingDebt":
        """After a timeout, or evidence that led to another token than the cloud's draft (xi = 1)."""
        return self._changed(1.0)

    def _changed(self, amount: float) -> "WaitingDebt":
        return replace(self, owed=min(self.options.limit, max(0.0, self.owed + amount)))

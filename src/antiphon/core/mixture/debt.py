"""Waiting debt: how long a step may wait for the cloud, by what waiting brought so far (METHODS 4; CONCORD IV-B).

Every step that waited in vain, or whose evidence overruled the cloud's own draft, adds 1 to the debt; evidence that was
absorbed repays some. With much debt the device waits less: tau_short(q), a function that the paper leaves open.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from antiphon.options import option, require

Decay = Literal["constant", "linear", "halving"]
DECAYS: tuple[Decay, ...] = get_args(Decay)


@dataclass(frozen=True, slots=True)
class DebtOptions:
    """How a link's debt shortens waits: see each option. A threshold above the most debt never does. Raises UsageError."""

    debt_threshold: float = option(3.0, "Q: debt from which on waits are short.")
    max_debt: float = option(4.0, "Q_max: debt at most.")
    debt_repayment: float = option(1.0, "rho_a: debt repaid by a draft of the cloud that is taken.")
    short_timeout: float = option(0.0, "tau_short(Q): seconds to wait for evidence in debt.")
    timeout_decay: Decay = option("constant", "short_timeout in more debt: constant, linear to 0, or halving.")

    def __post_init__(self) -> None:
        for name in ("debt_threshold", "max_debt", "debt_repayment", "short_timeout"):
            value = getattr(self, name)
            require(math.isfinite(value) and value >= 0, f"{name} must be a finite number from 0 on, not {value}")
        require(self.debt_repayment > 0, "debt_repayment must be above 0, or debt would never shrink")
        listed = f"{', '.join(DECAYS[:-1])} or {DECAYS[-1]}"
        require(self.timeout_decay in DECAYS, f"timeout_decay must be {listed}, not {self.timeout_decay!r}")

    def short_wait(self, owed: float) -> float:
        """tau_short of a debt from the threshold on, in seconds."""
        above = owed - self.debt_threshold
        match self.timeout_decay:
            case "constant":
                return self.short_timeout
            case "linear":
                left, span = self.max_debt - owed, self.max_debt - self.debt_threshold
                return self.short_timeout * left / span if above > 0 else self.short_timeout
            case "halving":
                return self.short_timeout * math.pow(0.5, above)


@dataclass(frozen=True, slots=True)
class WaitingDebt:
    """The debt of one link, 0 when a question begins."""

    options: DebtOptions = field(default_factory=DebtOptions)
    owed: float = 0.0

    def timeout(self, base: float) -> float:
        """How long the next step may wait, in the unit of `base`, the usual wait; never longer than that."""
        return min(base, self.options.short_wait(self.owed)) if self.owed >= self.options.debt_threshold else base

    def absorbed(self) -> "WaitingDebt":
        """After evidence whose token was the cloud's own draft (alpha = 1)."""
        return self._changed(-self.options.debt_repayment)

    def wasted(self) -> "WaitingDebt":
        """After a timeout, or evidence that led to another token than the cloud's draft (xi = 1)."""
        return self._changed(1.0)

    def _changed(self, amount: float) -> "WaitingDebt":
        return replace(self, owed=min(self.options.max_debt, max(0.0, self.owed + amount)))

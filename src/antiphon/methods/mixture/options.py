"""The options of the methods that mix two ends' documents (METHODS 4); flat, for they cross the link."""

import math
from dataclasses import dataclass
from typing import Literal

from antiphon.core.mixture.consult import ConsultOptions
from antiphon.core.mixture.debt import DebtOptions, Fall
from antiphon.errors import UsageError

LONGEST_WAIT = 30.0
"""Seconds after which a silent cloud is taken to be gone."""


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise UsageError(sentence)


@dataclass(frozen=True, slots=True)
class MixtureOptions(ConsultOptions):
    """Options of `concord` and of the methods that it is compared with, beside those of `ConsultOptions`.

    kept: passages that each end keeps. form: the prompt is a `question`, or a `text` to go on with. enough: evidence of a step
    ends before `first` scores where they fall below this share of the strongest; 0 sends them all. ahead: W, steps that a cloud
    may be ahead. gate: kappa; 1 is exact, infinity is off. wait: tau_base in seconds; 0 is auto, a round trip with a step and 3
    standard deviations. short, threshold, limit, repayment: tau_short, Q, Q_max, rho_a; fall: how tau_short falls with debt.
    realign: `soft`, only where the drafts differ, or `hard`, also after a timeout. neither: where the dense token is no end's
    own draft, it (`dense`) is committed, or, as in the paper's algorithm 1, the `local` one. packing: of `dragon`, `dense` or
    `topp`, with top_p. Raises UsageError for a value that does not fit.
    """

    kept: int = 2
    form: Literal["question", "text"] = "question"
    enough: float = 0.2
    ahead: int = 8
    gate: float = 1.0
    wait: float = 0.0
    short: float = 0.0
    threshold: float = 3.0
    limit: float = 4.0
    repayment: float = 1.0
    fall: Fall = "constant"
    realign: Literal["soft", "hard"] = "soft"
    neither: Literal["dense", "local"] = "dense"
    packing: Literal["dense", "topp"] = "dense"
    top_p: float = 0.9

    def __post_init__(self) -> None:
        ConsultOptions.__post_init__(self)
        _require(1 <= self.kept <= 64, f"kept must be 1 to 64 passages, not {self.kept}")
        _require(self.form in ("question", "text"), f"form must be question or text, not {self.form!r}")
        _require(0 <= self.enough <= 1, f"enough must be a share from 0 to 1, not {self.enough}")
        _require(1 <= self.ahead <= 64, f"ahead must be 1 to 64 steps, not {self.ahead}")
        _require(self.gate > 0 and not math.isnan(self.gate), f"gate must be above 0 (1 is exact), or off, not {self.gate}")
        _require(0 <= self.wait <= LONGEST_WAIT, f"wait must be 0 (auto) to {LONGEST_WAIT:g} s, not {self.wait}")
        _require(self.realign in ("soft", "hard"), f"realign must be soft or hard, not {self.realign!r}")
        _require(self.neither in ("dense", "local"), f"neither must be dense or local, not {self.neither!r}")
        _require(self.packing in ("dense", "topp"), f"packing must be dense or topp, not {self.packing!r}")
        _require(0 < self.top_p <= 1, f"top-p of the packing must be above 0 and at most 1, not {self.top_p}")
        self.debt()

    def debt(self) -> DebtOptions:
        """Those of the waiting debt."""
        return DebtOptions(self.threshold, self.limit, self.repayment, self.short, self.fall)

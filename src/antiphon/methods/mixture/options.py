"""The options of the methods that mix two ends' documents (METHODS 4); flat, for they cross the link."""

import math
from dataclasses import dataclass
from typing import Literal

from antiphon.core.mixture.consult import ConsultOptions
from antiphon.core.mixture.debt import DebtOptions, Decay
from antiphon.options import option, option_of, require

LONGEST_WAIT = 30.0
"""Seconds after which a silent cloud is taken to be gone."""


@dataclass(frozen=True, slots=True)
class MixtureOptions(ConsultOptions):
    """Options of `concord` and of the methods that it is compared with, beside those of `ConsultOptions`.

    gate: infinity is off. timeout: 0 is auto, a round trip with a step and 3 standard deviations. debt_threshold to
    timeout_decay: see `DebtOptions`. Raises UsageError for a value that does not fit.
    """

    passages: int = option(2, "Passages that each end puts before its prompt.")
    prompt_format: Literal["question", "text"] = option("question", "What is asked: a question, or a text to go on with.")
    min_share: float = option(0.2, "Only scores of at least this share of a step's strongest; 0: all `first`.")
    ahead: int = option(8, "W: steps that a cloud works ahead of the answer.")
    gate: float = option(1.0, "kappa: 1 is exact, below it tokens are guessed; or off.", {"off": math.inf})
    timeout: float = option(0.0, "tau_base: seconds to wait for evidence; auto measures.", {"auto": 0.0})
    short_timeout: float = option_of(DebtOptions, "short_timeout")
    debt_threshold: float = option_of(DebtOptions, "debt_threshold")
    max_debt: float = option_of(DebtOptions, "max_debt")
    debt_repayment: float = option_of(DebtOptions, "debt_repayment")
    timeout_decay: Decay = option_of(DebtOptions, "timeout_decay")
    realign: Literal["soft", "hard"] = option("soft", "soft: where drafts differ; hard: after a timeout too.")
    undrafted: Literal["dense", "local"] = option("dense", "A token that no end drafted: dense; or local, as in the paper.")
    packing: Literal["dense", "topp"] = option("dense", "dragon: dense, or topp, which cuts off a distribution's tail.")
    packing_top_p: float = option(0.9, "dragon: the mass that the packing topp leaves.")

    @property
    def max_drafts(self) -> int:
        """Nothing is drafted for the cloud to test."""
        return 0

    def __post_init__(self) -> None:
        ConsultOptions.__post_init__(self)
        require(1 <= self.passages <= 64, f"passages must be 1 to 64, not {self.passages}")
        form = self.prompt_format
        require(form in ("question", "text"), f"prompt_format must be question or text, not {form!r}")
        require(0 <= self.min_share <= 1, f"min_share must be a share from 0 to 1, not {self.min_share}")
        require(1 <= self.ahead <= 64, f"ahead must be 1 to 64 steps, not {self.ahead}")
        require(self.gate > 0 and not math.isnan(self.gate), f"gate must be above 0 (1 is exact), or off, not {self.gate}")
        require(0 <= self.timeout <= LONGEST_WAIT, f"timeout must be 0 (auto) to {LONGEST_WAIT:g} s, not {self.timeout}")
        require(self.realign in ("soft", "hard"), f"realign must be soft or hard, not {self.realign!r}")
        require(self.undrafted in ("dense", "local"), f"undrafted must be dense or local, not {self.undrafted!r}")
        require(self.packing in ("dense", "topp"), f"packing must be dense or topp, not {self.packing!r}")
        fits = 0 < self.packing_top_p <= 1
        require(fits, f"packing_top_p must be above 0 and at most 1, not {self.packing_top_p}")
        self.debt()

    def debt(self) -> DebtOptions:
        """Those of the waiting debt."""
        return DebtOptions(self.debt_threshold, self.max_debt, self.debt_repayment, self.short_timeout, self.timeout_decay)

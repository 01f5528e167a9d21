"""Answers to figures: what a row of `antiphon-lab bench rag` says, with intervals over the examples (bootstrap)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from antiphon.core.mixture.debt import DebtOptions, WaitingDebt
from antiphon.methods.effects import Kind
from antiphon_lab.experiments.rag.answers import Step, Written
from antiphon_lab.stats.bootstrap import difference_interval, resampled
from antiphon_lab.stats.intervals import Mean

CDF_POINTS = 21
"""Of a curve of latencies, from the least to the largest."""
_SEED = 20260615

Sums = NDArray[np.float64]
"""Statistics summed over examples, in the last axis; an axis before it for each resampling."""


def total(rows: Sequence[Sequence[float]], of: Callable[[Sums], Sums]) -> Mean:
    """A figure by statistics that are summed over rows, with its 95 % interval by resampling the rows; none of too few."""
    statistics = np.array(rows, dtype=np.float64)
    return Mean(float(of(statistics.sum(0))), resampled(statistics, of, _SEED))


def ratio(pairs: Sequence[tuple[float, float]]) -> Mean:
    """The sum of the first numbers over that of the second; 0 where that is 0."""
    return total(pairs, lambda sums: _quotient(sums[..., 0], sums[..., 1]))


def _quotient(above: Sums, below: Sums) -> Sums:
    return np.divide(above, below, out=np.zeros_like(above), where=below != 0)


@dataclass(frozen=True)
class Figures:
    """The figures of a row's answers.

    baseline, dense: those of `dragon` and of `drdg-tw` to the same examples on the same link, if they were written. debt: the
    row's options of it.
    """

    answers: tuple[Written, ...]
    baseline: tuple[Written, ...] = ()
    dense: tuple[Written, ...] = ()
    debt: DebtOptions = field(default_factory=DebtOptions)

    @cached_property
    def queries_per_s(self) -> Mean:
        """Answers over the seconds of all answers."""
        return ratio([(1.0, one.seconds) for one in self.answers])

    @cached_property
    def tokens_per_s(self) -> Mean:
        """Tokens over the seconds of all answers."""
        return ratio([(one.tokens, one.seconds) for one in self.answers])

    @cached_property
    def decoding_per_s(self) -> Mean:
        """Tokens behind the first over the seconds behind it: what is left where a long prompt is read slowly."""
        return ratio([(one.tokens - 1, one.times[-1] - one.times[0]) for one in self.answers])

    @cached_property
    def speedup(self) -> Mean | None:
        """Queries a second over those of `dragon`; of texts tokens a second, for answers that end early are no gain."""
        if not self.baseline:
            return None
        count: Callable[[Written], float] = (lambda one: 1.0) if self.is_answered else (lambda one: one.tokens)
        pairs = zip(self.answers, self.baseline, strict=True)
        rows = [(count(one), one.seconds, count(other), other.seconds) for one, other in pairs]
        return total(rows, lambda sums: _quotient(sums[..., 0] * sums[..., 3], sums[..., 1] * sums[..., 2]))

    @cached_property
    def is_answered(self) -> bool:
        """Whether the examples are questions, and not texts."""
        return bool(self.answers[0].scores)

    def score(self, place: int) -> Mean:
        """0: F1, 1: exact match; from 0 to 100."""
        return total([one.scores for one in self.answers], lambda sums: 100.0 * sums[..., place] / sums[..., -1])

    @cached_property
    def difference(self) -> tuple[float, float] | None:
        """The interval of the difference in F1 to `drdg-tw`."""
        if not (self.is_answered and self.dense):
            return None
        ours, theirs = (np.array([one.scores for one in answers]) for answers in (self.answers, self.dense))
        return difference_interval(ours, theirs, lambda sums: 100.0 * float(sums[0] / sums[-1]))

    def perplexity(self, place: int) -> Mean:
        """0: teacher-forced, 1: with the policy in the loop."""
        return total([one.nats for one in self.answers], lambda sums: np.exp(sums[..., place] / sums[..., -1]))

    def per_token(self, of: Callable[[Written], float]) -> Mean:
        """A sum over the answers, for each token."""
        return ratio([(of(one), one.tokens) for one in self.answers])

    def per_answer(self, of: Callable[[Written], float]) -> Mean:
        """A sum over the answers, for each answer."""
        return ratio([(of(one), 1.0) for one in self.answers])

    @cached_property
    def bytes(self) -> Mean:
        """Bytes a token, both ways, framing and the opening of the session included."""
        return self.per_token(lambda one: (sum(one.up + one.down) + one.opening) / 8)

    @cached_property
    def messages(self) -> Mean:
        """Messages an answer, both ways, without the two that open it."""
        return self.per_answer(lambda one: sum(one.messages))

    def share(self, part: Callable[[Step], bool], of: Callable[[Step], bool] = lambda step: True) -> Mean:
        """The share of some steps in others."""
        counts = [(sum(of(step) and part(step) for step in one.steps), sum(map(of, one.steps))) for one in self.answers]
        return ratio(counts)

    @cached_property
    def different(self) -> Mean | None:
        """The share of tokens that are not the dense one behind the same answer; None where that says nothing."""
        if not any(one.compared for one in self.answers):
            return None
        return ratio([(one.different, one.compared) for one in self.answers])

    def steps(self) -> Mapping[str, Mean]:
        """How tokens were decided, by name; shares of all tokens, or of those with evidence, as the names say."""
        return {
            "certain": self.share(lambda step: step.kind is Kind.CERTAIN),
            "late": self.share(late),
            "participation": self.share(consulted),
            "own_of_consulted": self.share(submitted, consulted),
            "changed_of_consulted": self.share(lambda step: step.kind is Kind.CHANGED, consulted),
            "drafted_of_consulted": self.share(lambda step: step.drafted, consulted),
            "at_once_of_consulted": self.share(at_once, consulted),
            "certified_of_consulted": self.share(certified, consulted),
            "asked_of_consulted": self.share(lambda step: bool(step.questions or step.chunks), consulted),
            "forced_of_consulted": self.share(lambda step: step.everything, consulted),
        }

    def first_token_s(self) -> list[float]:
        """Seconds to the first token of each answer."""
        return [one.times[0] for one in self.answers]

    def between_tokens_s(self) -> list[float]:
        """Seconds between tokens that follow each other."""
        return [after - before for one in self.answers for before, after in zip(one.times, one.times[1:], strict=False)]

    def debts(self) -> list[float]:
        """The waiting debt before each token, by its place in the answer, on average over the answers that got there."""
        return _means([list(_debts(one.steps, self.debt)) for one in self.answers])

    @cached_property
    def debt_growth(self) -> Mean:
        """The mean of xi - rho_a * alpha over all tokens, which the paper wants to be at most 0 (CONCORD IV-D).

        Without the debt's limits: what a step adds where it waited in vain or its evidence was of no use, or repays.
        """
        return self.per_token(lambda one: sum(_growth(step, self.debt) for step in one.steps))

    def over(self, other: "Figures") -> Mean | None:
        """The throughput over that of another row of the same examples."""
        return replace(self, baseline=other.answers).speedup

    def as_json(self) -> dict[str, object]:
        """The figures by name; a mean has its interval beside it."""
        found: dict[str, Mean | None] = {
            "queries_per_s": self.queries_per_s,
            "tokens_per_s": self.tokens_per_s,
            "decoding_tokens_per_s": self.decoding_per_s,
            "speedup": self.speedup,
            "up_bytes_per_token": self.per_token(lambda one: sum(one.up) / 8),
            "down_bytes_per_token": self.per_token(lambda one: sum(one.down) / 8),
            "framing_bytes_per_token": self.per_token(lambda one: (one.up[1] + one.down[1]) / 8),
            "bytes_per_token": self.bytes,
            "opening_bytes_per_token": self.per_token(lambda one: one.opening / 8),
            "opening_bytes_per_answer": self.per_answer(lambda one: one.opening / 8),
            "messages_per_answer": self.messages,
            "cloud_passes_per_token": self.per_token(lambda one: one.cloud_passes),
            "different_from_dense": self.different,
            "debt_growth_per_token": self.debt_growth,
            "waited_s_per_answer": self.per_answer(lambda one: sum(step.waited for step in one.steps)),
            **self.steps(),
            **self._quality(),
        }
        times = {"ttft": self.first_token_s(), "itl": self.between_tokens_s()}
        return {
            "answers": len(self.answers),
            "tokens": sum(one.tokens for one in self.answers),
            **{name: None if mean is None else {"mean": mean.mean, "interval": mean.interval} for name, mean in found.items()},
            "f1_difference_interval": self.difference,
            **{f"{name}_p{percent}_s": quantile(values, percent) for name, values in times.items() for percent in (50, 90)},
            **{f"{name}_cdf": cdf(values) for name, values in times.items()},
        }

    def _quality(self) -> dict[str, Mean | None]:
        if self.is_answered:
            return {"f1": self.score(0), "exact_match": self.score(1)}
        alone = ratio([(one.forced_alone, one.nats[2]) for one in self.answers])
        return {"perplexity": self.perplexity(0), "perplexity_policy": self.perplexity(1), "perplexity_alone": alone}


def consulted(step: Step) -> bool:
    """Whether a token was decided with evidence."""
    return step.evidence


def late(step: Step) -> bool:
    """Whether the device's own token was committed because no evidence came in time."""
    return step.kind is Kind.LOCAL and not step.evidence


def submitted(step: Step) -> bool:
    """Whether it was committed though there was evidence: the dense token was neither draft, and `neither` is `local`."""
    return step.kind is Kind.LOCAL and step.evidence


def at_once(step: Step) -> bool:
    """Whether the first evidence settled it."""
    return not (step.questions or step.chunks or step.everything)


def certified(step: Step) -> bool:
    """Whether a certificate settled it, before all scores were there."""
    return not step.everything


def quantile(values: Sequence[float], percent: float) -> float | None:
    """A percentile; None of nothing."""
    return float(np.percentile(values, percent)) if len(values) else None


def median_and_p90(seconds: Sequence[float], form: str = ".1f", between: str = "/") -> str:
    """Both in milliseconds; dashes of nothing."""
    found = [quantile(seconds, percent) for percent in (50, 90)]
    return between.join("-" if value is None else f"{1000 * value:{form}}" for value in found)


def cdf(values: Sequence[float]) -> list[tuple[float, float]]:
    """Values, and the share of all that are no larger, along even shares."""
    shares = np.linspace(0.0, 1.0, CDF_POINTS)
    return [(float(np.quantile(values, share)), float(share)) for share in shares] if len(values) else []


def _debts(steps: Sequence[Step], options: DebtOptions) -> list[float]:
    debt, found = WaitingDebt(options), []
    for step in steps:
        found.append(debt.owed)
        if step.kind is not Kind.CERTAIN:
            debt = debt.absorbed() if step.drafted else debt.wasted()
    return found


def _growth(step: Step, options: DebtOptions) -> float:
    if step.kind is Kind.CERTAIN:
        return 0.0
    return -options.debt_repayment if step.drafted else 1.0


def _means(rows: Sequence[Sequence[float]]) -> list[float]:
    longest = max(map(len, rows), default=0)
    return [float(np.mean([row[place] for row in rows if len(row) > place])) for place in range(longest)]

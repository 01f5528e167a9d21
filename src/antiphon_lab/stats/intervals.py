"""Means with intervals over answers or texts, as every figure of the reports has them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from antiphon_lab.stats.bootstrap import Interval, difference_interval

Sums = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its 95 % interval, bootstrapped over answers or texts; none of too few."""

    mean: float
    interval: Interval | None


def total(rows: Sequence[Sequence[float]], of: Callable[[Sums], float]) -> Mean:
    """A figure by numbers that are summed over rows, with its 95 % interval by resampling the rows; none of too few."""
    sums = np.array(rows, dtype=np.float64)
    interval = difference_interval(sums, np.zeros_like(sums), lambda drawn: of(drawn) if drawn.any() else 0.0)
    return Mean(of(sums.sum(0)), interval)


def ratio(pairs: Sequence[tuple[float, float]]) -> Mean:
    """The sum of the first numbers over that of the second."""
    return total(pairs, lambda sums: float(sums[0] / sums[1]) if sums[1] else 0.0)


def ratio_of_ratios(pairs: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]) -> Mean:
    """The one ratio over the other, row by row of the same questions."""
    rows = [(*pair, *other) for pair, other in zip(pairs, others, strict=True)]
    return total(rows, lambda sums: float(sums[0] * sums[3] / (sums[1] * sums[2])))


def mean_of(texts: Sequence[Sequence[float]], weights: Sequence[Sequence[float]] | None = None) -> Mean:
    """The mean of the values of all texts, or their sum over that of the weights; a text's values are resampled together."""
    over = [float(len(text)) for text in texts] if weights is None else [sum(text) for text in weights]
    return ratio([(sum(text), under) for text, under in zip(texts, over, strict=True)])

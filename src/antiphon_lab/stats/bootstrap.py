"""The paired bootstrap: how sure is the difference of two scores on the same rows?"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
FEWEST = 12
"""Units (answers, questions, texts) from which on resampling them says how sure a figure is."""
TOO_FEW = "n too small"
"""What stands where an interval would, of fewer units."""
UNSURE = "\u00b1?"
"""The same in the cells of a wide table, whose caption says so."""
Interval = tuple[float, float]
_SEED = 20240229


def difference_interval(
    statistics: NDArray[np.float64],
    reference: NDArray[np.float64],
    total: Callable[[NDArray[np.float64]], float],
    resamples: int = RESAMPLES,
) -> Interval | None:
    """The middle 95 % of `total(statistics) - total(reference)` over resampled rows, the same rows for both; None of too few.

    statistics, reference: shape (rows, statistics of a row). total: the score by statistics summed over rows. The draws are the
    same each time. Raises ValueError if the shapes differ or there is no row.
    """
    if statistics.shape != reference.shape or len(statistics) == 0:
        raise ValueError(f"one row of the one for each row of the other is needed: {statistics.shape}, {reference.shape}")
    if (counts := _draws(len(statistics), _SEED, resamples)) is None:
        return None
    pairs = zip(counts @ statistics, counts @ reference, strict=True)
    return _middle([total(ours) - total(theirs) for ours, theirs in pairs])


def resampled(
    statistics: NDArray[np.float64],
    total: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    seed: int,
    resamples: int = RESAMPLES,
) -> Interval | None:
    """The middle 95 % of a figure over resampled rows; None of too few.

    statistics: shape (rows, statistics of a row). total: the figures by statistics that are summed over rows, of shape
    (resamples, statistics). The draws are the same each time.
    """
    counts = _draws(len(statistics), seed, resamples)
    return None if counts is None else _middle(total(counts @ statistics))


def _draws(rows: int, seed: int, resamples: int) -> NDArray[np.int64] | None:
    """How often each row is drawn, shape (resamples, rows)."""
    if rows < FEWEST:
        return None
    return np.random.default_rng(seed).multinomial(rows, np.full(rows, 1 / rows), size=resamples)


def _middle(figures: NDArray[np.float64] | list[float]) -> Interval:
    low, high = np.percentile(figures, [2.5, 97.5])
    return float(low), float(high)

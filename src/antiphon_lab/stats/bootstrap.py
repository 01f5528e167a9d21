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
    rows = len(statistics)
    if rows < FEWEST:
        return None
    counts = np.random.default_rng(_SEED).multinomial(rows, np.full(rows, 1 / rows), size=resamples)
    pairs = zip(counts @ statistics, counts @ reference, strict=True)
    low, high = np.percentile([total(ours) - total(theirs) for ours, theirs in pairs], [2.5, 97.5])
    return float(low), float(high)

"""The bootstrap interval: right where the answer is known, the same each time, and none of too few units."""

import numpy as np
import pytest

from antiphon_lab.experiments.rag.figures import ratio as rag_ratio
from antiphon_lab.stats.bootstrap import FEWEST, difference_interval, resampled
from antiphon_lab.stats.intervals import mean_of, ratio


def mean(sums: np.ndarray) -> float:
    return float(sums[0] / sums[1])


def scores(values: list[float]) -> np.ndarray:
    return np.array([(value, 1.0) for value in values])


def test_equal_scores_differ_by_nothing() -> None:
    some = scores([0.0, 1.0, 1.0, 0.0, 0.5] * 3)
    assert difference_interval(some, some, mean) == (0.0, 0.0)


def test_scores_of_one_distribution_leave_zero_inside() -> None:
    chance = np.random.default_rng(1)
    ours, theirs = (scores(list(chance.random(50))) for _ in range(2))
    low, high = difference_interval(ours, theirs, mean)
    assert low < 0 < high


def test_plainly_better_scores_leave_zero_outside() -> None:
    chance = np.random.default_rng(1)
    theirs = scores(list(chance.random(50)))
    ours = theirs + np.array([0.5, 0.0]) + 0.1 * np.column_stack([chance.standard_normal(50), np.zeros(50)])
    low, high = difference_interval(ours, theirs, mean)
    assert 0.4 < low < 0.5 < high < 0.6
    assert difference_interval(theirs, ours, mean)[1] < 0


def test_it_is_paired() -> None:
    """A constant advantage on rows of very different difficulty is certain."""
    theirs = scores([0.0, 100.0, 3.0, 50.0] * 3)
    low, high = difference_interval(theirs + np.array([1.0, 0.0]), theirs, mean)
    assert low == pytest.approx(1.0)
    assert high == pytest.approx(1.0)


def test_its_width_is_that_of_the_normal_distribution() -> None:
    values = np.random.default_rng(2).standard_normal(400)
    low, high = difference_interval(scores(list(values)), scores([0.0] * 400), mean)
    assert low == pytest.approx(values.mean() - 1.96 * values.std() / 20, abs=0.01)
    assert high == pytest.approx(values.mean() + 1.96 * values.std() / 20, abs=0.01)


def test_it_is_the_same_each_time() -> None:
    ours, theirs = scores([0.0, 1.0, 1.0, 0.25] * 3), scores([1.0, 0.0, 0.0, 0.5] * 3)
    found = difference_interval(ours, theirs, mean)
    assert found is not None
    assert found == difference_interval(ours, theirs, mean)


@pytest.mark.parametrize("count", [1, 2, FEWEST - 1])
def test_fewer_than_twelve_units_have_no_interval(count: int) -> None:
    """In whichever report: eleven answers resampled would look as sure as they are not."""
    values = [(float(place), 1.0 + place) for place in range(count)]
    rows = np.array(values)
    assert difference_interval(rows, rows * 0.5, mean) is None
    assert resampled(rows, lambda sums: sums[:, 0] / sums[:, 1], 1) is None
    assert [found.interval for found in (ratio(values), rag_ratio(values), mean_of([[value] for value, _ in values]))] == [
        None
    ] * 3


def test_twelve_have_one() -> None:
    values = [(float(place), 1.0 + place) for place in range(FEWEST)]
    rows = np.array(values)
    assert FEWEST == 12
    assert difference_interval(rows, rows * 0.5, mean) is not None
    assert resampled(rows, lambda sums: sums[:, 0] / sums[:, 1], 1) is not None
    assert None not in [
        found.interval for found in (ratio(values), rag_ratio(values), mean_of([[value] for value, _ in values]))
    ]


@pytest.mark.parametrize(("ours", "theirs"), [([1.0], [1.0, 2.0]), ([], [])])
def test_rows_that_do_not_pair(ours: list[float], theirs: list[float]) -> None:
    with pytest.raises(ValueError, match="one row of the one for each row of the other"):
        difference_interval(scores(ours), scores(theirs), mean)

"""What truncating and rounding do at one position, against sums done by hand."""

import numpy as np
import pytest

from antiphon.core.acceptance import acceptance_rate
from antiphon.models.toy import named_toy
from antiphon.vocabulary import common_vocabulary
from antiphon_lab.experiments.truncated import STEPS, Meter, acceptance, second_accepted, without_replacement
from support.examples import seeds

COMMON = common_vocabulary(named_toy("toy-device").vocabulary, named_toy("toy-cloud").vocabulary)


def random_distribution(chance: np.random.Generator, size: int, *, zeros: int = 0) -> np.ndarray:
    distribution = chance.dirichlet(np.full(size, 0.3))
    distribution[chance.permutation(size)[:zeros]] = 0.0
    return distribution / distribution.sum()


def test_all_first_children_at_once_are_the_sum_over_them() -> None:
    chance = np.random.default_rng(3)
    for round_ in range(40):
        target, distribution = (
            random_distribution(chance, 9, zeros=round_ % 4),
            random_distribution(chance, 9, zeros=round_ % 5),
        )
        for count in (1, 2, 3, 4):
            wanted = acceptance_rate(target, distribution, count, replacement=False)
            assert without_replacement(target, distribution, count) == pytest.approx(wanted, abs=1e-12)
    point, other = np.eye(3)[0], np.eye(3)[1]
    assert without_replacement(other, point, 2) == acceptance_rate(other, point, 2, replacement=False) == 0
    assert without_replacement(point, point, 2) == 1


def test_acceptance_looks_at_the_support_only() -> None:
    chance = np.random.default_rng(4)
    target, distribution = random_distribution(chance, 60), random_distribution(chance, 40, zeros=30)
    for children in (1, 2, 3):
        found = acceptance(target, distribution, children)
        assert found.single == pytest.approx(np.minimum(target[:40], distribution).sum(), abs=1e-12)
        rates = [acceptance_rate(target, distribution, children, replacement=way) for way in (True, False)]
        assert [found.with_replacement, found.without_replacement] == pytest.approx(rates, abs=1e-12)
    long = random_distribution(chance, STEPS + 1)
    assert acceptance(long, long, 2).without_replacement == pytest.approx(1.0)
    assert acceptance(long, long, 3).without_replacement is None


@pytest.mark.parametrize("seed", seeds(6))
def test_the_acceptance_of_a_second_draft_by_hand(seed: int) -> None:
    """Where a first draft fell the target is the residual; the second draft comes from the same distribution (TSLT 4.3)."""
    chance = np.random.default_rng(seed)
    target, distribution = chance.dirichlet(np.full(6, 0.5)), chance.dirichlet(np.full(4, 0.5))
    rest = np.maximum(target - np.append(distribution, [0.0, 0.0]), 0.0)
    wanted = sum(min(distribution[token], rest[token] / rest.sum()) for token in range(4))
    found, mass = second_accepted(target, distribution)
    assert found == pytest.approx(wanted, abs=1e-12)
    assert mass == pytest.approx(rest.sum(), abs=1e-12)
    both = acceptance(target, distribution, 2).with_replacement
    assert both == pytest.approx(1 - mass + mass * found, abs=1e-12)


def test_a_second_draft_that_is_never_drawn() -> None:
    distribution = np.array([0.25, 0.75])
    assert second_accepted(distribution, distribution) == (1.0, 0.0)


@pytest.mark.parametrize("seed", seeds(4))
def test_theorem_2_holds_and_its_bound_says_something(seed: int) -> None:
    """For every truncation of distributions of any kind; and a bound without its last term, sigma itself, would not hold."""
    chance = np.random.default_rng(seed)
    meter = Meter(COMMON, ("k=3", "k=30", "p=0.5", "p=0.9"), 16, 2)
    points = [
        point
        for _ in range(8)
        for point in meter.measure(
            chance.dirichlet(np.full(COMMON.target_size, 0.05)), chance.dirichlet(np.full(COMMON.size, 0.05))
        ).points
    ]
    assert all(point.second.moved <= point.second.bound + 1e-9 for point in points)
    assert max(point.second.moved / point.second.bound for point in points) > 0.05


def test_the_bound_counts_what_rounding_moved() -> None:
    """Where truncation cuts nothing, the excess is what is lost beyond the rounding's total variation."""
    chance = np.random.default_rng(5)
    target, distribution = random_distribution(chance, len(COMMON.cloud_ids)), random_distribution(chance, COMMON.size)
    position = Meter(COMMON, ("off",), 8, 1).measure(target, distribution)
    (point,) = position.points
    assert point.sent < point.kept == COMMON.size
    assert -0.02 < point.excess <= 1e-9
    assert point.excess < -1e-6

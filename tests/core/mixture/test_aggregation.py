"""DRAGON's rule: the joint distribution of an answer that two ends draft ahead, summed over every branch."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product

import numpy as np
import pytest

from antiphon.core.chance import Chance, Place, Role
from antiphon.core.distributions import Probs, one_hot, total_variation
from antiphon.core.mixture.aggregation import aggregated, packed, steered
from antiphon.core.rounding import LogRatios, exactly
from antiphon.testing.enumeration import output_distribution

Table = Callable[[Sequence[int]], Probs]


def table(seed: int, size: int, sharpness: float) -> Table:
    @cache
    def distribution(before: tuple[int, ...]) -> Probs:
        scores = np.random.default_rng([seed, *before]).normal(size=size) * sharpness
        probs = np.exp(scores - scores.max())
        probs[scores < -1.2 * sharpness] = 0.0
        return probs / probs.sum()

    return lambda before: distribution(tuple(before))


class End:
    """A toy end that drafts ahead: the tokens so far, then its drafts."""

    def __init__(self, distribution: Table, ahead: int, chance: Chance, role: Role) -> None:
        self.distribution, self.ahead, self.chance, self.role, self.drafts, self.first = (
            distribution,
            ahead,
            chance,
            role,
            list[int](),
            0,
        )

    def draft(self, committed: list[int]) -> int:
        if not self.drafts:
            self.first = len(committed)
        while len(self.drafts) < self.ahead:
            before = committed + self.drafts
            place = Place(self.first, len(before) - self.first)
            self.drafts.append(self.chance.at(place, self.role).categorical(self.distribution(before)))
        return self.drafts[0]

    def commit(self, token: int) -> None:
        self.drafts = self.drafts[1:] if self.drafts[0] == token else []


def answer(
    distributions: tuple[Table, Table], weights: tuple[float, float], tokens: int, ahead: int, chance: Chance
) -> tuple[int, ...]:
    ends = End(distributions[0], ahead, chance, Role.DRAFT), End(distributions[1], ahead, chance, Role.TARGET)
    committed: list[int] = []
    for position in range(tokens):
        drafts = ends[0].draft(committed), ends[1].draft(committed)
        here = distributions[0](committed), distributions[1](committed)
        token = aggregated(chance.at(Place(position), Role.ACCEPT), drafts, here, weights)
        for end in ends:
            end.commit(token)
        committed.append(token)
    return tuple(committed)


@pytest.mark.core(4)
@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.8, 0.2), (0.1, 0.9), (1.0, 0.0), (0.0, 1.0)])
@pytest.mark.parametrize(("size", "ahead", "sharpness"), [(3, 1, 1.0), (4, 1, 3.0), (2, 2, 1.0), (2, 3, 3.0)])
def test_the_joint_distribution_of_two_tokens_is_the_mixtures(
    weights: tuple[float, float], size: int, ahead: int, sharpness: float
) -> None:
    distributions = table(1, size, sharpness), table(2, size, sharpness)
    distribution = output_distribution(lambda chance: answer(distributions, weights, 2, ahead, chance))
    for first, second in product(range(size), repeat=2):
        expected = 1.0
        for before, token in ((), first), ((first,), second):
            expected *= weights[0] * distributions[0](before)[token] + weights[1] * distributions[1](before)[token]
        assert abs(distribution.get((first, second), 0.0) - expected) < 1e-12


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_steered_draft(share: float) -> None:
    own, other = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.1, 0.3, 0.4, 0.2])

    def run(chance: Chance) -> int:
        draft = chance.at(Place(0), Role.DRAFT).categorical(own)
        return steered(chance.at(Place(0), Role.ACCEPT), draft, own, other, share)

    distribution = output_distribution(run)
    for token in range(4):
        assert distribution.get(token, 0.0) == pytest.approx((1 - share) * own[token] + share * other[token], abs=1e-12)


def test_a_coin_decides_between_two_good_drafts() -> None:
    same = np.array([0.25, 0.75])
    distribution = output_distribution(
        lambda chance: aggregated(chance.at(Place(0), Role.ACCEPT), (0, 1), (same, same), (0.4, 0.6))
    )
    assert distribution == {0: 0.5, 1: 0.5}


def test_drafts_on_which_the_ends_agree_are_kept_for_certain() -> None:
    same = np.array([0.25, 0.75])
    assert output_distribution(
        lambda chance: aggregated(chance.at(Place(0), Role.ACCEPT), (1, 1), (same, same), (0.4, 0.6))
    ) == {1: 1.0}


@pytest.mark.parametrize(("top_p", "kept"), [(0.5, 1), (0.7, 2), (0.95, 3), (1.0, 4)])
def test_packing(top_p: float, kept: int) -> None:
    probs, ratios = np.array([0.05, 0.55, 0.15, 0.25]), LogRatios(16)
    distribution = packed(top_p, ratios)(probs)
    assert np.count_nonzero(distribution) == kept
    assert distribution.sum() == pytest.approx(1)
    assert total_variation(distribution, probs) <= 1 - top_p + 1.1e-4
    assert np.array_equal(packed(1.0, ratios)(distribution), distribution), "both ends hold one distribution"


def test_packing_keeps_a_point_mass() -> None:
    assert np.array_equal(packed(0.9, LogRatios(16))(one_hot(2, 5)), one_hot(2, 5))
    assert exactly(one_hot(0, 2))[0] == 1

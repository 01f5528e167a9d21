"""The maths of the token after a rejection, drawn by two ends that each know half."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.core.distributions import Probs, one_hot, total_variation
from antiphon.core.resampling import (
    MAX_CANDIDATES,
    CandidateCount,
    candidate_distribution,
    chance_of_candidate,
    chance_to_round_up,
    lumped,
    quantise_lumped,
    spare_distribution,
)
from antiphon.core.rounding import Ratios, quantise_ratios, ratios_of
from support.examples import examples
from support.random_distributions import distributions, large

RATIOS = st.sampled_from([ratios_of(16), ratios_of(32)])


def split(draw: st.DrawFn) -> tuple[Probs, int]:
    """A distribution over the cloud's tokens, and how many of them are common."""
    probs = draw(distributions())
    return probs, draw(st.integers(1, len(probs)))


SPLIT = st.composite(split)()


@given(SPLIT)
@examples(100)
def test_a_lumped_distribution_keeps_the_common_tokens_and_the_mass_of_the_others(
    given_distribution: tuple[Probs, int],
) -> None:
    probs, size = given_distribution
    distribution = lumped(probs, size)
    assert distribution[:size].tobytes() == probs[:size].tobytes()
    assert len(distribution) == size + 1
    assert distribution[size] == pytest.approx(1 - probs[:size].sum(), abs=1e-14)
    assert distribution.sum() == pytest.approx(1, abs=1e-14)


@given(SPLIT, RATIOS)
@examples(200)
@example((one_hot(0, 3), 3), ratios_of(16))
@example((one_hot(2, 3), 2), ratios_of(16))
@example((np.array([1.0 - 1e-13, 5e-14, 5e-14]), 1), ratios_of(16))
@example((np.array([0.5, 0.5, 5e-324]), 2), ratios_of(32))
@example((np.array([1e-30, *[1e-3] * 1000]) / (1 + 1e-30), 1), ratios_of(32))
def test_a_lumped_distribution_is_rounded_once_and_for_all(given_distribution: tuple[Probs, int], ratios: Ratios) -> None:
    """The cloud tests and draws with what it rounded, the device decodes the lumped one: equal on C, and the same rest."""
    probs, size = given_distribution
    quantise = quantise_lumped(size, ratios)
    rounded = quantise(probs)
    again = quantise(rounded)
    assert len(rounded) == len(probs)
    assert rounded.sum() == pytest.approx(1, abs=1e-14)
    assert bool((rounded >= 0).all())
    assert not rounded[probs == 0].any()
    assert again[:size].tobytes() == rounded[:size].tobytes()
    assert again[size:].sum() == pytest.approx(rounded[size:].sum(), abs=2e-15)  # as a sum of 1,000 values is
    decoded = ratios.probs(ratios.codes(lumped(rounded, size)))
    assert decoded[:size].tobytes() == rounded[:size].tobytes()
    assert decoded[size] == pytest.approx(rounded[size:].sum(), abs=2e-15)
    assert (decoded[size] > 0) == (rounded[size:].sum() > 0)  # both ends agree whether a spare comes


@given(distributions(), RATIOS)
@examples(50)
def test_with_nothing_outside_it_is_the_plain_rounding(probs: Probs, ratios: Ratios) -> None:
    """One vocabulary for both ends; and another whose every outside token has probability 0."""
    plain = quantise_ratios(ratios)(probs)
    np.testing.assert_allclose(quantise_lumped(len(probs), ratios)(probs), plain, rtol=0, atol=1e-15)
    padded = np.concatenate([probs, np.zeros(3)])
    rounded = quantise_lumped(len(probs), ratios)(padded)
    np.testing.assert_allclose(rounded[: len(probs)], plain, rtol=0, atol=1e-15)
    assert not rounded[len(probs) :].any()


@given(SPLIT, RATIOS)
@examples(100)
def test_outside_every_value_moves_by_the_same_factor(given_distribution: tuple[Probs, int], ratios: Ratios) -> None:
    probs, size = given_distribution
    outside = quantise_lumped(size, ratios)(probs)[size:]
    if outside.sum() > 0:
        np.testing.assert_allclose(outside / outside.sum(), spare_distribution(probs, size), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("bits", [16, 32])
def test_rounding_a_real_vocabulary_lumped(bits: int) -> None:
    probs, size, ratios = large(0.1), 30_000, ratios_of(bits)
    rounded = quantise_lumped(size, ratios)(probs)
    again = quantise_lumped(size, ratios)(rounded)
    assert total_variation(probs, rounded) < (1.1e-4 if bits == 16 else 2**-24)
    assert again[:size].tobytes() == rounded[:size].tobytes()
    assert again[size:].sum() == pytest.approx(rounded[size:].sum(), abs=1e-15)


@given(SPLIT)
@examples(50)
def test_the_distribution_of_a_spare_is_the_target_outside(given_distribution: tuple[Probs, int]) -> None:
    probs, size = given_distribution
    mass = probs[size:].sum()
    if mass > 0:
        before = probs.copy()
        distribution = spare_distribution(probs, size)
        np.testing.assert_allclose(distribution * mass, probs[size:], rtol=1e-12, atol=0)
        assert distribution.sum() == pytest.approx(1, abs=1e-12)
        assert np.array_equal(before, probs)


@given(distributions(least=2), st.data())
@examples(50)
def test_the_distribution_of_a_candidate_is_the_target_without_the_rejected_draft(probs: Probs, data: st.DataObject) -> None:
    rejected = data.draw(st.integers(0, len(probs) - 1))
    rest = np.delete(probs, rejected).sum()
    if rest > 0:
        before = probs.copy()
        distribution = candidate_distribution(probs, rejected)
        assert distribution[rejected] == 0
        np.testing.assert_allclose(np.delete(distribution, rejected) * rest, np.delete(probs, rejected), rtol=1e-12, atol=0)
        assert np.array_equal(before, probs)


def test_candidates_that_pass_have_the_distribution_of_the_residual() -> None:
    """The reason why server resampling is right, in exact values: candidate distribution times acceptance is proportional to
    max(target - draft, 0), also with the rejected draft left out."""
    target, draft = np.array([0.2, 0.3, 0.1, 0.4]), np.array([0.5, 0.1, 0.4, 0.0])
    expected = np.maximum(target - draft, 0)
    for rejected in (0, 2):  # the only ones that can be
        distribution = candidate_distribution(target, rejected)
        passing = np.array([distribution[z] * chance_of_candidate(draft[z] * 65535, target[z] * 65535) for z in range(4)])
        np.testing.assert_allclose(passing / passing.sum(), expected / expected.sum(), rtol=1e-12)


def mean_acceptance(draft_units: int, units: float) -> float:
    """How often the device accepts, over the random rounding of a candidate's probability."""
    low, up = int(units), chance_to_round_up(units)
    assert 0 <= up <= 1
    accepted = up * chance_of_candidate(draft_units, low + 1) if up else 0.0
    return accepted + ((1 - up) * chance_of_candidate(draft_units, low) if up < 1 else 0.0)


UNITS = st.one_of(
    st.floats(1e-9, 1.0, exclude_min=True),
    st.floats(1.0, 65535.0),
    st.floats(65535.0, 2.0**32 - 1),
    st.integers(1, 2**32 - 1).map(float),
    st.integers(1, 65535).map(lambda whole: float(np.nextafter(whole, 0))),
    st.integers(1, 65534).map(lambda whole: float(np.nextafter(whole, whole + 1))),
)


@given(UNITS, st.integers(-3, 3), st.integers(0, 2**32 - 1))
@examples(400)
@example(0.5, 0, 0)
@example(1.0, 0, 1)
@example(65534.5, 0, 65534)
@example(2.0**32 - 1, 0, 2**32 - 1)
@example(5e-324, 0, 1)
def test_random_rounding_keeps_how_often_a_candidate_passes(units: float, beside: int, anywhere: int) -> None:
    """The heart of exactness: for a draft of any whole number of units, near the candidate's own and far from it."""
    for draft_units in (0, max(0, int(units) + beside), anywhere):
        expected = max(1 - draft_units / units, 0) if draft_units else 1.0
        assert mean_acceptance(draft_units, units) == pytest.approx(expected, abs=1e-12)


def test_a_candidate_is_never_rounded_to_nothing_or_beyond_one() -> None:
    """Both would be refused as no probability (wire.candidates)."""
    assert chance_to_round_up(1e-300) == 1
    assert chance_to_round_up(np.nextafter(1.0, 0)) == 1
    for bits in (16, 32):
        assert chance_to_round_up(float(2**bits - 1)) == 0


FLOORS = st.floats(0, 1)


def counted(outcomes: Sequence[tuple[float, int, bool]]) -> CandidateCount:
    count = CandidateCount()
    for outcome in outcomes:
        count.observe(*outcome)
    return count


def rate(count: CandidateCount) -> float:
    """The estimate: how often one passes where the cloud knows nothing."""
    return 1 - float(count.failing(0.0, 0)[0])


OUTCOMES = st.lists(st.tuples(FLOORS, st.integers(1, MAX_CANDIDATES), st.booleans()), max_size=60)


@given(OUTCOMES, FLOORS, st.integers(0, 64 * MAX_CANDIDATES), st.floats(1, 100))
@examples(100)
def test_whatever_was_seen_the_estimate_is_usable(
    outcomes: list[tuple[float, int, bool]], floor: float, failed: int, bits: float
) -> None:
    count = counted(outcomes)
    assert 0.02 - 1e-12 <= rate(count) <= 0.98 + 1e-12
    fail = count.failing(floor, failed)
    assert fail.shape == (MAX_CANDIDATES,)
    assert bool((np.diff(fail) < 0).all()) or floor == 1 or fail[-1] < 1e-300
    assert 0 <= fail[-1] <= fail[0] < 1
    best, cost = count.best(floor, failed, bits)
    assert 1 <= best <= MAX_CANDIDATES
    assert np.isfinite(cost)
    assert cost >= bits


@given(OUTCOMES, FLOORS, FLOORS, st.integers(0, 200), st.integers(0, 200), st.floats(5, 60))
@examples(100)
@example([], 0.0, 2.0**-52, 4, 0, 5.0)
def test_more_are_sent_where_they_are_less_likely_to_pass(
    outcomes: list[tuple[float, int, bool]], one: float, other: float, failed: int, more: int, bits: float
) -> None:
    """Where the floor is low, after failures, and where one costs little; of numbers that cost the same any may be taken."""
    count, low, high = counted(outcomes), min(one, other), max(one, other)
    least, most = cheapest(count, low, failed, bits)
    assert least <= count.best(low, failed, bits)[0] <= most
    assert most >= cheapest(count, high, failed, bits)[0]
    assert most >= cheapest(count, low, failed, 2 * bits)[0]
    cost = count.best(low, failed, bits)[1] * (1 + NOTHING)
    assert cost >= count.best(high, failed, bits)[1]
    assert count.best(low, failed + more, bits)[1] * (1 + NOTHING) >= cost / (1 + NOTHING)
    assert bool((count.failing(low, failed + more) >= count.failing(low, failed) - 1e-12).all())


NOTHING = 1e-9
"""A share that roundings may come to."""


def cheapest(count: CandidateCount, floor: float, failed: int, bits: float) -> tuple[int, int]:
    """The lowest and the highest number that cost least, but for roundings: two floors may differ by one."""
    fail, numbers = count.failing(floor, failed), np.arange(1, MAX_CANDIDATES + 1)
    costs = (numbers * bits + count.TRIP_BITS * fail) / (1 - fail)
    found = numbers[costs <= costs.min() * (1 + NOTHING)]
    return int(found[0]), int(found[-1])


def test_figures_of_the_count() -> None:
    """A fresh estimate says one of two; a sure one is sent alone, a hopeless place gets a long list."""
    fresh = CandidateCount()
    assert rate(fresh) == pytest.approx(0.5)
    sizes = [fresh.best(floor, 0, 30.0)[0] for floor in (0.0, 0.3, 0.6, 0.9, 1.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 4
    assert sizes[-1] == 1
    after = [fresh.best(0.0, failed, 30.0)[0] for failed in (0, 5, 20, 60)]
    assert after == sorted(after)
    assert after[-1] > 1.5 * after[0]


def test_failing_is_the_mean_over_a_beta_distribution() -> None:
    """By numbers drawn: the rate varies from place to place, so long runs of failures are likelier than with one rate."""
    generator = np.random.Generator(np.random.PCG64(1))
    rates = generator.beta(CandidateCount.SPREAD / 2, CandidateCount.SPREAD / 2, 400_000)
    passing = 0.2 + 0.8 * rates
    for failed, weights in ((0, np.ones_like(rates)), (3, (1 - rates) ** 3)):
        expected = [np.average((1 - passing) ** count, weights=weights) for count in (1, 2, 5)]
        if failed == 0:
            got = CandidateCount().failing(0.2, failed)
            np.testing.assert_allclose([got[0], got[1], got[4]], expected, rtol=0.02)
        else:  # after failures the distribution is that of the places where so many fail
            assert CandidateCount().failing(0.2, failed)[0] == pytest.approx(expected[0], rel=0.02)


@pytest.mark.core(2)
@pytest.mark.parametrize("true", [0.05, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_the_estimate_finds_the_true_rate(true: float, spread: float) -> None:
    """A device that tests candidates until one passes; the cloud knows a floor that differs from place to place."""
    generator = np.random.Generator(np.random.PCG64(7))
    count = CandidateCount()
    for _ in range(4000):
        floor = spread * generator.random()
        passes = np.flatnonzero(generator.random(count.best(floor, 0, 40.0)[0]) < floor + (1 - floor) * true)
        size = count.best(floor, 0, 40.0)[0]
        count.observe(floor, int(passes[0]) + 1 if len(passes) else size, bool(len(passes)))
    assert rate(count) == pytest.approx(true, abs=0.03)


def test_the_estimate_follows_from_either_end() -> None:
    assert rate(counted([(0.0, 1, True)] * 200)) == pytest.approx(0.98)
    assert rate(counted([(0.0, 31, False)] * 200)) == pytest.approx(0.02)
    assert rate(counted([(1.0, 31, False)] * 200)) == pytest.approx(0.02)  # it cannot be, but must do no harm

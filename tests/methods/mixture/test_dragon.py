"""`dragon`'s joint distribution, summed over every branch of both halves, is the mixture's (METHODS 4); `drdg-tw`'s too."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.methods.effects import Emitted, Kind
from antiphon.methods.mixture.options import MixtureOptions
from antiphon.testing.distributions import SHARED, Distribution, Pair, distance, variation
from antiphon.testing.enumeration import EnumeratingChance, output_distribution
from support.examples import examples
from support.mixed import Masses, emitted, mixture

PLAIN, GREEDY = SamplingParams(temperature=1.0), SamplingParams(temperature=0.0)
SAMPLINGS = {
    "plain": PLAIN,
    "greedy": GREEDY,
    "top-k": SamplingParams(temperature=1.3, top_k=2),
    "penalties": SamplingParams(temperature=1.0, repetition_penalty=1.5, presence_penalty=0.4),
}
MASSES = {"equal": (0.0, 0.0), "device": (1.5, 0.0), "cloud": (0.0, 2.0), "only cloud": (-math.inf, 0.0)}


def written(name: str, pair: Pair, sampling: SamplingParams, masses: Masses, tokens: int = 2, **given: object) -> Distribution:
    """The joint distribution of the first tokens."""
    options = MixtureOptions(**given)

    def run(chance: EnumeratingChance) -> tuple[int, ...]:
        told: list[Emitted] = emitted(name, pair, options, sampling, masses, tokens, chance)
        assert not any(token.kind is Kind.LOCAL for token in told), "every token is decided with evidence"
        return tuple(token.number for token in told)

    distribution = output_distribution(run)
    assert sum(distribution.values()) == pytest.approx(1, abs=1e-12)
    return distribution


@pytest.mark.core(2)
@pytest.mark.parametrize("ahead", [1, 2])
@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
def test_joint_distribution(sampling: SamplingParams, ahead: int) -> None:
    """Ahead 2 drafts the second token before the first is decided: what a rollback drops must leave no trace in the probs."""
    pair, masses = Pair(SHARED, SHARED, seed=4), (0.5, 0.0)
    distribution = written("dragon", pair, sampling, masses, ahead=ahead)
    assert distance(distribution, mixture(pair, sampling, masses)) < 1e-12
    assert (len(distribution) > 1) == (sampling.temperature > 0)


@pytest.mark.medium
@pytest.mark.parametrize("masses", MASSES.values(), ids=MASSES)
def test_joint_distribution_whatever_the_weights(masses: Masses) -> None:
    pair = Pair(SHARED, SHARED, seed=7)
    assert distance(written("dragon", pair, PLAIN, masses, ahead=1), mixture(pair, PLAIN, masses)) < 1e-12


@pytest.mark.core(2)
@pytest.mark.parametrize("top_p", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("sampling", [PLAIN, GREEDY], ids=["plain", "greedy"])
def test_packed_scores_give_the_truncated_mixture(sampling: SamplingParams, top_p: float) -> None:
    pair, masses = Pair(SHARED, SHARED, seed=2), (0.0, 0.7)
    distribution = written("dragon", pair, sampling, masses, ahead=1, packing="topp", packing_top_p=top_p)
    assert distance(distribution, mixture(pair, sampling, masses, top_p=top_p)) < 1e-12


def test_packing_is_lossy() -> None:
    pair, masses = Pair(SHARED, SHARED, seed=2), (0.0, 0.7)
    distribution = written("dragon", pair, PLAIN, masses, ahead=1, packing="topp", packing_top_p=0.3)
    assert variation(distribution, mixture(pair, PLAIN, masses)) > 0.05


@pytest.mark.parametrize("seed", range(8))
def test_token_wise_mixing_is_greedy_dense(seed: int) -> None:
    pair, masses = Pair(SHARED, SHARED, seed=3 * seed), (0.0, 0.3)
    distribution = written("drdg-tw", pair, GREEDY, masses, tokens=6)
    assert distance(distribution, mixture(pair, GREEDY, masses, tokens=6)) < 1e-12


@pytest.mark.medium
@examples(12)
@given(
    seed=st.integers(0, 10_000),
    sharpness=st.sampled_from([0.3, 1.0, 4.0]),
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.0]),
    top_k=st.sampled_from([0, 1, 2]),
    masses=st.tuples(st.sampled_from([-3.0, 0.0, 1.0, -math.inf]), st.sampled_from([-2.0, 0.0, 4.0])),
    top_p=st.sampled_from([1.0, 0.5]),
)
def test_any_pair_of_models(seed: int, sharpness: float, temperature: float, top_k: int, masses: Masses, top_p: float) -> None:
    pair = Pair(SHARED, SHARED, seed=3 * seed, sharpness=sharpness)
    sampling = SamplingParams(temperature=temperature, top_k=top_k)
    distribution = written("dragon", pair, sampling, masses, ahead=1, packing="topp", packing_top_p=top_p)
    assert distance(distribution, mixture(pair, sampling, masses, top_p=top_p)) < 1e-12


@pytest.mark.slow
def test_joint_distribution_of_three_tokens_drafted_ahead() -> None:
    pair, masses, sampling = Pair(SHARED, SHARED, seed=5), (0.4, 0.0), SamplingParams(temperature=1.0, top_k=2)
    distribution = written("dragon", pair, sampling, masses, tokens=3)
    assert distance(distribution, mixture(pair, sampling, masses, tokens=3)) < 1e-12


def test_both_drafts_are_kept_replaced_and_rolled_back() -> None:
    """What the distribution is made of does occur: else equality would say little."""
    pair, kinds = Pair(SHARED, SHARED, seed=4), set()

    def run(chance: EnumeratingChance) -> tuple[Kind, ...]:
        told = emitted("dragon", pair, MixtureOptions(ahead=1), PLAIN, (0.5, 0.0), 2, chance)
        kinds.update(token.kind for token in told)
        return tuple(token.kind for token in told)

    assert len(output_distribution(run)) >= 4
    assert kinds == {Kind.CONFIRMED, Kind.CHANGED}


def test_a_planted_bug_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the cloud's share of replaced drafts, the device's half of the distribution is too large."""
    monkeypatch.setattr(
        "antiphon.methods.mixture.dragon.aggregated",
        lambda stream, drafts, distributions, weights: drafts[stream.bernoulli(0.5)],
    )
    pair, masses = Pair(SHARED, SHARED, seed=4), (1.5, 0.0)
    distribution = written("dragon", pair, PLAIN, masses, ahead=1)
    assert distance(distribution, mixture(pair, PLAIN, masses)) > 0.01

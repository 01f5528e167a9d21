"""`dragon`'s joint law, summed over every branch of both halves' code, is the mixture's (METHODS 4); greedy `drdg-tw`'s too."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.core.distributions import Probs, process, truncated
from antiphon.core.enumeration import EnumeratingChance, output_law
from antiphon.core.scores import SCORES
from antiphon.methods import MIXTURES
from antiphon.methods.base import CloudMixing, DeviceMixing
from antiphon.methods.effects import Emitted, Kind
from antiphon.methods.mixture_options import MixtureOptions
from antiphon.methods.pair import run_pair
from laws import SHARED, Law, Pair, distance, variation

Masses = tuple[float, float]
PLAIN, GREEDY = SamplingParams(temperature=1.0), SamplingParams(temperature=0.0)
SAMPLINGS = {
    "plain": PLAIN,
    "greedy": GREEDY,
    "top-k": SamplingParams(temperature=1.3, top_k=2),
    "penalties": SamplingParams(temperature=1.0, repetition_penalty=1.5, presence_penalty=0.4),
}
MASSES = {"equal": (0.0, 0.0), "device": (1.5, 0.0), "cloud": (0.0, 2.0), "only cloud": (-math.inf, 0.0)}


def emitted(
    name: str, pair: Pair, options: object, sampling: SamplingParams, masses: Masses, tokens: int, chance: object
) -> list[Emitted]:
    """The tokens of one path through the draws."""
    method, sampled = MIXTURES[name], sampling.temperature > 0
    device, cloud = pair.sides(tokens, sampling, chance)
    device.mixing = DeviceMixing(masses[0], sampled, lambda passages: None)
    cloud.mixing = CloudMixing(masses[1], sampled, ())
    return run_pair(method.device(device, options).run(), method.cloud(cloud, options).run())


def written(name: str, pair: Pair, sampling: SamplingParams, masses: Masses, tokens: int = 2, **given: object) -> Law:
    """The joint law of the first tokens."""
    options = MixtureOptions(**given)

    def run(chance: EnumeratingChance) -> tuple[int, ...]:
        told: list[Emitted] = emitted(name, pair, options, sampling, masses, tokens, chance)
        assert not any(token.kind is Kind.LOCAL for token in told), "every token is decided with evidence"
        return tuple(token.number for token in told)

    law = output_law(run)
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    return law


def mixture(pair: Pair, sampling: SamplingParams, masses: Masses, tokens: int = 2, top_p: float = 1.0) -> Law:
    """By the definition: token after token from pi_L p_L + pi_R p_R, p_R as it crosses; greedy its arg-max."""
    law: defaultdict[tuple[int, ...], float] = defaultdict(float)
    own, other = weights(masses)

    def extend(numbers: tuple[int, ...], probability: float) -> None:
        if len(numbers) == tokens or (numbers and numbers[-1] in pair.common.ends):
            law[numbers] += probability
            return
        mixed = own * scored(pair.device, numbers) + other * crossed(scored(pair.cloud, numbers))
        if not sampling.temperature:
            mixed = np.eye(len(mixed))[mixed.argmax()]
        for number in np.flatnonzero(mixed).tolist():
            extend((*numbers, number), probability * float(mixed[number]))

    def scored(model: object, numbers: Sequence[int]) -> Probs:
        history = [*model.tokenize("ab"), *numbers]  # of equal vocabularies ids are wire numbers
        warm = sampling if sampling.temperature else replace(sampling, temperature=1.0)
        return process(model.logits(history), warm, history)

    def crossed(probs: Probs) -> Probs:
        left = SCORES.values(SCORES.codes(truncated(probs, top_p=top_p) if top_p < 1 else probs))
        return left / left.sum() if sampling.temperature else left

    extend((), 1.0)
    return dict(law)


def weights(masses: Masses) -> tuple[float, float]:
    most = max(masses)
    own, other = (math.exp(mass - most) for mass in masses)
    return own / (own + other), other / (own + other)


@pytest.mark.parametrize("ahead", [1, 2])
@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
def test_joint_law(sampling: SamplingParams, ahead: int) -> None:
    """Ahead 2 drafts the second token before the first is decided: what a rollback drops must leave no trace in the law."""
    pair, masses = Pair(SHARED, SHARED, seed=4), (0.5, 0.0)
    law = written("dragon", pair, sampling, masses, ahead=ahead)
    assert distance(law, mixture(pair, sampling, masses)) < 1e-12
    assert (len(law) > 1) == (sampling.temperature > 0)


@pytest.mark.parametrize("masses", MASSES.values(), ids=MASSES)
def test_joint_law_whatever_the_weights(masses: Masses) -> None:
    pair = Pair(SHARED, SHARED, seed=7)
    assert distance(written("dragon", pair, PLAIN, masses, ahead=1), mixture(pair, PLAIN, masses)) < 1e-12


@pytest.mark.parametrize("top_p", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("sampling", [PLAIN, GREEDY], ids=["plain", "greedy"])
def test_packed_scores_give_the_truncated_mixture(sampling: SamplingParams, top_p: float) -> None:
    pair, masses = Pair(SHARED, SHARED, seed=2), (0.0, 0.7)
    law = written("dragon", pair, sampling, masses, ahead=1, packing="topp", top_p=top_p)
    assert distance(law, mixture(pair, sampling, masses, top_p=top_p)) < 1e-12


def test_packing_is_lossy() -> None:
    pair, masses = Pair(SHARED, SHARED, seed=2), (0.0, 0.7)
    law = written("dragon", pair, PLAIN, masses, ahead=1, packing="topp", top_p=0.3)
    assert variation(law, mixture(pair, PLAIN, masses)) > 0.05


@pytest.mark.parametrize("seed", range(8))
def test_token_wise_mixing_is_greedy_dense(seed: int) -> None:
    pair, masses = Pair(SHARED, SHARED, seed=3 * seed), (0.0, 0.3)
    law = written("drdg-tw", pair, GREEDY, masses, tokens=6)
    assert distance(law, mixture(pair, GREEDY, masses, tokens=6)) < 1e-12


@settings(max_examples=12, deadline=None)
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
    law = written("dragon", pair, sampling, masses, ahead=1, packing="topp", top_p=top_p)
    assert distance(law, mixture(pair, sampling, masses, top_p=top_p)) < 1e-12


@pytest.mark.slow
def test_joint_law_of_three_tokens_drafted_ahead() -> None:
    pair, masses, sampling = Pair(SHARED, SHARED, seed=5), (0.4, 0.0), SamplingParams(temperature=1.0, top_k=2)
    law = written("dragon", pair, sampling, masses, tokens=3)
    assert distance(law, mixture(pair, sampling, masses, tokens=3)) < 1e-12


def test_both_drafts_are_kept_replaced_and_rolled_back() -> None:
    """What the law is made of does occur: else equality would say little."""
    pair, kinds = Pair(SHARED, SHARED, seed=4), set()

    def run(chance: EnumeratingChance) -> tuple[Kind, ...]:
        told = emitted("dragon", pair, MixtureOptions(ahead=1), PLAIN, (0.5, 0.0), 2, chance)
        kinds.update(token.kind for token in told)
        return tuple(token.kind for token in told)

    assert len(output_law(run)) >= 4
    assert kinds == {Kind.CONFIRMED, Kind.CHANGED}


def test_a_planted_bug_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the cloud's share of replaced drafts, the device's half of the law is too large."""
    monkeypatch.setattr(
        "antiphon.methods.dragon.aggregated", lambda stream, drafts, laws, weights: drafts[stream.bernoulli(0.5)]
    )
    pair, masses = Pair(SHARED, SHARED, seed=4), (1.5, 0.0)
    law = written("dragon", pair, PLAIN, masses, ahead=1)
    assert distance(law, mixture(pair, PLAIN, masses)) > 0.01

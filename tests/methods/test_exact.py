"""The product: every exact method's joint output law, summed over every branch, is the target's (METHODS 0)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.config import ChainOptions, NoOptions, SamplingParams
from antiphon.core.distributions import Probs, exactly, process, quantise_float32, total_variation
from antiphon.methods import METHODS
from antiphon.methods.base import Method
from laws import LARGE, SHARED, SMALL, Pair, distance, method_law, target_law, variation

TARGET = {"cloud": exactly, "dsd": exactly, "dssd": quantise_float32}
VOCABULARIES = {"shared": (SHARED, SHARED), "different": (SMALL, LARGE)}
SAMPLINGS = {
    "plain": SamplingParams(temperature=1.0),
    "greedy": SamplingParams(temperature=0.0),
    "top-k": SamplingParams(temperature=1.3, top_k=2),
    "top-p": SamplingParams(temperature=0.8, top_p=0.7),
    "penalties": SamplingParams(temperature=1.0, repetition_penalty=1.5, presence_penalty=0.4, frequency_penalty=0.3),
}


def options_of(method: Method, draft_length: int, precision: int) -> object:
    return ChainOptions(draft_length, precision) if method.options is ChainOptions else NoOptions()


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
@pytest.mark.parametrize("pieces", VOCABULARIES.values(), ids=VOCABULARIES)
@pytest.mark.parametrize("name", TARGET)
def test_joint_law_of_three_tokens(name: str, pieces: tuple, sampling: SamplingParams) -> None:
    pair, method = Pair(*pieces), METHODS[name]
    law = method_law(pair, method, options_of(method, 2, 32), sampling, tokens=3)
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    assert distance(law, target_law(pair, sampling, 3, TARGET[name])) < 1e-12


@pytest.mark.parametrize("name", ["dsd", "dssd"])
def test_sixteen_bit_drafts_are_exact_too(name: str) -> None:
    pair, method, sampling = Pair(SMALL, LARGE), METHODS[name], SAMPLINGS["plain"]
    law = method_law(pair, method, options_of(method, 2, 16), sampling, tokens=2)
    assert distance(law, target_law(pair, sampling, 2, TARGET[name])) < 1e-12


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    sharpness=st.sampled_from([0.3, 1.0, 4.0]),
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.0]),
    top_k=st.sampled_from([0, 1, 2]),
    draft_length=st.integers(1, 3),
    different=st.booleans(),
    name=st.sampled_from(sorted(TARGET)),
)
def test_any_pair_of_models(
    seed: int, sharpness: float, temperature: float, top_k: int, draft_length: int, different: bool, name: str
) -> None:
    pair = Pair(*VOCABULARIES["different" if different else "shared"], seed=3 * seed, sharpness=sharpness)
    sampling, method = SamplingParams(temperature=temperature, top_k=top_k), METHODS[name]
    law = method_law(pair, method, options_of(method, draft_length, 32), sampling, tokens=2)
    assert distance(law, target_law(pair, sampling, 2, TARGET[name])) < 1e-12


def test_the_cases_that_matter_do_occur() -> None:
    """Tokens outside C, ends inside drafts and drafts of probability 0 all weigh in the laws above."""
    pair = Pair(SMALL, LARGE)
    assert pair.common.size == 3
    assert pair.common.target_size == 5
    law = target_law(pair, SAMPLINGS["plain"], 3)
    assert sum(p for numbers, p in law.items() if any(n >= pair.common.size for n in numbers)) > 0.05
    assert sum(p for numbers, p in law.items() if numbers[-1] in pair.common.ends) > 0.05
    truncated = process(pair.device.logits([0, 1]), SAMPLINGS["top-k"])
    assert np.count_nonzero(truncated) == 2


@pytest.mark.parametrize("name", ["dsd", "dssd"])
def test_a_planted_bug_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sampling the target instead of the residual after a rejection is a classic; it must be visible."""
    method, sampling = METHODS[name], SAMPLINGS["plain"]

    def biased(target_probs: Probs, draft_probs: Probs) -> Probs:
        return target_probs

    monkeypatch.setattr(f"antiphon.methods.{name}.residual", biased)
    pair = Pair(SMALL, LARGE)
    law = method_law(pair, method, options_of(method, 2, 32), sampling, tokens=2)
    assert variation(law, target_law(pair, sampling, 2)) > 1e-3


def test_float32_moves_the_target_by_less_than_its_bound() -> None:
    pair = Pair(SMALL, LARGE)
    probs = process(pair.cloud.logits([1, 4]), SAMPLINGS["plain"])
    assert total_variation(probs, quantise_float32(probs)) < 2**-24

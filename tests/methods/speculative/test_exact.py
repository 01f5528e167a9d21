"""The product: every exact method's joint output distribution, summed over every branch, is the target's (METHODS 0)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.core.distributions import Probs, process
from antiphon.core.resampling import quantise_lumped
from antiphon.core.rounding import Quantise, exactly, quantise_ratios, ratios_of
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.testing.distributions import (
    LARGE,
    SHARED,
    SMALL,
    Pair,
    distance,
    method_distribution,
    target_distribution,
    variation,
)
from support.examples import examples

EXACT = ["cloud", "coupled", "coupled-tree", "dsd", "tslt", "tslt-tree", "dssd", "xcosd", "xcosd-e"]
SPLIT = ["dssd", "xcosd", "xcosd-e"]
LOSSY = ["gr", "tr", "u-hlm", "cu-hlm"]
FEW = {"candidates": 1, "iterations": 2, "draws": 3, "truncate": "k=2", "expansion": "2"}
"""Few enough branches to follow them all; the cases with more are tests of their own."""
VOCABULARIES = {"shared": (SHARED, SHARED), "different": (SMALL, LARGE)}
SAMPLINGS = {
    "plain": SamplingParams(temperature=1.0),
    "greedy": SamplingParams(temperature=0.0),
    "top-k": SamplingParams(temperature=1.3, top_k=2),
    "top-p": SamplingParams(temperature=0.8, top_p=0.7),
    "penalties": SamplingParams(temperature=1.0, repetition_penalty=1.5, presence_penalty=0.4, frequency_penalty=0.3),
}


def decoded(name: str, pair: Pair, precision: int) -> Quantise:
    """How a method's target is rounded: what `exact` promises."""
    if name == "dssd":
        return quantise_ratios(ratios_of(precision))
    if name in SPLIT:
        return quantise_lumped(pair.common.size, ratios_of(precision))
    return exactly


def error(name: str, pair: Pair, sampling: SamplingParams, tokens: int, **given: object) -> float:
    """The largest difference between a probability of the method's joint distribution and the target's."""
    options = {"draft_length": 2, "precision": 16, **FEW, **given}
    method = WITHOUT_DOCUMENTS[name]
    distribution = method_distribution(pair, method, method.options_from(options), sampling, tokens)
    assert sum(distribution.values()) == pytest.approx(1, abs=1e-12)
    return distance(distribution, target_distribution(pair, sampling, tokens, decoded(name, pair, options["precision"])))


@pytest.mark.core(15)
@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
@pytest.mark.parametrize("pieces", VOCABULARIES.values(), ids=VOCABULARIES)
@pytest.mark.parametrize("name", EXACT)
def test_joint_distribution(name: str, pieces: tuple, sampling: SamplingParams) -> None:
    """Three tokens; two where the branches of three are too many."""
    assert error(name, Pair(*pieces), sampling, tokens=2 if name == "xcosd-e" else 3) < 1e-12


@pytest.mark.core(2)
@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("name", ["dsd", *SPLIT])
def test_every_precision_is_exact(name: str, bits: int) -> None:
    """Both ways: of the draft's distribution, and of the target's."""
    pair, sampling = Pair(SMALL, LARGE), SAMPLINGS["plain"]
    assert error(name, pair, sampling, tokens=2, draft_precision=bits, precision=48 - bits) < 1e-12
    assert error(name, pair, sampling, tokens=2, draft_precision=bits, precision=bits) < 1e-12


@pytest.mark.core(2)
@pytest.mark.parametrize(
    ("candidates", "iterations"),
    [(1, 1), (1, 2), (2, 1), *(pytest.param(*case, marks=pytest.mark.slow) for case in [(1, 3), (2, 2), (3, 1)])],
)
@pytest.mark.parametrize("pieces", VOCABULARIES.values(), ids=VOCABULARIES)
def test_server_resampling_in_every_depth(pieces: tuple, candidates: int, iterations: int) -> None:
    """First candidates, later ones, candidates drawn twice, the fall-back and its spare all weigh in."""
    pair, sampling = Pair(*pieces, seed=3), SAMPLINGS["plain"]
    given = {"draft_length": 1, "candidates": candidates, "iterations": iterations}
    assert error("xcosd-e", pair, sampling, tokens=2, **given) < 1e-12


@pytest.mark.core(2)
@pytest.mark.parametrize(("candidates", "iterations"), [(1, 1), (1, 2), (2, 1), pytest.param(2, 2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("pieces", VOCABULARIES.values(), ids=VOCABULARIES)
def test_candidates_drawn_as_the_paper_draws_them(pieces: tuple, candidates: int, iterations: int) -> None:
    """From the whole target: the rejected draft among them, and candidates behind one that is sure to pass."""
    given = {"draft_length": 1, "candidates": candidates, "iterations": iterations, "as_paper": True}
    assert error("xcosd-e", Pair(*pieces, seed=3), SAMPLINGS["plain"], tokens=2, **given) < 1e-12


@pytest.mark.core(2)
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("expansion", ["2", "3", "2,1", "1,2", pytest.param("2,2", marks=pytest.mark.slow)])
@pytest.mark.parametrize("pieces", VOCABULARIES.values(), ids=VOCABULARIES)
def test_trees_of_every_shape(pieces: tuple, expansion: str, replacement: bool) -> None:
    """Siblings drawn twice, supports smaller than a node's children, children that end the answer, and leaves all weigh in."""
    pair, tokens = Pair(*pieces, seed=6), 2 if len(expansion) == 1 else 3
    given = {"expansion": expansion, "replacement": replacement, "truncate": "off" if expansion == "3" else "k=2"}
    assert error("tslt-tree", pair, SAMPLINGS["plain"], tokens, **given) < 1e-12


@pytest.mark.core(7)
@pytest.mark.parametrize("truncate", ["k=1", "k=2", "p=0.5", "p=0.9", "off"])
@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("name", ["tslt", "tslt-tree"])
def test_truncated_and_rounded_drafts_are_exact(name: str, bits: int, truncate: str) -> None:
    pair = Pair(SMALL, LARGE, seed=6)
    assert error(name, pair, SAMPLINGS["plain"], tokens=2, draft_precision=bits, truncate=truncate) < 1e-12


@pytest.mark.parametrize("wire", ["delta", "plain", "tight"])
@pytest.mark.parametrize("name", ["tslt", "tslt-tree"])
def test_every_form_on_the_wire_is_exact(name: str, wire: str) -> None:
    assert error(name, Pair(SMALL, LARGE, seed=6), SAMPLINGS["plain"], tokens=2, wire=wire) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", ["xcosd", "xcosd-e"])
def test_joint_distribution_of_three_tokens_of_the_costly_ones(name: str) -> None:
    pair, sampling = Pair(SMALL, LARGE, seed=9), SAMPLINGS["plain"]
    assert error(name, pair, sampling, tokens=3, draft_length=1, iterations=1) < 1e-12
    assert error(name, pair, SAMPLINGS["top-k"], tokens=3, draft_length=2, iterations=1) < 1e-12


@pytest.mark.parametrize("name", LOSSY)
def test_the_lossy_baselines_are_not_exact(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    pair, sampling, method = Pair(SMALL, LARGE), SAMPLINGS["plain"], WITHOUT_DOCUMENTS[name]
    options = method.options_from({"draft_length": 2, "draws": 2, "top_k": 1, "uncertain": 1.0})
    distribution = method_distribution(pair, method, options, sampling, tokens=2)
    assert sum(distribution.values()) == pytest.approx(1, abs=1e-12)
    apart = variation(distribution, target_distribution(pair, sampling, 2))
    with capsys.disabled():
        print(f"\n{name}: total variation of two tokens from the target {apart:.4f}")
    assert not method.exact
    assert apart > 0.01


@examples(20)
@given(
    seed=st.integers(0, 10_000),
    sharpness=st.sampled_from([0.3, 1.0, 4.0]),
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.0]),
    top_k=st.sampled_from([0, 1, 2]),
    draft_length=st.integers(1, 3),
    different=st.booleans(),
    name=st.sampled_from(EXACT),
)
def test_any_pair_of_models(
    seed: int, sharpness: float, temperature: float, top_k: int, draft_length: int, different: bool, name: str
) -> None:
    pair = Pair(*VOCABULARIES["different" if different else "shared"], seed=3 * seed, sharpness=sharpness)
    sampling = SamplingParams(temperature=temperature, top_k=top_k)
    assert error(name, pair, sampling, tokens=2, draft_length=draft_length, iterations=1) < 1e-12


def test_the_cases_that_matter_do_occur() -> None:
    """Tokens outside C, ends inside drafts and drafts of probability 0 all weigh in the distributions above."""
    pair = Pair(SMALL, LARGE)
    assert pair.common.size == 3
    assert pair.common.target_size == 5
    distribution = target_distribution(pair, SAMPLINGS["plain"], 3)
    assert sum(p for numbers, p in distribution.items() if any(n >= pair.common.size for n in numbers)) > 0.05
    assert sum(p for numbers, p in distribution.items() if numbers[-1] in pair.common.ends) > 0.05
    truncated = process(pair.device.logits([0, 1]), SAMPLINGS["top-k"])
    assert np.count_nonzero(truncated) == 2


@pytest.mark.parametrize("name", ["dsd", "dssd", "xcosd"])
def test_a_planted_bug_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sampling the target instead of the residual after a rejection is a classic; it must be visible."""

    def biased(target_probs: Probs, draft_probs: Probs) -> Probs:
        return target_probs

    monkeypatch.setattr(f"antiphon.methods.speculative.{name}.residual", biased)
    assert error(name, Pair(SMALL, LARGE), SAMPLINGS["plain"], tokens=2) > 1e-3


@pytest.mark.core(1)
@pytest.mark.parametrize(
    ("function", "wrong"),
    [
        ("chance_of_candidate", lambda draft, candidate: 1.0),
        ("chance_to_round_up", lambda units: 0.5),
        (
            "candidate_distribution",
            lambda target, rejected: np.where(np.arange(len(target)) == rejected, 0, 1 / (len(target) - 1)),
        ),
    ],
)
def test_a_planted_bug_of_server_resampling_is_seen(function: str, wrong: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accepting whatever comes, rounding to nowhere in particular, candidates from another distribution."""
    monkeypatch.setattr(f"antiphon.methods.speculative.xcosd_e.{function}", wrong)
    assert error("xcosd-e", Pair(SMALL, LARGE), SAMPLINGS["plain"], tokens=2) > 1e-8

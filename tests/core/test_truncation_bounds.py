"""What truncation costs, and no more: TSLT's two theorems, with the rounding of the wire on top (METHODS 2, TSLT).

Theorem 1 (TSLT 3.3): |beta_hat - beta| <= sigma, the mass that was cut off. Theorem 2 (TSLT 4.3), for the j-th of several
candidates drawn with replacement, given that those before it were rejected:

    |beta_hat_j - beta_j| <= (1 + sum over k = 1 .. j-1 of the product over s = k+1 .. j of 2 / Z_s) sigma

The paper names Z_s by the distribution that it normalises in the theorem and by the one before in its corollary. Here P_1 is
the target, P_s = max(P_{s-1} - Q, 0) / Z_s, and all of these are of the draft distribution Q *before* truncation, so the bound
is known without trying. It says nothing where some Z_s is 0: no candidate comes so far. With rounding, sigma is the total
variation between the distribution that was sampled and the model's own.
"""

import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.core.acceptance import acceptance_rate, residual
from antiphon.core.distributions import Probs, process, total_variation, truncated
from antiphon.core.rounding import LogRatios, quantise_ratios, ratios_of
from antiphon.methods.effects import Exchanged
from antiphon.methods.speculative.tslt import SparseOptions, Sparsifier, Truncation
from antiphon.models.base import Model, spell
from antiphon.vocabulary import common_vocabulary
from support.data import real_prompts
from support.examples import examples
from support.random_distributions import distributions, large

ROOM = 1e-12
"""What float64 needs."""

TRUNCATIONS = st.one_of(
    st.builds(Truncation, top_k=st.integers(1, 40)),
    st.builds(Truncation, top_p=st.one_of(st.floats(1e-6, 1.0), st.sampled_from([0.5, 0.95, 1.0]))),
)


def cut(distribution: Probs, keep: Truncation) -> Probs:
    return truncated(distribution, keep.top_k, keep.top_p)


def beta(target: Probs, distribution: Probs) -> float:
    """The probability that one candidate stands."""
    return acceptance_rate(target, distribution, 1, replacement=True)


# What is kept.


def kept_slowly(distribution: Probs, keep: Truncation) -> list[int]:
    """The likeliest first, the lowest number first among equals: so many, or until they have the mass; 1 is all."""
    order = sorted(range(len(distribution)), key=lambda token: (-distribution[token], token))
    if keep.top_k or keep.top_p == 1:
        return order[: keep.top_k or None]
    chosen, mass = [], 0.0
    for token in order:
        if mass >= keep.top_p:
            break
        chosen.append(token)
        mass += float(distribution[token])
    return chosen


@examples(200)
@given(distributions(), TRUNCATIONS)
@example(np.full(8, 0.125), Truncation(top_k=3))
@example(np.array([0.125, 0.25, 0.25, 0.25, 0.125]), Truncation(top_k=2))
@example(np.array([0.125, 0.25, 0.25, 0.25, 0.125]), Truncation(top_k=4))
@example(np.array([0.25, 0.5, 0.25]), Truncation(top_p=0.5))
@example(np.array([0.25, 0.5, 0.25]), Truncation(top_p=0.75))
@example(np.array([0.25, 0.5, 0.25]), Truncation(top_p=math.nextafter(0.75, 1)))
@example(np.array([1.0, 0.0, 0.0]), Truncation(top_k=2))
def test_what_is_kept(distribution: Probs, keep: Truncation) -> None:
    found, wanted = cut(distribution, keep), np.zeros(len(distribution))
    chosen = kept_slowly(distribution, keep)
    wanted[chosen] = distribution[chosen]
    np.testing.assert_array_equal(found > 0, wanted > 0)
    np.testing.assert_allclose(found, wanted / wanted.sum(), rtol=1e-12)


@examples(200)
@given(distributions(), st.floats(1e-6, 0.999))
def test_no_smaller_set_has_the_mass(distribution: Probs, top_p: float) -> None:
    """Of the sets of one token less, the likeliest has the most mass, and it is not enough."""
    support = np.flatnonzero(truncated(distribution, top_p=top_p))
    assert distribution[support].sum() >= top_p - ROOM
    best = np.sort(distribution)[::-1][: len(support) - 1]
    assert best.sum() < top_p + ROOM


@pytest.mark.parametrize("keep", [Truncation(), Truncation(top_k=40), Truncation(top_k=1000), Truncation(top_p=1.0)], ids=str)
def test_nothing_is_cut_off_a_distribution_that_has_no_more(keep: Truncation) -> None:
    distribution = large(1.0, tokens=40)
    np.testing.assert_array_equal(cut(distribution, keep), distribution)


@examples(100)
@given(st.integers(0, 1000), st.integers(1, 60), st.floats(0.05, 1.0))
def test_truncating_the_logits_is_the_same(seed: int, top_k: int, temperature: float) -> None:
    """METHODS 2 truncates the logits, and the softmax comes after; here the distribution is truncated."""
    logits = np.random.default_rng(seed).normal(0, 4, 60).astype(np.float32)
    fewer = logits.copy()
    fewer[kept_slowly(logits.astype(np.float64), Truncation(top_k=top_k))] += 1000
    fewer = np.where(fewer > 500, logits, -np.inf).astype(np.float32)
    sampling = SamplingParams(temperature=temperature)
    np.testing.assert_allclose(truncated(process(logits, sampling), top_k), process(fewer, sampling), rtol=1e-9, atol=1e-15)


# Theorem 1.


@examples(300)
@given(distributions(), distributions(), TRUNCATIONS)
def test_one_candidate_stands_as_often_but_for_the_mass_that_was_cut_off(
    target: Probs, distribution: Probs, keep: Truncation
) -> None:
    """And the mass is the total variation, which is the lemma behind it."""
    found = cut(distribution, keep)
    sigma = 1 - float(distribution[found > 0].sum())
    assert total_variation(distribution, found) == pytest.approx(sigma, abs=ROOM)
    assert abs(beta(target, found) - beta(target, distribution)) <= sigma + ROOM


def test_the_bound_is_reached() -> None:
    """Both ways, so a smaller one would be wrong: a target on what is kept, and one on what is cut off."""
    distribution = np.array([0.5, 0.25, 0.125, 0.125])
    found = truncated(distribution, 2)
    assert beta(found, found) - beta(found, distribution) == pytest.approx(0.25)
    tail = np.array([0.0, 0.0, 0.5, 0.5])
    assert beta(tail, distribution) - beta(tail, found) == pytest.approx(0.25)


@pytest.mark.medium
@examples(200)
@given(distributions(), distributions(), TRUNCATIONS, st.sampled_from([8, 16, 32]))
def test_rounding_costs_no_more_than_it_moves(target: Probs, distribution: Probs, keep: Truncation, bits: int) -> None:
    kept = cut(distribution, keep)
    sent = quantise_ratios(ratios_of(bits))(kept)
    sigma = 1 - float(distribution[kept > 0].sum())
    assert abs(beta(target, sent) - beta(target, distribution)) <= sigma + total_variation(kept, sent) + ROOM


@examples(200)
@given(distributions(), distributions(), TRUNCATIONS)
def test_what_an_answer_reports_bounds_what_it_lost(target: Probs, distribution: Probs, keep: Truncation) -> None:
    """The mass of the tokens that were not sent, also of those that rounding dropped, and a quarter of a step for the rest."""
    spelled = f"k={keep.top_k}" if keep.top_k else f"p={keep.top_p!r}"
    sparsifier, told = Sparsifier(SparseOptions(truncate=spelled)), Exchanged()
    sent = sparsifier(distribution)
    sparsifier.tell(told, 1)
    assert (told.draft_distributions, told.entries) == (1, np.count_nonzero(sent))
    assert abs(beta(target, sent) - beta(target, distribution)) <= told.cut + LogRatios(8, 16).step / 4 + ROOM
    sparsifier.tell(told, 0)
    assert told.entries == np.count_nonzero(sent)  # nothing is told twice


@pytest.mark.parametrize("keep", [Truncation(top_k=320), Truncation(top_k=3200), Truncation(top_p=0.95)], ids=str)
def test_eight_bits_of_a_distribution_over_a_real_vocabulary(keep: Truncation) -> None:
    """0.011 in total variation, says LogRatios, besides the mass of what falls to 0."""
    distribution = cut(large(0.02), keep)
    sent = quantise_ratios(ratios_of(8))(distribution)
    dropped = float(distribution[sent == 0].sum())
    assert total_variation(distribution, sent) <= 0.011 + dropped


# Theorem 2.


def recursion(target: Probs, distribution: Probs, count: int) -> tuple[list[float], list[float]]:
    """beta_j for j = 1 .. count, and Z_s for s = 2 .. count: the masses of the residuals."""
    betas, masses, rest = [], [], target
    for _ in range(count):
        betas.append(beta(rest, distribution))
        masses.append(1 - betas[-1])
        rest = residual(rest, distribution)
    return betas, masses[:-1]


def factor(masses: list[float]) -> float:
    """The bracket of theorem 2: 1, and for every distribution on the way what its error has grown to."""
    return 1 + sum(math.prod(2 / mass for mass in masses[k:]) for k in range(len(masses)))


def assert_theorem_2(target: Probs, distribution: Probs, sent: Probs, count: int) -> None:
    sigma = total_variation(distribution, sent)
    plain, masses = recursion(target, distribution, count)
    found, _ = recursion(target, sent, count)
    for j in range(1, count + 1):
        if min(masses[: j - 1], default=1.0) < 1e-9:
            return
        assert abs(found[j - 1] - plain[j - 1]) <= factor(masses[: j - 1]) * sigma * (1 + 1e-9) + 1e-11


@st.composite
def same_size(draw: st.DrawFn) -> tuple[Probs, Probs]:
    """A target, and a distribution over its first tokens or over all of them."""
    target = draw(distributions(least=2))
    return target, draw(distributions(most=len(target)))


@examples(300)
@given(same_size(), TRUNCATIONS, st.sampled_from([0, 8, 16]))
def test_several_candidates_stand_as_often_but_for_the_bound(pair: tuple[Probs, Probs], keep: Truncation, bits: int) -> None:
    """j = 1, 2, 3, with and without rounding."""
    target, distribution = pair
    sent = cut(distribution, keep)
    if bits:
        sent = quantise_ratios(ratios_of(bits))(sent)
    assert_theorem_2(target, distribution, sent, 3)


@examples(150)
@given(seed=st.integers(0, 10_000), top_k=st.integers(1, 12), near=st.floats(0.0, 1.0))
def test_the_bound_holds_where_it_is_not_idle(seed: int, top_k: int, near: float) -> None:
    """Distributions of a model's shape and a little mass cut off: the bound is below 1, so it says something."""
    random = np.random.default_rng(seed)
    distribution = np.sort(random.dirichlet(np.full(12, 0.3)))[::-1]
    target = near * distribution + (1 - near) * random.dirichlet(np.full(12, 0.5))
    sent = truncated(distribution, top_k)
    _, masses = recursion(target, distribution, 2)
    assume(min(masses) > 1e-3 and factor(masses) * total_variation(distribution, sent) < 1)
    assert_theorem_2(target, distribution, sent, 3)


def test_the_factor_by_hand() -> None:
    """1 for the first; 1 + 2/Z_2 for the second; 1 + 2/Z_2 2/Z_3 + 2/Z_3 for the third."""
    assert factor([]) == 1
    assert factor([0.5]) == pytest.approx(1 + 4)
    assert factor([0.5, 0.25]) == pytest.approx(1 + 4 * 8 + 8)


@examples(100)
@given(same_size(), st.integers(1, 3))
def test_the_rate_of_several_is_made_of_these(pair: tuple[Probs, Probs], count: int) -> None:
    """Section 4.3: one stands unless all are rejected, one after the other."""
    target, distribution = pair
    betas, _ = recursion(target, distribution, count)
    missed = math.prod(1 - rate for rate in betas)
    assert acceptance_rate(target, distribution, count, replacement=True) == pytest.approx(1 - missed, abs=ROOM)


# On real distributions.


@pytest.fixture(scope="module")
def real_distributions(smollm2: Model, gemma3: Model) -> list[tuple[Probs, Probs]]:
    """Gemma's distribution and SmolLM2's, over what they have in common, at eight places of two articles."""
    common = common_vocabulary(smollm2.vocabulary, gemma3.vocabulary)
    assert common.device_ids is not None
    sampling, found = SamplingParams(temperature=1.0), []
    device, cloud = smollm2.open(), gemma3.open()
    for text in real_prompts()[-2:]:
        words = text.split(" ")
        for count in (3, 8, 14, 20):
            said = " ".join(words[:count]).encode()
            device.rewind(0)
            cloud.rewind(0)
            drafts = device.extend([*smollm2.begin, *spell(smollm2, said)])[0][common.device_ids]
            targets = cloud.extend([*gemma3.begin, *spell(gemma3, said)])[0][common.cloud_ids]
            found.append((process(targets, sampling), process(drafts, sampling)))
    device.close()
    cloud.close()
    return found


REAL = [*(Truncation(top_k=count) for count in (32, 320, 461, 3200)), *(Truncation(top_p=share) for share in (0.5, 0.95))]


@pytest.mark.model
@pytest.mark.parametrize("bits", [0, 8])
@pytest.mark.parametrize("keep", REAL, ids=str)
def test_the_theorems_on_real_distributions(
    keep: Truncation, bits: int, real_distributions: list[tuple[Probs, Probs]], capsys: pytest.CaptureFixture[str]
) -> None:
    """The sizes of the paper's figures."""
    rows = []
    for target, distribution in real_distributions:
        kept = cut(distribution, keep)
        sent = quantise_ratios(ratios_of(bits))(kept) if bits else kept
        sigma, moved = 1 - float(distribution[kept > 0].sum()), total_variation(kept, sent)
        plain, found = beta(target, distribution), beta(target, sent)
        assert abs(found - plain) <= sigma + moved + ROOM
        assert_theorem_2(target, distribution, sent, 3)
        assert np.count_nonzero(sent) <= (keep.top_k or len(distribution))
        rows.append((sigma, moved, plain, found))
    sigma, moved, plain, found = np.mean(rows, axis=0)
    with capsys.disabled():
        print(f"\n{keep}, {bits or 'no'} bits: cut off {sigma:.3f}, rounded {moved:.4f}, acceptance {plain:.3f} to {found:.3f}")

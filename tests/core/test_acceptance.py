"""Accept or resample: together they give exactly the target."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from antiphon.core.acceptance import accepts, residual
from antiphon.core.chance import Chance, Place, Role
from antiphon.core.distributions import Probs
from antiphon.testing.enumeration import output_distribution
from support.examples import examples

ELEMENTS = st.one_of(st.just(0.0), st.floats(1e-9, 1.0))


@st.composite
def distributions(draw: st.DrawFn, size: int) -> Probs:
    values = draw(hnp.arrays(np.float64, size, elements=ELEMENTS))
    values[draw(st.integers(0, size - 1))] += 0.5
    return values / values.sum()


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Probs, Probs]:
    """A target, and a draft over its first tokens."""
    size = draw(st.integers(1, 9))
    return draw(distributions(size)), draw(distributions(draw(st.integers(1, size))))


def distribution_of_one_draft(target: Probs, draft: Probs) -> Probs:
    """Draw a draft, test it, resample after a rejection: the distribution of the token."""

    def run(chance: Chance) -> int:
        token = chance.at(Place(0), Role.DRAFT).categorical(draft)
        if accepts(chance.at(Place(0), Role.ACCEPT), float(target[token]), float(draft[token])):
            return token
        return chance.at(Place(0), Role.RESAMPLE).categorical(residual(target, draft))

    distribution = output_distribution(run)
    return np.array([distribution.get(token, 0.0) for token in range(len(target))])


@examples(100)
@given(pairs())
@example((np.array([0.25, 0.75]), np.array([1.0])))
@example((np.array([1.0, 0.0]), np.array([0.0, 1.0])))
def test_accepted_or_resampled_a_token_has_the_target_distribution(pair: tuple[Probs, Probs]) -> None:
    target, draft = pair
    np.testing.assert_allclose(distribution_of_one_draft(target, draft), target, rtol=0, atol=1e-12)


@examples(100)
@given(pairs())
def test_accepted_mass_and_residual_add_up(pair: tuple[Probs, Probs]) -> None:
    target, draft = pair
    padded = np.concatenate([draft, np.zeros(len(target) - len(draft))])
    accepted = np.minimum(target, padded)
    rest = residual(target, draft)
    assert rest.shape == target.shape
    assert rest.sum() == pytest.approx(1)
    assert (rest >= 0).all()
    np.testing.assert_allclose(accepted + (1 - accepted.sum()) * rest, target, rtol=0, atol=1e-12)


@examples(100)
@given(pairs())
def test_the_arguments_stay_as_they_were(pair: tuple[Probs, Probs]) -> None:
    target, draft = pair
    before = target.tobytes(), draft.tobytes()
    residual(target, draft)
    assert before == (target.tobytes(), draft.tobytes())


class Least:
    """The smallest uniform number that there is: 0."""

    def bernoulli(self, probability: float) -> bool:
        return probability > 0.0

    def categorical(self, probs: Probs) -> int:
        raise NotImplementedError


def test_a_token_of_target_probability_zero_is_never_accepted() -> None:
    assert not accepts(Least(), 0.0, 1.0)
    assert not accepts(Least(), 0.0, 2.0**-32)
    assert accepts(Least(), 5e-324, 1.0)


def test_a_draft_below_its_target_is_always_accepted() -> None:
    for target, draft in [(0.5, 0.5), (0.5, 0.25), (1.0, 2.0**-32), (1.0, 5e-324)]:
        assert output_distribution(lambda chance, t=target, d=draft: accepts(chance, t, d)) == {True: 1.0}


def test_the_ratio_is_target_to_draft() -> None:
    assert output_distribution(lambda chance: accepts(chance, 0.125, 0.5)) == {True: 0.25, False: 0.75}


@pytest.mark.parametrize("draft", [(0.25, 0.75), (0.25, 0.75 + 2**-50), (0.25 + 2**-50, 0.75)])
def test_an_empty_residual_falls_back_to_the_target(draft: tuple[float, ...]) -> None:
    target = np.array([0.25, 0.75])
    assert residual(target, np.array(draft)).tolist() == [0.25, 0.75]


def test_a_shorter_draft_leaves_all_of_the_rest() -> None:
    assert residual(np.array([0.25, 0.25, 0.5]), np.array([1.0])).tolist() == [0, 1 / 3, 2 / 3]

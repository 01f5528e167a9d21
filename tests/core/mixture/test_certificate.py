"""What settles a token and what does not, on vocabularies that can be worked out by hand."""

import math

import numpy as np
import pytest

from antiphon.core.mixture.certificate import Certificate
from antiphon.core.mixture.scores import SCORES, ZERO, Report, StepScores, Values
from antiphon.core.mixture.weights import certain_alone, strengths_of, weights_of


def code(prob: float) -> int:
    return int(SCORES.codes(np.array([prob]))[0])


def decoded(*probs: float) -> Values:
    return SCORES.values(SCORES.codes(np.array(probs)))


def certificate(local: list[float], *masses: float) -> Certificate:
    return Certificate(np.array(local), [0.0, *(masses or (0.0,))])


def report(bound: float, **scores: float) -> Report:
    """Tokens are named a, b, c ..."""
    return Report({ord(name) - ord("a"): code(prob) for name, prob in scores.items()}, code(bound))


def test_a_known_token_above_every_bound() -> None:
    known = certificate([0.6, 0.3, 0.1])
    known.absorb(0, report(0.1, a=0.8))
    assert known.settled() == 0


def test_a_known_token_below_a_bound() -> None:
    known = certificate([0.3, 0.6, 0.1])
    known.absorb(0, report(0.3, a=0.5))  # a: 0.8, b: at most 0.9, c: at most 0.4
    assert known.settled() is None
    assert known.wanted(4, 0.05) == [1]


def test_an_unknown_token_that_needs_no_more() -> None:
    """b is worth more by the device alone than everyone else at most: nobody asks for its score."""
    known = certificate([0.05, 0.9, 0.05])
    known.absorb(0, report(0.2, a=0.8))
    assert known.settled() == 1


def test_the_paper_settles_no_token_of_which_nothing_is_known() -> None:
    """The same, without a bound from below: M is that of a alone, all others may have more, and b is asked for."""
    known = Certificate(np.array([0.05, 0.9, 0.05]), [0.0, 0.0], known_only=True)
    assert known.settled() is None
    assert known.wanted(1, 0.01) == [1], "before any report every token is ambiguous"
    known.absorb(0, report(0.2, a=0.8))
    assert known.settled() is None
    assert known.wanted(4, 0.05) == [1], "a has 0.85, c at most 0.25"
    known.absorb(0, report(0.2, b=0.1))
    assert known.settled() == 1
    known.drop(0)
    assert known.settled() == 1, "alone the device knows all"


def test_the_paper_knows_a_token_when_every_end_has_told_it() -> None:
    known = Certificate(np.array([0.9, 0.1]), [0.0, 0.0, 0.0], known_only=True)
    known.absorb(0, report(0.0, a=0.9))
    known.absorb(1, report(0.1, b=0.1))
    assert known.settled() is None, "neither is wholly known, though no bound reaches a"
    known.absorb(1, report(0.0, a=0.1))
    assert known.settled() == 0


def test_equal_is_not_enough_for_what_is_not_known() -> None:
    """b would draw with c at most, and c's id is higher; but a draws with c too, and lower ids win."""
    quarter = float(decoded(0.25)[0])
    known = certificate([quarter, quarter, quarter])
    known.absorb(0, report(0.25, b=0.25))
    assert known.settled() is None
    known.absorb(0, report(0.25, a=0.25))
    assert known.settled() is None, "c could draw, and a strict test does not look at ids"
    known.absorb(0, report(0.0, c=0.25))
    assert known.settled() == 0


def test_delta_asks_for_a_margin() -> None:
    known = certificate([0.5, 0.5])
    known.absorb(0, report(0.1, a=0.5))  # a: 1.0, b: at most 0.6
    margin = math.log((0.5 + float(decoded(0.5)[0])) / (0.5 + float(decoded(0.1)[0])))
    assert known.settled(margin - 1e-9) == 0
    assert known.settled(margin + 1e-9) is None
    assert known.wanted(3, 0.1, margin + 1e-9) == [1]


def test_before_any_report_it_is_the_certificate_without_a_message() -> None:
    for mass in (-3.0, -1.0, -0.7, 0.0):
        local = [0.1, 0.7, 0.2]
        weights = weights_of([0.0, mass])
        known = certificate(local, mass)
        assert known.settled() == certain_alone(strengths_of(weights[0], np.array(local)), weights[1:]) == known.certain_alone()


def test_a_bound_never_loosens() -> None:
    """A later report with a larger bound says less than is known already: what was settled stays settled."""
    known = certificate([0.6, 0.4])
    known.absorb(0, Report({}, 0))
    assert known.settled() is None
    known.absorb(0, report(0.1))
    assert known.settled() == 0, "and it tightens"
    known.absorb(0, Report({}, 0))
    assert known.settled() == 0


def test_whom_to_ask() -> None:
    known = certificate([0.02, 0.3, 0.0, 0.2, 0.2, 0.1])
    known.absorb(0, report(0.5, a=0.5))
    assert known.wanted(9, 0.01) == [1, 3, 4, 5], "c has no local mass"
    assert known.wanted(2, 0.01) == [1, 3]
    assert known.wanted(9, 0.2) == [1, 3, 4], "they have 0.7 of 0.8"
    assert known.wanted(9, 0.7) == [1]
    assert known.unknown(0, [0, 1]) == [1]


def test_nobody_with_local_mass_to_ask() -> None:
    known = certificate([1.0, 0.0, 0.0], 5.0)
    known.absorb(0, report(0.4, a=0.2))
    assert known.settled() is None
    assert known.wanted(4, 0.1) == []


def test_every_end_has_its_own_bound() -> None:
    known = certificate([0.4, 0.3, 0.3], 0.0, 0.0)
    known.absorb(0, report(0.1, a=0.7))
    assert known.settled() is None, "the other end may say anything"
    known.absorb(1, report(0.4, b=0.5))  # a: 1.1 and up to 0.4 more; b: at most 0.9; c: at most 0.8
    assert known.settled() == 0


def test_equal_is_not_enough_for_what_one_end_only_told() -> None:
    known = certificate([0.25, 0.25], 0.0, 0.0)
    known.absorb(0, report(0.0, a=0.25, b=0.25))
    known.absorb(1, report(0.25, b=0.25))  # a: as much at most, and its id is lower
    assert known.settled() is None
    assert known.wanted(4, 0.1) == [0]
    known.absorb(1, report(0.0, a=0.25))
    assert known.settled() == 0


def test_an_end_that_went_away() -> None:
    known = certificate([0.6, 0.4], 0.0, 0.0)
    known.absorb(0, report(0.2, b=0.9))
    assert known.settled() is None
    known.drop(1)
    assert known.ends == [0]
    assert known.settled() == 1
    known.drop(0)
    assert known.settled() == 0 == known.local_token


def test_the_last_end_with_documents_went_away() -> None:
    known = Certificate(np.array([0.4, 0.6]), [-math.inf, 0.0])
    known.drop(0)
    assert known.settled() == 1


def test_without_documents_the_device_has_no_say() -> None:
    known = Certificate(np.array([0.0, 1.0, 0.0]), [-math.inf, 2.0])
    known.absorb(0, report(0.3, c=0.5))
    assert known.settled() == 2


def test_all_scores() -> None:
    local, remote = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7])
    known = Certificate(local, [0.0, 0.0])
    assert known.dense({0: StepScores(remote).codes}) == 2
    with pytest.raises(ValueError, match="not as many"):
        known.dense({0: StepScores(remote[:2]).codes})


@pytest.mark.parametrize(
    "bad", [Report({3: 0}, 0), Report({-1: 0}, 0), Report({0: ZERO + 1}, 0), Report({}, -1), Report({}, ZERO + 1)]
)
def test_reports_that_do_not_fit(bad: Report) -> None:
    with pytest.raises(ValueError, match=r"vocabulary|code"):
        certificate([0.5, 0.3, 0.2]).absorb(0, bad)


def test_a_report_taken_out_of_order_would_be_wrong() -> None:
    """Why the order matters: a later bound takes the earlier scores as received."""
    end = StepScores(np.array([0.1, 0.2, 0.7]))
    first, second = end.strongest(1), end.strongest(1)
    known = certificate([0.4, 0.35, 0.25])
    known.absorb(0, second)
    assert known.settled() == 1
    known.absorb(0, first)
    assert known.settled() == 2

"""What passes cost by their width: learned from few of them, and never for good."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.pass_costs import FORGOTTEN, NEWEST, OUTLIER, PassCosts
from support.examples import examples


def measured(*passes: tuple[int, float]) -> PassCosts:
    costs = PassCosts()
    for width, seconds in passes:
        costs.observe(width, seconds)
    return costs


def test_nothing_is_known_at_first() -> None:
    assert PassCosts().seconds(3) == 0.0


def test_a_width_that_was_never_tried_costs_what_the_next_known_one_does() -> None:
    """So it is tried."""
    costs = measured((1, 2.0))
    assert costs.seconds(7) == costs.seconds(1) == 2.0
    costs.observe(7, 8.0)
    assert (costs.seconds(7), costs.seconds(9)) == (8.0, 8.0)
    assert costs.seconds(4) == pytest.approx(5.0), "half way between two that are known"
    assert measured((6, 3.0)).seconds(2) == pytest.approx(1.0), "narrower ones may cost less: they are tried too"


def test_the_least_of_the_first_ones_counts_and_then_the_newest_most() -> None:
    costs = measured((2, 12.0), (2, 10.0), (2, 30.0))
    assert costs.seconds(2) == 10.0
    costs.observe(2, 20.0)
    assert costs.seconds(2) == pytest.approx(10.0 + NEWEST * 10)


def test_one_pass_that_took_much_too_long_says_little() -> None:
    costs = measured(*[(1, 1.0)] * 9, (1, 1000.0))
    assert costs.seconds(1) == pytest.approx(1.0 + NEWEST * (OUTLIER - 1.0))
    slower = measured(*[(1, 1.0)] * 9, *[(1, 1000.0)] * 200)
    assert slower.seconds(1) == pytest.approx(1000.0, rel=0.01), "but a machine may become slow for good"


def test_what_was_not_made_for_long_is_unknown_again() -> None:
    """A pass that was dear once, as the machine was busy, is tried again."""
    costs = measured((1, 1.0), (3, 9.0), *[(1, 1.0)] * FORGOTTEN)
    assert costs.seconds(3) == 9.0
    costs.observe(1, 1.0)
    assert costs.seconds(3) == 1.0


@examples(100)
@given(st.lists(st.tuples(st.integers(1, 8), st.floats(1e-4, 10.0)), min_size=1, max_size=40), st.integers(1, 64))
def test_a_cost_lies_among_what_was_measured(passes: list[tuple[int, float]], width: int) -> None:
    found = measured((1, passes[0][1]), *passes).seconds(width)
    assert min(seconds for _, seconds in passes) - 1e-9 <= found <= max(seconds for _, seconds in passes) + 1e-9

"""How long a cloud waits for trees: for a level more where that is short, for whole trees where passes have a price."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.stream import View
from antiphon.core.tree_stream import FRESH, LEVEL, choose_wait
from support.examples import examples


def view(response: float, gap: float = 0.004, alone: float = 0.033, stands: float = 0.8) -> View:
    return View(stands, response, gap, lambda width: alone, 8)


@pytest.mark.parametrize(
    ("seen", "seconds"),
    [
        (view(0.004), LEVEL * 0.004),
        (view(0.030), LEVEL * 0.004),
        (view(0.054), 0.0),  # trees come a pass late in any case
        (view(0.004, gap=0.015), 0.0),  # a level takes half a pass
    ],
)
def test_where_only_time_counts_it_waits_for_one_level_at_most(seen: View, seconds: float) -> None:
    assert choose_wait(seen, 0.0).seconds == pytest.approx(seconds)


def test_where_passes_have_a_price_it_waits_for_a_tree() -> None:
    wait = choose_wait(view(0.054), 4 * 0.033)
    assert wait.seconds >= 0.054
    assert wait.drafts == FRESH
    assert choose_wait(view(0.054, stands=0.02), 4 * 0.033).seconds == 0.0  # nothing would stand


@examples(100)
@given(st.floats(0, 2), st.floats(0, 0.2), st.floats(0, 0.2), st.floats(0, 0.999), st.sampled_from([0.0, 0.1]), st.floats(0, 1))
def test_it_never_waits_less_than_the_cloud_asks_for(
    response: float, gap: float, alone: float, stands: float, price: float, least: float
) -> None:
    wait = choose_wait(view(response, gap, alone, stands), price, least)
    assert wait.seconds >= least
    assert wait.seconds <= max(least, response + FRESH * gap, LEVEL * gap)

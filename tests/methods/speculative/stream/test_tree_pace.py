"""What is learned of trees in a stream: how many nodes pay in a pass, on both ends, and where none is of use any more."""

import pytest

from antiphon.core.pass_costs import PassCosts
from antiphon.core.stream import AUTO
from antiphon.methods.speculative.options import CoupledTreeOptions
from antiphon.methods.speculative.stream.tree_pace import TreePace
from antiphon.methods.speculative.stream.tree_patience import TreeStreaming


def costs(first: float, further: float) -> PassCosts:
    found = PassCosts()
    for width in range(1, 65):
        found.observe(width, first + further * (width - 1))
    return found


def learned(cost: PassCosts, stands: list[float]) -> TreeStreaming:
    """A cloud that saw trees whose first, second, ... node stands so often."""
    pacing = TreeStreaming(AUTO, 0.0, "speed", cost, len(stands))
    for turn in range(200):
        pacing.ordered(len(stands), 3, [place for place, share in enumerate(stands) if turn * 37 % 100 < 100 * share])
    return pacing


STANDS = [0.54, 0.3, 0.14, 0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.01]


@pytest.mark.parametrize(
    ("cost", "least", "most"),
    [
        (costs(33.0, 0.1), 9, 12),  # a GPU: all but what hardly ever stands
        (costs(31.5, 10.0), 1, 3),  # a CPU
        (costs(30.0, 30.0), 0, 0),  # each token costs a pass
    ],
)
def test_a_pass_reads_as_many_nodes_as_pay(cost: PassCosts, least: int, most: int) -> None:
    assert least <= learned(cost, STANDS).take(12) <= most
    assert learned(cost, STANDS).take(1) <= 1


def test_nothing_is_read_of_nothing() -> None:
    assert learned(costs(33.0, 0.1), STANDS).take(0) == 0


def test_a_device_reads_at_once_what_brings_most_for_its_time() -> None:
    wide, narrow = TreePace(CoupledTreeOptions()), TreePace(CoupledTreeOptions())
    for width in range(1, 8):
        wide.read(width, 0.004 + 0.00002 * (width - 1))
        narrow.read(width, 0.015 * width)
    chances = [0.5, 0.2, 0.1, 0.05, 0.03]
    assert wide.width(chances) == 5
    assert narrow.width(chances) == 1
    assert TreePace(CoupledTreeOptions()).width(chances) == 5  # nothing is known yet


def test_a_device_stops_where_no_pass_takes_its_nodes() -> None:
    pace = TreePace(CoupledTreeOptions())
    assert pace.pays(0.5, 0, 0.0)
    for _ in range(2):
        pace.use.came(0, 1)
    assert not pace.pays(0.5, 0, 0.0)
    for _ in range(40):
        pace.tested(0, fell=False)
    assert pace.pays(0.5, 0, 0.0)  # it looks again


def test_a_node_that_will_be_past_is_worth_less() -> None:
    pace = TreePace(CoupledTreeOptions())
    for turn in range(8):
        pace.trip.leave(turn * 0.033 - 0.4)
        pace.trip.arrive(turn + 1, turn * 0.033)
    for _ in range(50):
        pace.tested(0, fell=True)
        pace.tested(1, fell=False)
    now = 7 * 0.033
    assert pace.pays(0.1, 20, now)
    assert not pace.pays(0.1, 0, now)


@pytest.mark.parametrize(("objective", "least"), [("speed", 0.01), ("data", 0.45), ("battery", 0.25)])
def test_what_a_node_must_be_worth_hangs_on_the_objective(objective: str, least: float) -> None:
    assert TreePace(CoupledTreeOptions(objective=objective)).least == least  # type: ignore[arg-type]

"""How far a device drafts in a stream: as long as a draft stands and comes before the cloud has gone past its place."""

import pytest

from antiphon.methods.drafter import Guess
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.methods.speculative.stream.pace import Pace

PASS = 0.03


def pace_of(draft: float, trip: float = 0.0, verdicts: int = 8) -> tuple[Pace, float]:
    """What is learned of a cloud that answers every `PASS`, and the time of its last word."""
    pace, now = Pace(CoupledOptions(), 6), 0.0
    for number in range(1, verdicts + 1):
        pace.trip.leave(now)
        now += PASS
        pace.trip.arrive(number, now + trip)
        pace.drafting.observe(draft)
        pace.tested([Guess(1, 1.0)], None)
    return pace, now + trip


@pytest.mark.parametrize(
    ("draft", "stale", "pays"),
    [
        (0.3, 0.0, True),  # at once it is behind the next token
        (1.2, 0.0, False),  # by then the cloud is a token farther, and farther still with the next one
        (0.9, 0.5, False),  # it gains a tenth of a pass with each draft: four of them are too many to stand
        (0.3, 0.9, True),  # it has the place after the next one in two drafts
    ],
)
def test_a_draft_pays_if_the_device_overtakes_the_cloud_soon(draft: float, stale: float, pays: bool) -> None:
    """draft, stale: in passes; of a draft, and since the last verdict."""
    pace, now = pace_of(draft * PASS)
    for _ in range(40):
        pace.tested([], Guess(1, 1.0))
    for _ in range(60):
        pace.tested([Guess(1, 1.0)], None)
        pace.tested([], Guess(1, 1.0))
    assert pace.pays([], now + stale * PASS, None) is pays


def test_a_line_that_is_ahead_goes_on_however_slow_the_device() -> None:
    pace, now = pace_of(1.2 * PASS)
    line = [Guess(1, 1.0)] * 3
    assert pace.pays(line, now, None)
    assert not pace.pays([], now, None)


def test_after_many_verdicts_without_a_draft_it_looks_again() -> None:
    pace, now = pace_of(1.2 * PASS)
    for _ in range(32):
        assert not pace.pays([], now, None)
        pace.tested([], None)
    assert pace.pays([], now, None)

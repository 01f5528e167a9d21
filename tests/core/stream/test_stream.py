"""What a stream is steered by, without models: what a pass should take, how long to wait, and what verdicts tell of time."""

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.stream import OBJECTIVES, SAMPLES, SILENCE, Mean, Ratio, Trip, View, Wait, choose, worth
from support.examples import examples

PASS = 0.033

Cost = Callable[[int], float]


def flat(width: int) -> float:
    """A pass costs the same whatever it reads, as on a GPU."""
    return PASS


def each(width: int) -> float:
    """A pass of three tokens costs three passes of one."""
    return PASS * width


def view(stands: float = 0.6, response: float = 0.01, gap: float = 0.004, cost: Cost = flat, most: int = 6) -> View:
    return View(stands, response, gap, cost, most)


def test_tokens_of_a_pass() -> None:
    """One of the cloud's own, and each draft with all before it."""
    assert view(0.5).tokens(3) == pytest.approx(1 + 0.5 + 0.25 + 0.125)
    assert view(0.0).tokens(3) == 1.0


# How many drafts a pass takes.


@pytest.mark.parametrize("stands", [0.1, 0.6, 0.999])
@pytest.mark.parametrize("price", [0.0, PASS])
def test_where_a_pass_costs_the_same_it_takes_all(stands: float, price: float) -> None:
    assert [worth(view(stands), there, price) for there in (0, 1, 5, 9)] == [0, 1, 5, 6]


@pytest.mark.parametrize("stands", [0.1, 0.6, 0.999])
def test_where_every_token_costs_a_pass_it_takes_none(stands: float) -> None:
    assert [worth(view(stands, cost=each), there, 0.0) for there in (0, 1, 5, 9)] == [0] * 4


def test_where_the_cloud_s_passes_have_a_price_it_takes_them_all_the_same() -> None:
    assert worth(view(0.9, cost=each), 6, 40 * PASS) == 6


def test_what_stands_more_often_is_worth_a_wider_pass() -> None:
    """1.3 passes of one for two tokens, 1.6 for three, as on a CPU."""
    taken = [worth(view(stands, cost=lambda width: PASS * (0.7 + 0.3 * width)), 6, 0.0) for stands in (0.2, 0.5, 0.7, 0.95)]
    assert taken == sorted(taken)
    assert taken[0] == 0
    assert taken[-1] > 2


@examples(200)
@given(st.floats(0.0, 0.999), st.integers(0, 9), st.floats(0.0, 1.0), st.lists(st.floats(1e-3, 1.0), min_size=10, max_size=10))
def test_it_takes_what_brings_most_in_time_and_price(stands: float, there: int, price: float, costs: list[float]) -> None:
    def rate(drafts: int) -> float:
        return sum(stands**index for index in range(drafts + 1)) / (costs[drafts] + price)

    taken = worth(View(stands, 0.01, 0.004, lambda width: costs[width - 1], 9), there, price)
    assert rate(taken) >= max(map(rate, range(there + 1))) * (1 - 1e-9)


def test_where_nothing_was_measured_it_takes_all() -> None:
    assert worth(view(cost=lambda width: 0.0), 4, 0.0) == 4


# How long the cloud waits.


def test_it_does_not_wait_where_a_draft_takes_longer_than_a_token() -> None:
    """A round trip of 50 ms: in that time the cloud writes on by itself."""
    assert choose(view(0.6, response=0.054), 0.0) == Wait()


def test_it_does_not_wait_where_nothing_stands() -> None:
    assert choose(view(0.0), 0.0) == Wait()
    assert choose(view(0.01, response=0.02), 0.0) == Wait()


def test_it_waits_a_little_where_drafts_stand_and_are_there_at_once() -> None:
    wait = choose(view(0.9, response=0.004), 0.0)
    assert 0.0 < wait.seconds < PASS
    assert wait.drafts >= 1


def test_it_waits_where_passes_have_a_price() -> None:
    """What is slower than the stream is cheaper than its passes."""
    far = view(0.8, response=0.06)
    assert choose(far, 0.0) == Wait()
    wait = choose(far, OBJECTIVES["cloud"].pass_price * PASS)
    assert wait.seconds > 0.06
    assert wait.drafts >= 1


SOMETHING = {
    "stands": st.floats(0.0, 0.999),
    "response": st.floats(0.0, 1.0),
    "gap": st.floats(0.0, 0.1),
    "price": st.floats(0.0, 1.0),
}


@examples(200)
@given(**SOMETHING, least=st.sampled_from([0.0, 1e-9, 0.01, 0.5]), most=st.sampled_from([0.0, 0.005, 0.02, math.inf]))
def test_a_wait_is_at_least_what_is_asked_for_and_at_most_what_is_allowed(
    stands: float, response: float, gap: float, price: float, least: float, most: float
) -> None:
    wait = choose(view(stands, response, gap), price, least, most)
    assert wait.seconds <= most
    assert wait.seconds >= min(least, most)
    assert 0 <= wait.drafts <= 6


@examples(100)
@given(**SOMETHING)
def test_who_waits_for_nothing_would_not_wait_for_less_price(stands: float, response: float, gap: float, price: float) -> None:
    """A wait saves passes, so the dearer they are the more it pays."""
    if choose(view(stands, response, gap), price) == Wait():
        assert choose(view(stands, response, gap), price / 2) == Wait()


def test_nothing_is_chosen_where_nothing_was_measured() -> None:
    assert choose(view(cost=lambda width: 0.0), 0.0) == Wait()


# What is learned.


def test_a_ratio_follows_what_comes() -> None:
    ratio = Ratio(2.0, 3.0)
    assert ratio.share == pytest.approx(2 / 3)
    for _ in range(300):
        ratio.observe(0.0)
    assert ratio.share < 0.01
    for _ in range(40):
        ratio.observe(1.0)
    assert 0.6 < ratio.share < 0.8, "forty of the newest weigh more than three hundred old ones"
    ratio.observe(3.0, 4.0)
    assert 0.0 < ratio.share <= 1.0


def test_a_ratio_of_chances_comes_near_them() -> None:
    source, ratio = random.Random(1), Ratio(2.0, 3.0, 0.99)
    found = []
    for _ in range(4000):
        ratio.observe(float(source.random() < 0.3))
        found.append(ratio.share)
    assert sum(found[500:]) / len(found[500:]) == pytest.approx(0.3, abs=0.03)


def test_a_mean_is_what_came_first_and_then_follows() -> None:
    mean = Mean()
    assert (mean.value, mean.known(), mean.known(7.0)) == (None, 0.0, 7.0)
    mean.observe(5.0)
    assert mean.value == 5.0
    for _ in range(50):
        mean.observe(1.0)
    assert mean.known() == pytest.approx(1.0, abs=1e-3)


# What verdicts tell.


def watched(way: float, seconds: float, leaving: list[float], passes: int) -> Trip:
    """A cloud that makes a pass after the other, and hears what had come before each; the device sends at these times."""
    trip = Trip()
    events = [(time, 0, 0) for time in leaving]
    for number in range(passes):
        heard = sum(time + way <= number * seconds for time in leaving)
        events.append(((number + 1) * seconds + way, 1, heard))
    for time, kind, heard in sorted(events):
        if kind:
            trip.arrive(heard, time)
        else:
            trip.leave(time)
    return trip


@examples(100)
@given(st.floats(0.0, 0.2), st.floats(0.005, 0.1), st.integers(0, 1000))
def test_a_round_trip_is_seen_to_less_than_a_pass(way: float, seconds: float, seed: int) -> None:
    source = random.Random(seed)
    leaving = sorted(source.uniform(0.0, 40 * seconds) for _ in range(30))
    trip = watched(way, seconds, leaving, 60 + int(2 * way / seconds))
    assert trip.pass_seconds == pytest.approx(seconds)
    assert 2 * way - 1e-9 <= trip.round_trip <= 2 * way + seconds
    assert trip.sent == trip.heard == 30


def test_the_newest_round_trips_count() -> None:
    """A link that has become worse is seen to be, once what was better is old."""
    trip = Trip()
    for number, way in enumerate([0.01] * 20 + [0.1] * SAMPLES):
        trip.leave(PASS * (number - 1) - 2 * way)
        trip.arrive(trip.sent, PASS * number)
    assert trip.round_trip == pytest.approx(0.2)


def test_a_verdict_that_heard_nothing_new_tells_no_round_trip() -> None:
    trip = Trip()
    for number in range(5):
        trip.arrive(0, PASS * number)
    assert (trip.round_trip, trip.pass_seconds) == (0.0, pytest.approx(PASS))
    trip.leave(1.0)
    trip.leave(1.2)
    trip.arrive(2, 1.3)
    assert trip.round_trip < 0.1, "of two messages that were heard at once the newer one waited less"


def test_how_far_the_cloud_is_when_a_message_gets_there() -> None:
    """20 ms each way: the verdict that came now was made 20 ms ago, and it will be 20 more."""
    trip = watched(0.02, PASS, [PASS * number + 0.002 for number in range(40)], 60)
    assert trip.passes_until(trip.newest) == pytest.approx(trip.round_trip / PASS)
    assert trip.passes_until(trip.newest + 3 * PASS) == pytest.approx(3 + trip.round_trip / PASS)
    assert 0.04 <= trip.round_trip < 0.04 + PASS


def test_what_would_miss_a_pass_is_due() -> None:
    trip = watched(0.0, 0.1, [0.1 * number - 1e-6 for number in range(1, 20)], 30)
    now = trip.newest
    assert trip.round_trip < 1e-3
    assert not trip.is_due(now + 0.01, 0.02), "the next pass is far"
    assert trip.is_due(now + 0.07, 0.04), "behind the next draft it would be too late"
    assert trip.is_due(now + 0.07, 0.025), "and it must not be just in time"


def test_where_the_pace_is_not_known_all_is_due() -> None:
    trip = Trip()
    assert trip.is_due(1.0, 0.0)
    assert trip.passes_until(1.0) == 0.0
    trip.arrive(0, 2.0)
    assert trip.is_due(2.5, 0.0)


def test_a_cloud_counts_as_gone_after_a_second_or_three_trips() -> None:
    assert Trip().patience == math.inf
    assert watched(0.02, PASS, [0.0], 10).patience == SILENCE == 1.0
    far = watched(0.5, PASS, [0.1 * number for number in range(20)], 80)
    assert far.patience == pytest.approx(3 * (far.round_trip + far.pass_seconds))


def test_a_round_trip_that_was_timed_is_believed_until_less_is_seen() -> None:
    trip = Trip()
    trip.timed = 0.05
    assert trip.round_trip == 0.05
    trip.leave(0.0)
    trip.arrive(1, 0.3)
    assert trip.round_trip == 0.05, "the message waited for a pass to end"
    trip.leave(0.3)
    trip.arrive(2, 0.31)
    assert trip.round_trip < 0.05

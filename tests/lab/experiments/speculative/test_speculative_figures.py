"""Figures of `bench speculative` from answers, against sums by hand."""

from itertools import pairwise

import pytest

from antiphon.config import SamplingParams
from antiphon.methods.effects import Kind
from antiphon.models.toy import named_toy
from antiphon_lab.ends.trials import Trial, attempt
from antiphon_lab.experiments.speculative.figures import Figures, Written
from antiphon_lab.hardware.profiles import parse_compute
from antiphon_lab.links.notation import parse_link


def answer(arrivals: tuple, **changes: object) -> Written:
    fields: dict = {
        "row": "dssd 2",
        "link": "l",
        "profile": "p",
        "temperature": 1.0,
        "prompt": 0,
        "seed": 1,
        "exact": True,
        "arrivals": arrivals,
        "up_payload": 10,
        "up_framing": 20,
        "down_payload": 30,
        "down_framing": 40,
        "opening": 60,
        "up_packets": 3,
        "down_packets": 6,
        "packet_bits": 600,
        "rounds": len(arrivals),
        "drafted": 4,
        "depths": ((1, 2), (0, 1)),
        "passes": 3,
        "cloud_ms": 5.0,
        "digest": "d",
    }
    return Written(**{**fields, **changes})


def test_tokens_that_come_together_are_no_time_apart() -> None:
    one = answer(((0.5, 2), (0.8, 1), (1.0, 3)))
    assert (one.tokens, one.seconds) == (6, 1.0)
    assert one.intervals() == pytest.approx([0, 0.3, 0.2, 0, 0])
    found = Figures((one,), (one,))
    assert (found.tokens_per_s, found.tokens_per_round, found.speedup) == (6, 2, 1)
    assert found.tokens_per_s_interval is None
    assert found.itl_s(50) == 0
    ways = {"up_payload": 10 / 6, "up_framing": 20 / 6, "down_payload": 5, "down_framing": 40 / 6}
    assert found.bits == pytest.approx({**ways, "opening": 10})
    assert found.packets == pytest.approx({"up_packets": 0.5, "down_packets": 1, "packet_bits": 100})


@pytest.mark.parametrize("method", ["dssd", "xcosd-e", "coupled", "tslt-tree", "u-hlm"])
def test_depths_add_up_to_the_tokens_of_an_answer(method: str) -> None:
    trial = Trial(method, parse_link("lan"), parse_compute("paper"), SamplingParams(temperature=1.0), {"draft_length": 3}, 60)
    (result,) = attempt(trial, named_toy("toy-cloud"), named_toy("toy-device"), ["the "], 3)
    depths, kinds, sets = result.answer.acceptance_by_depth(), result.answer.kinds, result.answer.sets_of_siblings()
    assert sum(stood for stood, _ in depths) == sets[0] >= kinds[Kind.ACCEPTED]  # of `coupled` also some on their way
    assert sets[1] - sets[0] == kinds[Kind.CORRECTION] > 0
    assert sum(tested for _, tested in depths) >= sets[1]
    assert method == "tslt-tree" or all(later <= stood for (stood, _), (_, later) in pairwise(depths))
    assert result.as_json()["acceptance_by_depth"] == [stood / tested for stood, tested in depths]
    assert sum(len(one.kinds) for one in result.answer.emissions) == result.answer.committed
    assert sum(one.drafted for one in result.answer.emissions) == result.answer.exchanged.drafted


def test_answers_of_one_digest_are_the_same() -> None:
    one, other = answer(((1.0, 1),)), answer(((1.0, 1),), digest="e")
    assert Figures((one, other), (one, one)).as_json()["same_as_cloud"] == 1


def test_acceptance_is_of_the_drafts_that_were_tested_and_ends_where_none_stood() -> None:
    answers = (answer(((1.0, 1),)), answer(((1.0, 1),), depths=((3, 4), (1, 3), (0, 1))), answer(((1.0, 1),), depths=()))
    assert Figures(answers, answers).acceptance == pytest.approx([4 / 6, 1 / 4])
    never = (answer(((1.0, 1),), depths=((0, 3),)),)
    assert Figures(never, never).acceptance == [0]
    none = (answer(((1.0, 1),), depths=()),)
    assert Figures(none, none).acceptance == []


def test_the_speed_up_is_resampled_in_pairs() -> None:
    """Prompts differ much more than methods do: answers that always take half the time are twice as fast for sure."""
    theirs = tuple(answer(((float(seconds), 10),)) for seconds in 3 * (1, 2, 5, 9))
    ours = tuple(answer(((seconds / 2, 10),)) for seconds in 3 * (1, 2, 5, 9))
    assert Figures(ours, theirs).speedup_interval == pytest.approx((2, 2))
    low, high = Figures(ours, theirs).tokens_per_s_interval or (0, 0)
    assert high > 1.5 * low

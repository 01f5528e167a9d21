"""A device without drafts, and an answer that is watched: what happened, and when."""

from itertools import pairwise

import pytest

from antiphon.config import SamplingParams
from antiphon.core.stream import LOCKSTEP
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.models.toy import named_toy
from antiphon_lab.ends.no_drafts import NonDraftingModel
from antiphon_lab.ends.timeline import Timeline, watch
from antiphon_lab.ends.trials import Trial, attempt
from antiphon_lab.hardware.profiles import Compute, PassCost, parse_compute
from antiphon_lab.links.link import Link
from antiphon_lab.links.notation import parse_link


def trial(method: str, link: str = "4g", **options: object) -> Trial:
    compute = parse_compute("a100-7b")
    return Trial(method, parse_link(link), compute, SamplingParams(temperature=1.0), options, 12)


def test_a_mute_device_makes_a_trip_a_token_and_the_answer_of_cloud() -> None:
    cloud, device = named_toy("toy-cloud"), named_toy("toy-device")
    (streamed,) = attempt(trial("cloud"), cloud, device, ["the "], 5)
    (asking,) = attempt(
        trial("coupled", draft_length=1, ahead=0, patience=LOCKSTEP), cloud, NonDraftingModel(device), ["the "], 5
    )
    assert asking.token_ids == streamed.token_ids
    assert asking.answer.exchanged.drafted == 0
    assert asking.answer.rounds == asking.tokens == asking.passes
    left = device.open()
    assert left.extend([1]).size  # the model is still open
    left.close()


COMPUTE = Compute("test", PassCost(5.0, 1.0), PassCost(20.0, 2.0), "a test")


def watched(method: str, **options: object) -> Timeline:
    tried = Trial(method, Link("l", *two_ways(), "a test"), COMPUTE, SamplingParams(temperature=1.0), options, 12)
    return watch(tried, named_toy("toy-cloud"), named_toy("toy-device"), "the ", 1)


def two_ways() -> tuple:
    link = parse_link("rtt=40ms,up=1Mbit,down=1Mbit")
    return link.up, link.down


def test_a_timeline_of_lockstep_is_a_chain_of_causes() -> None:
    line = watched("dssd", draft_length=2)
    assert len(line.commits) > 4
    for before, after in pairwise(line.commits[:-1]):
        drafts = [one for one in line.device if before.time <= one.start < after.time]
        up = [one for one in line.frames if one.up and before.time <= one.sent < after.time]
        verify = [one for one in line.cloud if before.time <= one.start < after.time]
        down = [one for one in line.frames if not one.up and before.time <= one.sent < after.time]
        assert (len(up), len(verify), len(down)) == (1, 1, 1)
        assert drafts[0].start == pytest.approx(before.time)
        assert up[0].sent == pytest.approx(drafts[-1].end)
        assert up[0].arrived == pytest.approx(verify[0].start)
        assert down[0].sent == pytest.approx(verify[0].end)
        assert down[0].arrived == pytest.approx(after.time)
        assert up[0].arrived - up[0].sent > 0.02
        assert verify[0].tokens == len(drafts) + 1


@pytest.mark.medium
def test_passes_of_a_timeline_take_what_the_profile_says_and_never_overlap() -> None:
    for method in WITHOUT_DOCUMENTS:
        line = watched(method) if WITHOUT_DOCUMENTS[method].cloud else None
        for passes, cost in ((line.device, COMPUTE.draft), (line.cloud, COMPUTE.verify)) if line else ():
            assert all(one.end - one.start == pytest.approx(cost.seconds(one.tokens, 0)) for one in passes)
            assert all(one.end <= other.start + 1e-9 for one, other in pairwise(passes))


def test_a_timeline_is_that_of_the_answer() -> None:
    tried = trial("coupled")
    line = watch(tried, named_toy("toy-cloud"), named_toy("toy-device"), "the ", 3)
    (result,) = attempt(tried, named_toy("toy-cloud"), named_toy("toy-device"), ["the "], 3)
    assert line.seconds == result.answer.seconds
    assert sum(count for commit in line.commits for _, count in commit.kinds) == result.answer.committed
    assert len([one for one in line.cloud if one.tokens]) == result.passes + 1  # and the prompt's

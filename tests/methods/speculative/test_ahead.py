"""`coupled` drafts ahead of the verdict: whatever comes late, the answer is that of `cloud`, and nothing stale is used."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods.speculative.coupled import COUPLED
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.methods.speculative.stream.cloud import CoupledCloud
from antiphon.methods.verifier import Targets
from antiphon.models.base import Model
from antiphon.models.toy import ToyModel, named_toy, toy_pieces
from antiphon.options import NoOptions
from antiphon.testing.distributions import LARGE, SHARED, SMALL, Pair, distance, method_distribution, target_distribution
from methods.speculative.ahead import PLAIN
from methods.speculative.stream.timed import Times, timed_distribution
from support.broken_links import Network, broken, random_delay
from support.examples import examples
from support.links import request

LENGTHS = [1, 2, 3, 0]


AHEADS = [0, 1, 2, 3]


NARROW = SamplingParams(temperature=1.0, top_k=2)


@pytest.mark.core(2)
@pytest.mark.parametrize("ahead", AHEADS)
@pytest.mark.parametrize("draft_length", LENGTHS)
def test_joint_distribution(draft_length: int, ahead: int) -> None:
    pair, options = Pair(SHARED, SHARED), CoupledOptions(draft_length, ahead)
    assert distance(method_distribution(pair, COUPLED, options, PLAIN, 3), target_distribution(pair, PLAIN, 3)) < 1e-12


@pytest.mark.core(3)
@pytest.mark.parametrize("way", [0.0, 0.01, 0.2])
@pytest.mark.parametrize("ahead", AHEADS[1:])
@pytest.mark.parametrize("draft_length", [1, 0])
def test_joint_distribution_of_four_tokens_on_a_clock(draft_length: int, ahead: int, way: float) -> None:
    """Verdicts come before a draft ahead is made, while some are, and when all are long on their way."""
    pair, options = Pair(SHARED, SHARED, seed=6), CoupledOptions(draft_length, ahead)
    distribution = timed_distribution(pair, COUPLED, options, NARROW, 4, Times(way=way))
    assert distance(distribution, target_distribution(pair, NARROW, 4)) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("ahead", AHEADS)
@pytest.mark.parametrize("draft_length", LENGTHS)
def test_joint_distribution_with_tokens_that_the_device_lacks(draft_length: int, ahead: int) -> None:
    pair, options = Pair(SMALL, LARGE), CoupledOptions(draft_length, ahead)
    assert distance(method_distribution(pair, COUPLED, options, PLAIN, 3), target_distribution(pair, PLAIN, 3)) < 1e-12


def test_a_planted_bug_in_the_distribution_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cloud that takes the first of two drafts as it is."""
    plain = CoupledCloud._winners

    def trusting(self: CoupledCloud, targets: Targets, drafts: Sequence[int]) -> list[int]:
        found = plain(self, targets, drafts)
        if len(drafts) < 2 or found[0] == drafts[0] or self.side.transcript.is_end(drafts[0]):
            return found
        race = self.side.chance.race(self.side.transcript.position + 1, self.side.common.cloud_ids)
        second = race.winner(targets.probs(1))
        return found if second == drafts[1] else [drafts[0], second]

    monkeypatch.setattr(CoupledCloud, "_winners", trusting)
    pair, options = Pair(SHARED, SHARED), CoupledOptions(2, 0)
    assert distance(method_distribution(pair, COUPLED, options, PLAIN, 3), target_distribution(pair, PLAIN, 3)) > 1e-3


CLOUD = named_toy("toy-cloud")


DEVICES: list[Model] = [
    named_toy("toy-cloud"),
    named_toy("toy-device"),
    ToyModel(toy_pieces(order=1), seed=9, noise=0.1, sharpness=3.0),
]
"""A drafter that is always right, one that seldom is, one in between."""


def answers(
    options: CoupledOptions, sampling: SamplingParams, seed: int, tokens: int, drafter: int, **link: Any
) -> tuple[Result, Result]:
    """Of `coupled`, and of `cloud`."""
    ours = replace(request("coupled", tokens=tokens, seed=seed), options=options, sampling=sampling)
    theirs = replace(ours, method="cloud", options=NoOptions())

    async def test(device: Device, connection: Connection, network: Network) -> tuple[Result, Result]:
        return await device.generate(ours, connection), await device.generate(theirs, connection)

    return broken(test, models=lambda: (DEVICES[drafter], CLOUD), **link)


@pytest.mark.medium
@examples(150)
@given(
    draft_length=st.sampled_from([0, 1, 2, 3, 6, 16]),
    ahead=st.sampled_from([0, 1, 2, 3, 8, 32]),
    sampling=st.sampled_from([SamplingParams(temperature=heat) for heat in (0.0, 0.3, 1.0)]),
    penalties=st.booleans(),
    seed=st.integers(0, 2**64 - 1),
    tokens=st.integers(1, 40),
    drafter=st.sampled_from([0, 1, 2]),
    delays=st.tuples(st.integers(0, 10_000), st.sampled_from([0.0, 0.001, 0.01, 0.1])),
    seconds=st.tuples(st.sampled_from([0.0, 0.001, 0.004, 0.02]), st.sampled_from([0.0, 0.001, 0.03])),
)
@example(3, 16, SamplingParams(temperature=1.0), False, 992, 40, 0, (8457, 0.01), (0.004, 0.03))
def test_the_answer_is_that_of_cloud_whatever_is_late(
    draft_length: int,
    ahead: int,
    sampling: SamplingParams,
    penalties: bool,
    seed: int,
    tokens: int,
    drafter: int,
    delays: tuple[int, float],
    seconds: tuple[float, float],
) -> None:
    sampling = replace(sampling, repetition_penalty=1.3, presence_penalty=0.2) if penalties else sampling
    draft, verify = seconds
    costs = (lambda width, length: draft, lambda width, length: verify)
    options = CoupledOptions(draft_length, ahead)
    ours, theirs = answers(options, sampling, seed, tokens, drafter, delay=random_delay(*delays), costs=costs)
    assert ours.token_ids == theirs.token_ids
    assert ours.finish_reason == theirs.finish_reason


def test_drafting_ahead_saves_time_and_no_tokens_cross_twice() -> None:
    """A drafter that is always right, 40 ms a round trip, 33 ms a pass: with enough drafts ahead the cloud never waits."""
    endless = replace(PLAIN, logit_bias=tuple((end, -1000.0) for end in CLOUD.vocabulary.ends))
    whole = {ahead: answers(CoupledOptions(3, ahead), endless, 992, 40, 0)[0] for ahead in (0, 3, 16)}
    seconds = [result.answer.seconds for result in whole.values()]
    assert seconds[0] > 1.1 * seconds[1] > 1.3 * seconds[2]
    for result in whole.values():
        assert result.tokens == 40
        assert result.answer.exchanged.drafted <= 40 + 16
        assert result.answer.kinds["correction"] == 0

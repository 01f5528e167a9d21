"""A stream is exact: the joint distribution of its tokens, summed over every branch of both halves' real code."""

from collections.abc import Sequence

import pytest

from antiphon.config import SamplingParams
from antiphon.core.stream import AUTO, LOCKSTEP
from antiphon.methods.speculative.coupled import COUPLED
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.methods.speculative.stream.cloud import CoupledCloud
from antiphon.methods.verifier import Targets
from antiphon.testing import assert_exact
from antiphon.testing.distributions import LARGE, SHARED, SMALL, Pair, distance, target_distribution
from methods.speculative.stream.timed import Times, timed_distribution

PATIENCES = [AUTO, 0.0, 20.0, LOCKSTEP]
NARROW = SamplingParams(temperature=1.0, top_k=2)
PLAIN = SamplingParams(temperature=1.0)

CLOCKS = {
    "near": Times(way=0.0),
    "between": Times(way=0.01),
    "far": Times(way=0.2),
    "slow to draft": Times(way=0.005, draft=0.05),
    "each token a pass": Times(way=0.001, further=0.03),
}
"""Drafts come in time, some do, none does; they take longer than the cloud's tokens; they do not pay."""


@pytest.mark.core(2)
@pytest.mark.parametrize("draft_length", [1, 2])
@pytest.mark.parametrize("patience", PATIENCES)
def test_it_is_exact_also_over_links_that_break(patience: float, draft_length: int) -> None:
    """Both vocabularies, every sampling; what was drafted when the link broke is sent again."""
    assert_exact(COUPLED, CoupledOptions(draft_length, 2, patience), cuts=1)


@pytest.mark.medium
@pytest.mark.parametrize("patience", PATIENCES)
@pytest.mark.parametrize("ahead", [-1, 0])
def test_it_is_exact_with_two_cuts_and_drafts_without_end(patience: float, ahead: int) -> None:
    assert_exact(COUPLED, CoupledOptions(0, ahead, patience), cuts=2)


def apart(pieces: tuple[Sequence[bytes], Sequence[bytes]], options: CoupledOptions, tokens: int, times: Times) -> float:
    """On a clock: the largest difference of a probability from the target's."""
    pair, sampling = Pair(*pieces, seed=6), NARROW if tokens > 3 else PLAIN
    found = timed_distribution(pair, COUPLED, options, sampling, tokens, times)
    assert sum(found.values()) == pytest.approx(1, abs=1e-12)
    return distance(found, target_distribution(pair, sampling, tokens))


@pytest.mark.core(6)
@pytest.mark.parametrize("patience", PATIENCES)
@pytest.mark.parametrize("times", CLOCKS.values(), ids=CLOCKS)
def test_four_tokens_on_a_clock(times: Times, patience: float) -> None:
    assert apart((SHARED, SHARED), CoupledOptions(2, -1, patience), 4, times) < 1e-12


@pytest.mark.core(2)
@pytest.mark.parametrize("patience", PATIENCES)
@pytest.mark.parametrize("way", [0.0, 0.01, 0.2])
def test_tokens_that_the_device_lacks_on_a_clock(way: float, patience: float) -> None:
    assert apart((SMALL, LARGE), CoupledOptions(0, -1, patience), 3, Times(way=way)) < 1e-12


@pytest.mark.core(1)
@pytest.mark.parametrize("objective", ["cloud", "data", "battery"])
def test_every_objective_is_exact(objective: str) -> None:
    for way in (0.0, 0.01):
        assert apart((SHARED, SHARED), CoupledOptions(2, -1, AUTO, objective), 4, Times(way=way)) < 1e-12


@pytest.mark.parametrize("patience", [AUTO, 0.0])
def test_a_cloud_that_takes_a_draft_at_its_word_is_seen(patience: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two drafts the first is taken as it is: the classic bug, in a stream and on a clock."""
    plain = CoupledCloud._winners

    def trusting(self: CoupledCloud, targets: Targets, drafts: Sequence[int]) -> list[int]:
        found = plain(self, targets, drafts)
        if not drafts or found[0] == drafts[0] or self.side.transcript.is_end(drafts[0]):
            return found
        race = self.side.chance.race(self.side.transcript.position + 1, self.side.common.cloud_ids)
        return [drafts[0], targets.at(1).winner(race)]

    monkeypatch.setattr(CoupledCloud, "_winners", trusting)
    assert apart((SHARED, SHARED), CoupledOptions(1, -1, patience), 4, CLOCKS["near"]) > 1e-3

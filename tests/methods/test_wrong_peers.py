"""Peers that are wrong without breaking the form: probs of nothing, steps beyond the answer, late words, drafts past an end."""

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
import pytest

from antiphon.core.mixture.scores import ZERO, Report
from antiphon.errors import ProtocolError
from antiphon.methods import WITH_DOCUMENTS
from antiphon.methods.base import Transcript
from antiphon.methods.effects import Half, Kind, Send
from antiphon.methods.mixture.cloud import MixtureCloud
from antiphon.methods.mixture.cloud_stream import CloudStream
from antiphon.methods.mixture.options import LONGEST_WAIT, MixtureOptions
from antiphon.wire import messages as m
from antiphon.wire.scores import ScoreCodec
from support.mixtures import answer, question, require_true, require_whole, world

DENSE = ["dragon", "drdg-tw", "concord-nocomm", "drdg-sw"]


@pytest.fixture
def losses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Why clouds were given up."""
    found: list[str] = []
    plain = CloudStream.lose

    def lose(self: CloudStream, error: Exception) -> None:
        found.append(f"{type(error).__name__}: {error}")
        plain(self, error)

    monkeypatch.setattr(CloudStream, "lose", lose)
    return found


def spoilt(name: str, which: str, after: int) -> type:
    """A cloud half whose scores, after so many steps, are all 0, or 0 for its draft."""

    class Spoilt(WITH_DOCUMENTS[name].cloud):  # type: ignore[misc,name-defined]
        told = 0

        def _evidence(self, scores: Any, draft: int) -> bytes:
            self.told += 1
            codes = scores.codes.copy()
            if self.told > after:
                codes[slice(None) if which == "all" else draft] = ZERO
            return self._codec.everything(codes, draft)

    return Spoilt


@pytest.mark.core(17)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.parametrize("which", ["all", "draft"])
@pytest.mark.parametrize("name", DENSE)
def test_scores_of_no_distribution_lose_the_cloud_and_not_the_answer(
    name: str, which: str, after: int, temperature: float, losses: list[str]
) -> None:
    there = world(1, masses=(0.5, 0.5), end=-99.0, halves={0: {name: spoilt(name, which, after)}})
    told = answer(there, question(name, temperature=temperature, tokens=12))
    require_whole(there, question(name, tokens=12), told)
    sentence = "all of them are 0" if which == "all" else "the draft has probability 0, so it cannot have been drawn"
    assert losses
    assert losses[0].startswith("ProtocolError")
    assert sentence in losses[0]
    assert told.kinds[-1] is Kind.LOCAL
    assert told.seconds < LONGEST_WAIT


@pytest.mark.parametrize("name", ["concord", "concord-nosystem"])
def test_all_scores_that_are_of_no_distribution(name: str, losses: list[str]) -> None:
    class Nothing(MixtureCloud):
        def _answer(self, ask: m.Ask) -> Generator[Any, Any, None]:
            codes = np.full(self._codec._size, ZERO, dtype="<u2")
            yield Send(m.Supplement(ask.epoch, ask.step, self._codec.everything(codes)))

    there = world(4, halves={0: {name: Nothing}})
    request = question(name, tokens=12, first=1, questions=0, chunks=0)
    told = answer(there, request)
    require_true(there, request, told)
    assert losses[0] == "ProtocolError: the scores are of no distribution: all of them are 0"


class Late(MixtureCloud):
    """Healthy, but that it leaves questions unanswered: those of these numbers."""

    unanswered: Sequence[int] = (0,)
    asked = 0

    def _answer(self, ask: m.Ask) -> Generator[Any, Any, None]:
        self.asked += 1
        if self.asked - 1 not in self.unanswered:
            yield from super()._answer(ask)


class OftenLate(Late):
    unanswered = range(0, 100, 2)


@pytest.mark.medium
@pytest.mark.parametrize("half", [Late, OftenLate])
@pytest.mark.parametrize("realign", ["soft", "hard"])
@pytest.mark.parametrize("clouds", [1, 2])
def test_a_late_answer_loses_no_healthy_cloud(clouds: int, realign: str, half: type, losses: list[str]) -> None:
    """Evidence of later steps is there when an answer is late: the line begins anew at the step, not behind them."""
    for seed in range(6):
        there = world(seed, clouds=clouds, masses=(0.8,) * (clouds + 1), halves={0: {"concord": half}})
        given = {"first": 1, "ids_per_question": 1, "questions": 4, "timeout": 0.2, "delta": 3.0 if clouds == 1 else 0.0}
        request = question("concord", tokens=32, realign=realign, **given)
        require_true(there, request, answer(there, request))
    assert losses == []


class HeldBack(MixtureCloud):
    """Every second reply comes when the next question is there already, before its own."""

    held: Any = None
    turn = 0

    def _answer(self, ask: m.Ask) -> Generator[Any, Any, None]:
        for effect in super()._answer(ask):
            self.turn += 1
            if self.turn % 2:
                self.held = effect
                return
            if self.held is not None:
                yield self.held
                self.held = None
            yield effect


@pytest.mark.medium
def test_a_reply_to_a_question_that_is_no_longer_open_is_not_taken(losses: list[str]) -> None:
    for seed in range(20):
        there = world(seed, masses=(0.5, 1.0), agree=0.9, halves={0: {"concord": HeldBack}})
        request = question(
            "concord", tokens=32, first=1, ids_per_question=1, questions=2, timeout=0.2, debt_threshold=9.0, max_debt=9.0
        )
        require_true(there, request, answer(there, request))
    assert losses == []


CODEC = ScoreCodec(100, 7)


REPORTS = [CODEC.report(Report({token: 100}, 300)) for token in range(4)]


def line(tokens: int = 8, **options: Any) -> tuple[CloudStream, Transcript]:
    transcript = Transcript(frozenset({99}), tokens)
    found = CloudStream(0, transcript, CODEC, MixtureOptions(**options), dense=False, interval=4)
    found.take(m.Retrieved(2, 0.5, 0), 0.0)
    return found, transcript


def test_which_replies_are_taken() -> None:
    found, _ = line()
    found.ask(1, b"")
    found.take(m.Supplement(0, 0, REPORTS[0]), 0.0)  # of a step before
    assert found.supplement is None
    found.take(m.Supplement(0, 1, REPORTS[1]), 0.0)
    assert found.supplement == m.Supplement(0, 1, REPORTS[1])
    found.take(m.Supplement(0, 1, REPORTS[2]), 0.0)  # a second word on the same question
    assert found.supplement == m.Supplement(0, 1, REPORTS[1])
    found.ask(2, b"")
    found.timed_out()
    found.take(m.Supplement(0, 2, REPORTS[2]), 0.0)  # too late
    assert found.supplement is None
    for place in ((0, 3), (1, 0)):
        with pytest.raises(ProtocolError, match="scores of another step came"):
            found.take(m.Supplement(*place, REPORTS[3]), 0.0)


@pytest.mark.parametrize("realign", ["soft", "hard"])
@pytest.mark.parametrize("ahead", range(5))
def test_a_line_begins_anew_where_the_answer_is(realign: str, ahead: int) -> None:
    """However much evidence of later steps is there."""
    found, transcript = line(realign=realign)
    for step in range(2 + ahead):
        found.take(m.Evidence(0, step, REPORTS[step % 4]), 0.0)
    for step in range(2):
        transcript.commit(step)
        found.committed(step, step)
    found.timed_out()
    transcript.commit(5)
    found.committed(5, 2)
    if not found.strays:
        assert (realign, ahead) == ("soft", 0)
        return
    assert found.realign(0.0) == m.Realign(1, 2, 1, CODEC.tokens([5]))


def test_evidence_beyond_the_answer_s_longest_is_refused() -> None:
    found, _ = line(tokens=3)
    for step in range(3):
        found.take(m.Evidence(0, step, REPORTS[step]), 0.0)
    with pytest.raises(ProtocolError, match="evidence of step 3 came for an answer of 3 tokens"):
        found.take(m.Evidence(0, 3, REPORTS[3]), 0.0)


@pytest.mark.parametrize("name", ["concord", "dragon", "concord-nosystem"])
def test_a_cloud_that_goes_on_beyond_the_answer(name: str, losses: list[str]) -> None:
    class Beyond(WITH_DOCUMENTS[name].cloud):  # type: ignore[misc,name-defined]
        def run(self) -> Half:
            self._limit += 8
            return super().run()

    there = world(1, masses=(0.5, 0.5), end=-99.0, halves={0: {name: Beyond}})
    told = answer(there, question(name, tokens=12))
    require_whole(there, question(name, tokens=12), told)
    assert all("for an answer of 12 tokens" in loss for loss in losses)

"""Peers that are wrong without breaking the form: probs of nothing, steps beyond the answer, late words, drafts past an end."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace as replace_fields

from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.core.distributions import Logits
from antiphon.core.mixture.scores import ZERO, Report
from antiphon.core.resampling import quantise_lumped
from antiphon.core.rounding import Quantise, exactly, quantise_ratios, ratios_of
from antiphon.errors import AntiphonError, ModelError, ProtocolError
from antiphon.methods import WITH_DOCUMENTS, WITHOUT_DOCUMENTS
from antiphon.methods.base import DeviceSide, Method, Transcript
from antiphon.methods.drafter import Drafted
from antiphon.methods.effects import Half, Kind, Send
from antiphon.methods.mixture.cloud import MixtureCloud
from antiphon.methods.mixture.cloud_stream import CloudStream
from antiphon.methods.mixture.options import LONGEST_WAIT, MixtureOptions
from antiphon.methods.probe import ProbeDevice, Question
from antiphon.models.toy import ToyModel
from antiphon.testing.distributions import LARGE, SHARED, SMALL, Pair, distance, method_distribution, target_distribution
from antiphon.testing.lockstep import run_pair
from antiphon.vocabulary import common_vocabulary
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


# Scores that are of no distribution: all of them 0, or those of the draft itself.


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


# Late words, and steps beyond the answer.


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


# A device that drafts on past an end of sequence (ours does not).


def past_the_end(method: Method) -> Method:
    class Past(method.device):  # type: ignore[name-defined,misc]
        def drafts(self, most: int) -> Generator[Any, Any, list[Drafted]]:
            drafts: list[Drafted] = []
            while len(drafts) < most and self.lengths.more(drafts):
                drafts.append((yield from self.draft(drafts)))
            Past.behind += sum(self.side.transcript.is_end(draft.number) for draft in drafts[:-1])
            return drafts

        def _may_extend(self) -> bool:
            may = len(self._line) < self.side.transcript.remaining - 1
            Past.behind += may and any(self.side.transcript.is_end(draft.number) for draft in self._line)
            return may

    Past.behind = 0
    return replace(method, device=Past)


FEW = {"candidates": 1, "iterations": 1, "truncate": "off", "precision": 32}
PLAIN = SamplingParams(temperature=1.0)


def rounded(name: str, pair: Pair) -> Quantise:
    if name == "dssd":
        return quantise_ratios(ratios_of(32))
    return quantise_lumped(pair.common.size, ratios_of(32)) if name.startswith("xcosd") else exactly


@pytest.mark.core(2)
@pytest.mark.parametrize("pieces", [(SHARED, SHARED), (SMALL, LARGE)], ids=["shared", "different"])
@pytest.mark.parametrize("name", ["dsd", "tslt", "dssd", "xcosd", "xcosd-e", "coupled"])
def test_what_follows_an_accepted_end_is_dropped(name: str, pieces: tuple[Any, Any]) -> None:
    """The joint distribution is the target's; no half commits anything behind an end (`Transcript` would raise)."""
    pair, method = Pair(*pieces, seed=3), past_the_end(WITHOUT_DOCUMENTS[name])
    options = method.options_from({**FEW, "draft_length": 2})
    tokens = 2 if name == "xcosd-e" else 3
    distribution = method_distribution(pair, method, options, PLAIN, tokens)
    assert distance(distribution, target_distribution(pair, PLAIN, tokens, rounded(name, pair))) < 1e-12
    assert method.device.behind > 0 or tokens < 3  # type: ignore[attr-defined]
    assert any(numbers[-1] in pair.common.ends and len(numbers) < tokens for numbers in distribution)


# A device model that rules out everything that both ends have.


class Blind(ToyModel):
    """Of the common tokens none has a finite logit, in some places."""

    places = 2

    def logits(self, tokens: Sequence[int]) -> Logits:
        found = super().logits(tokens).copy()
        if len(tokens) % self.places == 0:
            found[:-1] = -np.inf
        return found


class AlwaysBlind(Blind):
    places = 1


def blind_pair(kind: type[ToyModel]) -> Pair:
    pair = Pair(SMALL, LARGE, seed=3)
    pair.device = kind((*SMALL, b"x"), seed=4, sharpness=1.0)
    pair.common = common_vocabulary(pair.device.vocabulary, pair.cloud.vocabulary)
    assert pair.common.size == len(SMALL)
    return pair


@pytest.mark.core(15)
@pytest.mark.parametrize(
    "sampling", [PLAIN, SamplingParams(temperature=0.0), SamplingParams(temperature=0.8, top_k=2)], ids=str
)
@pytest.mark.parametrize("kind", [Blind, AlwaysBlind])
@pytest.mark.parametrize("name", ["dsd", "tslt", "tslt-tree", "dssd", "xcosd", "xcosd-e", "coupled", "coupled-tree"])
def test_a_device_without_a_finite_logit_costs_acceptance_only(
    name: str, kind: type[ToyModel], sampling: SamplingParams
) -> None:
    pair, method = blind_pair(kind), WITHOUT_DOCUMENTS[name]
    distribution = method_distribution(
        pair, method, method.options_from({**FEW, "draft_length": 1, "expansion": "2"}), sampling, 2
    )
    assert distance(distribution, target_distribution(pair, sampling, 2, rounded(name, pair))) < 1e-12


@pytest.mark.medium
@pytest.mark.parametrize("name", ["u-hlm", "cu-hlm", "gr", "tr"])
def test_the_lossy_ones_go_on_too(name: str) -> None:
    pair, method = blind_pair(AlwaysBlind), WITHOUT_DOCUMENTS[name]
    options = method.options_from({**FEW, "draft_length": 1, "draws": 2})
    assert sum(method_distribution(pair, method, options, PLAIN, 2).values()) == pytest.approx(1)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_damaged_model_is_still_one(value: float) -> None:
    """NaN or infinity, or nothing finite at all: no answer is written with that."""

    class Damaged(ToyModel):
        def logits(self, tokens: Sequence[int]) -> Logits:
            return np.full_like(super().logits(tokens), value)

    pair, method = blind_pair(Damaged), WITHOUT_DOCUMENTS["dssd"]
    with pytest.raises(ModelError, match="gave logits that are not finite"):
        method_distribution(pair, method, method.options_from({}), PLAIN, 2)


# Costs that are no numbers.


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 1e300])
@pytest.mark.parametrize("field", ["compute_ms", "rounding"])
def test_a_last_word_with_costs_that_cannot_be_is_no_message(field: str, value: float) -> None:
    costs = {"compute_ms": 1.0, "rounding": 0.0, field: value}
    frame = m.encode(m.Envelope(1, m.Closed("end", 1, costs["compute_ms"], False, costs["rounding"])))
    with pytest.raises(AntiphonError, match="not a valid message"):
        m.decode(frame)


SEEN = m.Probed((0.5, 0.25), (1, 2), (0.5, 0.25), (0.25, 0.5), True, True, 0.125, 0.5, 0.5)


@pytest.mark.parametrize("value", [float("nan"), -0.5])
@pytest.mark.parametrize("field", ["shares", "plain", "again", "shift", "moved", "noise"])
def test_readings_that_cannot_be_are_no_message(field: str, value: float) -> None:
    told = (0.5, value) if field in ("shares", "plain", "again") else value
    with pytest.raises(ProtocolError, match="not a valid message"):
        m.decode(m.encode(m.Envelope(1, replace_fields(SEEN, **{field: told}))))
    assert m.decode(m.encode(m.Envelope(1, replace_fields(SEEN, shift=float("inf"))))).message.shift == float("inf")


@pytest.mark.parametrize("shares", [(), (0.5,), (0.5,) * 3])
def test_readings_of_other_positions_than_were_asked_for_are_refused(shares: tuple[float, ...]) -> None:
    """None of them has no mean."""
    common = Pair(SMALL, LARGE).common
    half = ProbeDevice(DeviceSide(common, Transcript(common.ends, 1), PhiloxChance(0)), Question((1,), (0, 0), 1))
    asking = half.run()
    next(asking)
    asking.send(None)
    with pytest.raises(ProtocolError, match=f"asked about 2 positions and told of {len(shares)}"):
        asking.send(replace_fields(SEEN, shares=shares))


@pytest.mark.core(1)
@pytest.mark.parametrize("name", ["dssd", "xcosd", "xcosd-e"])
def test_drafts_behind_the_last_token_of_an_answer_are_refused(name: str) -> None:
    """The token that the device drew is the last one, and it comes with drafts."""

    class Behind(WITHOUT_DOCUMENTS[name].device):  # type: ignore[misc,name-defined]
        def _send(self, drafts: Any) -> Send:
            owed = bool(self.owed) and self.side.transcript.finish is not None
            return super()._send(kept if owed else drafts)

        def _committed(self, verdict: Any, drafts: Any) -> Any:
            kept[:] = drafts[:1] or kept
            return super()._committed(verdict, drafts)

    kept: list[Drafted] = []
    refused: set[str] = set()
    for seed in range(120):
        pair, options = Pair(SHARED, SHARED, seed=3), WITHOUT_DOCUMENTS[name].options_from({**FEW, "draft_length": 1})
        device, cloud = pair.sides(4, PLAIN, PhiloxChance(seed))
        try:
            run_pair(Behind(device, options).run(), WITHOUT_DOCUMENTS[name].cloud(cloud, options).run())  # type: ignore[misc]
        except ProtocolError as error:
            refused.add(str(error))
    assert refused == {"at most 0 drafts fit here, but 1 came"}

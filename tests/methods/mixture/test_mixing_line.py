"""One cloud's stream as the device follows it: its order, its epochs, and how long its evidence takes."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.mixture.scores import Report
from antiphon.errors import LinkError, ProtocolError
from antiphon.methods.base import Transcript
from antiphon.methods.mixture.cloud_stream import UNANSWERED, CloudStream
from antiphon.methods.mixture.options import MixtureOptions
from antiphon.methods.mixture.response_time import UNKNOWN, ResponseTime
from antiphon.wire.messages import Evidence, Progress, Realign, Retrieved
from antiphon.wire.scores import ScoreCodec
from support.examples import examples

CODEC = ScoreCodec(100, 7)
END = 99


def line(*, interval: int = 4, **options: Any) -> tuple[CloudStream, Transcript]:
    transcript = Transcript(frozenset({END}), 64)
    found = CloudStream(0, transcript, CODEC, MixtureOptions(**options), dense=False, interval=interval)
    found.take(Retrieved(2, 0.5, 0), 0.0)
    return found, transcript


def evidence(step: int, draft: int, epoch: int = 0) -> Evidence:
    return Evidence(epoch, step, CODEC.report(Report({draft: 100, (draft + 1) % 100: 200}, 300)))


def commit(found: CloudStream, transcript: Transcript, token: int) -> None:
    step = transcript.position
    transcript.commit(token)
    found.committed(token, step)


def test_evidence_of_the_steps_to_come_is_kept() -> None:
    found, transcript = line()
    for step in range(3):
        found.take(evidence(step, step), 0.0)
    assert [found.proof(step).draft for step in range(3)] == [0, 1, 2]
    assert found.proof(3) is None
    for token in range(3):
        commit(found, transcript, token)
    assert [found.proof(step) for step in range(3)] == [None] * 3
    assert not found.strays


def test_a_token_that_is_not_the_draft_begins_an_epoch() -> None:
    found, transcript = line()
    for step in range(3):
        found.take(evidence(step, step), 0.0)
    commit(found, transcript, 0)
    commit(found, transcript, 7)
    assert found.strays
    assert found.realign(1.0) == Realign(1, 1, 1, CODEC.tokens([7]))
    assert (found.strays, found.proof(2)) == (False, None)
    found.take(evidence(3, 3), 1.1)  # was on its way
    assert found.proof(3) is None
    found.take(evidence(2, 5, epoch=1), 1.2)
    assert found.proof(2).draft == 5


def test_late_evidence_is_compared_with_what_was_committed() -> None:
    found, transcript = line()
    for token in (0, 1, 7, 8):
        commit(found, transcript, token)
    found.take(evidence(0, 0), 0.0)
    found.take(evidence(1, 1), 0.0)
    assert not found.strays
    found.take(evidence(2, 2), 0.0)
    assert found.strays
    found.take(evidence(3, 3), 0.0)  # of a line that is not the answer any more
    assert found.realign(0.0) == Realign(1, 2, 2, CODEC.tokens([7, 8]))


@pytest.mark.parametrize("step", [1, 5, 2**31])
def test_evidence_out_of_order_is_refused(step: int) -> None:
    found, _ = line()
    with pytest.raises(ProtocolError, match=f"evidence of step {step} came where 0 was due"):
        found.take(evidence(step, 0), 0.0)


@pytest.mark.parametrize("weight", [math.nan, math.inf])
def test_a_weight_that_is_none(weight: float) -> None:
    found = CloudStream(0, Transcript(frozenset(), 4), CODEC, MixtureOptions(), dense=False, interval=1)
    with pytest.raises(ProtocolError):
        found.take(Retrieved(1, weight, 0), 0.0)
    assert not found.takes_part


def test_a_lost_cloud_has_no_evidence() -> None:
    found, _ = line()
    found.take(evidence(0, 0), 0.0)
    found.lose(LinkError("gone"))
    assert (found.proof(0), found.takes_part) == (None, False)


def test_progress_is_due_every_so_many_tokens_that_both_have() -> None:
    found, transcript = line(interval=3)
    told = []
    for step in range(12):
        if step != 7:
            found.take(evidence(step if step < 7 else step - 1, step if step < 7 else step - 1), 0.0)
        commit(found, transcript, step)
        told.append(found.progress())
    assert [progress.step for progress in told if progress] == [3, 6, 9]
    assert all(progress is None or isinstance(progress, Progress) for progress in told)


@pytest.mark.parametrize(("realign", "strays"), [("soft", False), ("hard", True)])
def test_what_a_timeout_invalidates(realign: str, strays: bool) -> None:
    found, transcript = line(realign=realign, ahead=4)
    found.timed_out()
    commit(found, transcript, 3)
    assert found.strays == strays
    if strays:
        assert found.realign(0.0) == Realign(1, 0, 1, CODEC.tokens([3]))


def test_soft_realigns_a_cloud_that_is_more_than_w_behind() -> None:
    found, transcript = line(realign="soft", ahead=4)
    places = []
    for step in range(8):
        found.timed_out()
        commit(found, transcript, step)
        places.append(found.strays)
    assert places == [False] * 5 + [True] * 3


def test_its_own_end_is_remembered_until_it_is_realigned() -> None:
    found, transcript = line()
    found.take(evidence(0, END), 0.0)
    assert found.end_token == END
    commit(found, transcript, 5)
    found.realign(0.0)
    assert found.end_token is None


def test_a_cloud_that_says_nothing_is_not_told_for_ever() -> None:
    """After so many epochs it is left alone until evidence of one of them comes; then it is told all that it lacks."""
    found, transcript = line(realign="hard")
    for step in range(UNANSWERED + 5):
        found.timed_out()
        commit(found, transcript, step)
        assert found.strays == (step < UNANSWERED)
        if found.strays:
            assert found.realign(0.0).count == 1
    found.take(evidence(0, 0, epoch=UNANSWERED + 1), 0.0)  # of an epoch that never was
    assert not found.strays
    found.take(evidence(4, 4, epoch=4), 0.0)
    assert (found.strays, found.proof(4)) == (True, None)
    told = found.realign(0.0)
    assert (told.epoch, told.step, told.count) == (UNANSWERED + 1, UNANSWERED, 5)


def test_debt_by_what_came_of_waiting() -> None:
    found, transcript = line(debt_threshold=2.0, max_debt=2.0)
    found.timed_out()
    commit(found, transcript, 0)
    assert found.debt.owed == 1
    found.take(evidence(0, 0), 0.0)
    found.take(evidence(1, 1), 0.0)
    found.decided(1, 1)
    assert found.debt.owed == 0
    commit(found, transcript, 1)
    found.take(evidence(2, 2), 0.0)
    found.decided(9, 2)
    assert found.debt.owed == 1


# How long evidence takes


def test_before_anything_is_known_a_second() -> None:
    assert ResponseTime().timeout == UNKNOWN == 1.0


@examples(40)
@given(st.floats(0.001, 5.0), st.integers(1, 30))
def test_what_always_takes_as_long_is_waited_for_a_little_longer(seconds: float, times: int) -> None:
    arrivals = ResponseTime()
    for number in range(times):
        arrivals.asked(10.0 * number)
        arrivals.arrived(10.0 * number + seconds)
        arrivals.arrived(10.0 * number + seconds + 1)  # what follows in the same epoch was not waited for
    assert arrivals.timeout == pytest.approx(1.1 * seconds, rel=1e-3)


def test_three_deviations_are_waited_for() -> None:
    arrivals = ResponseTime()
    for number in range(400):
        arrivals.asked(10.0 * number)
        arrivals.arrived(10.0 * number + (0.1 if number % 2 else 0.3))
    assert arrivals.timeout == pytest.approx(0.2 * 1.1 + 3 * 0.1, abs=0.03)


def test_what_was_long_ago_counts_no_more() -> None:
    arrivals = ResponseTime()
    for seconds in [2.0] * 10 + [0.1] * 200:
        arrivals.asked(0.0)
        arrivals.arrived(seconds)
    assert arrivals.timeout == pytest.approx(0.11, abs=0.02)


def test_a_fixed_time_is_what_it_says() -> None:
    arrivals = ResponseTime(0.25)
    arrivals.asked(0.0)
    arrivals.arrived(3.0)
    assert arrivals.timeout == 0.25


def test_evidence_that_nobody_asked_for_anew_tells_nothing() -> None:
    arrivals = ResponseTime()
    arrivals.arrived(3.0)
    assert arrivals.timeout == UNKNOWN

"""The cloud's half in a stream: when it waits and for how long, how far it runs, and what it takes of what comes."""

from collections.abc import Iterable
from typing import Any

import pytest

from antiphon.core.pass_costs import PassCosts
from antiphon.core.stream import AUTO, LOCKSTEP, RUN_AHEAD
from antiphon.errors import ProtocolError
from antiphon.wire.messages import Draft, Message, Progress, Retry
from methods.speculative.ahead import Fed

LONG = "a" * 300

STREAMS = [0.0, 20.0, AUTO]


def streaming(text: str = LONG, patience: float = 0.0, tokens: int = 250, **more: Any) -> Fed:
    """Three drafts a pass at most."""
    return Fed.of(text, 3, 3, tokens, patience, **more)


def go_on(fed: Fed, passes: int = 1) -> None:
    """So many passes on what has come."""
    for _ in range(passes):
        fed.give(None)


def line(fed: Fed, text: str, epoch: int = 0) -> Draft:
    return fed.draft(epoch, ["ab.".index(letter) for letter in text])


def costing(*seconds: float) -> PassCosts:
    """What passes of one token, of two and so on take."""
    costs = PassCosts()
    for width, one in enumerate(seconds, 1):
        costs.observe(width, one)
    return costs


# How far it runs.


@pytest.mark.parametrize("patience", STREAMS)
def test_a_device_that_never_speaks_is_not_waited_for_until_the_answer_is_far_ahead(patience: float) -> None:
    fed = streaming(patience=patience)
    for passes in range(RUN_AHEAD):
        assert fed.within is not None
        assert fed.within <= max(0.0, patience) / 1000
        assert len(fed.text) == passes
        go_on(fed)
    assert fed.waits
    assert fed.text == "a" * RUN_AHEAD
    assert fed.told == [(0, 0)] * RUN_AHEAD


def test_at_patience_0_it_never_waits() -> None:
    """Whatever has come, or how often it stood, or what the cloud's passes cost."""
    fed = streaming(costs=costing(0.03, 0.03, 0.03, 0.03))
    for epoch in range(40):
        assert fed.within == 0.0
        if epoch % 3 == 0:
            fed.give(line(fed, "aaa", epoch))
            assert fed.within == 0.0
        fed.time += 0.03
        go_on(fed)
    assert max(accepted for _, accepted in fed.told) == 3


def test_progress_lets_it_go_on() -> None:
    fed = streaming()
    go_on(fed, RUN_AHEAD)
    fed.give(Progress(10))
    assert not fed.waits
    while not fed.waits:
        go_on(fed)
    assert len(fed.text) == RUN_AHEAD + 10
    fed.give(Progress(3))
    assert fed.waits, "it knows of more"


def test_an_epoch_tells_what_the_device_has() -> None:
    fed = streaming()
    go_on(fed, RUN_AHEAD)
    fed.give(line(fed, "", epoch=5))
    while not fed.waits:
        go_on(fed)
    assert len(fed.text) == RUN_AHEAD + 5


@pytest.mark.parametrize("patience", STREAMS)
def test_progress_beyond_the_answer_is_refused(patience: float) -> None:
    fed = streaming(patience=patience)
    go_on(fed, 3)
    with pytest.raises(ProtocolError, match="the answer has 3 tokens, not 4"):
        fed.give(Progress(4))
    assert fed.text == "aaa"


# How long it waits.


def test_patience_is_counted_from_the_last_verdict() -> None:
    fed = streaming(patience=20.0)
    go_on(fed)
    assert fed.within == pytest.approx(0.02)
    fed.time += 0.015
    fed.give(line(fed, "", epoch=0))
    fed.give(line(fed, "b", epoch=0))
    assert fed.within == pytest.approx(0.005), "what comes too late to be of use is no reason to begin anew"
    fed.time += 1.0
    fed.give(line(fed, "b", epoch=0))
    assert fed.within == 0.0


@pytest.mark.parametrize("patience", [20.0, AUTO])
def test_a_device_that_says_that_none_is_coming_is_not_waited_for(patience: float) -> None:
    """Until it drafts again. A cloud may ask for patience itself: `least_patience`."""
    fed = streaming(patience=patience, least_patience=0.02)
    assert fed.within == 0.0, "the first token is never waited for"
    go_on(fed)
    assert fed.within == pytest.approx(0.02)
    fed.give(line(fed, ""))
    assert fed.within == 0.0
    for _ in range(5):
        go_on(fed)
        assert fed.within == 0.0
    fed.give(line(fed, "b", epoch=6))
    go_on(fed)
    assert fed.within is not None
    assert fed.within > 0.0


def test_what_the_cloud_asks_for_is_waited_for_whatever_the_device_wants() -> None:
    for patience, waited in ((0.0, 0.03), (50.0, 0.05), (AUTO, 0.03)):
        fed = streaming(patience=patience, least_patience=0.03)
        go_on(fed)
        assert fed.within == pytest.approx(waited)


@pytest.mark.parametrize("patience", [20.0, AUTO])
def test_it_does_not_wait_for_more_than_it_wants(patience: float) -> None:
    fed = streaming(patience=patience, least_patience=0.02)
    fed.give(line(fed, "a"))
    assert fed.within == 0.0


# What it takes.


def taken(fed: Fed, messages: Iterable[Message]) -> list[int]:
    """Drafts of the pass behind each message that stood; 3 lines that do not change how far the device is known to be."""
    for message in messages:
        fed.give(message)
        go_on(fed)
    return [accepted for _, accepted in fed.told]


def test_drafts_in_time_are_taken_and_the_others_are_compared() -> None:
    fed = streaming("aabaabaab")
    assert taken(fed, [line(fed, "aab")]) == [3]
    go_on(fed)
    assert (fed.text, fed.told) == ("aabaa", [(1, 3), (1, 0)])
    # The first place of the line is past, and it stands there.
    assert taken(fed, [line(fed, "aba", epoch=1)])[-1] == 2
    assert fed.text == "aabaabaab"[: len(fed.text)]


def test_drafts_of_a_line_that_fell_are_dropped_however_well_they_fit() -> None:
    fed = streaming("aabaaaaaa")
    assert taken(fed, [line(fed, "aaa"), line(fed, "aaa"), line(fed, "aaa")]) == [2, 0, 0]
    assert taken(fed, [line(fed, "aaa", epoch=2)])[-1] == 2
    assert fed.text == "aabaaaaaa"[: len(fed.text)]


def test_a_line_that_came_late_and_was_wrong_is_dropped_however_well_its_rest_fits() -> None:
    fed = streaming("aabaaaaaa")
    go_on(fed, 2)
    assert taken(fed, [line(fed, "bab"), line(fed, "aa")]) == [0, 0, 0, 0]
    assert fed.text == "aaba"


def test_it_takes_what_pays_in_the_cost_of_its_passes() -> None:
    """All where a wide pass costs the same; none where each token costs a pass; where nothing is known it tries."""
    for costs, accepted in ((costing(1, 1, 1, 1), 3), (costing(1, 2, 3, 4), 0), (costing(1), 3), (costing(), 3)):
        fed = streaming(costs=costs)
        assert taken(fed, [line(fed, "aaa")]) == [accepted]
        go_on(fed, 2)
        assert fed.text == "a" * len(fed.text)
        assert fed.unwanted == (accepted == 0)


def test_where_a_pass_of_one_was_never_measured_no_draft_is_unwanted() -> None:
    """What it costs is a guess then, and a low one."""
    costs = PassCosts()
    costs.observe(4, 1.0)
    fed = streaming(costs=costs)
    fed.give(line(fed, "aab"))
    go_on(fed, 2)
    assert fed.unwanted == 0


def test_it_says_once_a_line_that_drafts_are_unwanted() -> None:
    fed = streaming(costs=costing(1, 2, 3, 4))
    for said in range(1, 4):
        epoch = len(fed.verdicts)
        for _ in range(3):
            fed.give(line(fed, "a", epoch=epoch))
            go_on(fed)
        assert fed.unwanted == said


def test_verdicts_tell_what_was_heard() -> None:
    fed = streaming()
    go_on(fed)
    fed.give(Progress(1))
    fed.give(line(fed, "", epoch=1))
    go_on(fed)
    fed.give(line(fed, "b", epoch=1))
    go_on(fed)
    assert [heard for heard, _ in fed.told] == [0, 2, 3]


# Peers that break the protocol.


@pytest.mark.parametrize("patience", STREAMS)
@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ([(3, "a")], "drafts of epoch 3 came in epoch 0"),
        ([(2, "a"), (1, "a")], "drafts of epoch 1 came in epoch 2"),
        ([(0, "a" * 12)], "at most 11 drafts fit here, but 12 came"),
        ([(2, "a" * 10)], "at most 9 drafts fit here, but 10 came"),
        ([(0, "a" * 6), (0, "a" * 6)], "at most 5 drafts fit here, but 6 came"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_lost(sent: list[tuple[int, str]], sentence: str, patience: float) -> None:
    """Twelve tokens at most, two of which are written."""
    fed = streaming(patience=patience, tokens=12)
    go_on(fed, 2)
    for epoch, text in sent[:-1]:
        fed.give(line(fed, text, epoch))
    with pytest.raises(ProtocolError, match=sentence):
        fed.give(line(fed, sent[-1][1], sent[-1][0]))
    assert fed.text == "aa"


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (Retry(0), "Retry came where drafts were due"),
        (Draft(0, 5, b"\x00"), "the payload is shorter than its message says"),
        (Draft(0, 1, b"\xff"), "the id of draft 1 is 3, but must be below 3"),
        (Draft(0, 2**31, b""), "at most 249 drafts fit here"),
        (Draft(0, 0, b"\x00"), "the payload is longer than its message says"),
    ],
)
def test_garbage_is_refused(message: Message, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        streaming().give(message)


@pytest.mark.parametrize("patience", [*STREAMS, LOCKSTEP])
def test_a_flood_of_drafts_without_drafts_is_one_reason_to_go_on(patience: float) -> None:
    fed = streaming(patience=patience)
    for _ in range(3000):
        fed.give(line(fed, ""))
    assert fed.text == ""
    go_on(fed)
    assert fed.told == [(3000, 0)]
    assert fed.text == "a"

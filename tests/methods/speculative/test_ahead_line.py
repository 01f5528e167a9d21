"""What a device drafts ahead is one line: taken, compared or dropped, and fed to the model once."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from antiphon.core.chance import PhiloxChance
from antiphon.core.stream import AUTO, LOCKSTEP
from antiphon.errors import ProtocolError
from antiphon.methods.speculative.coupled import CoupledDevice
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.methods.speculative.stream.cloud import CoupledCloud
from antiphon.testing.distributions import SHARED, Pair
from antiphon.wire.messages import Draft, Message, Progress, Verdict
from antiphon.wire.packing import Writer
from methods.speculative.ahead import PLAIN, Fed, Running, alike, reference
from support.examples import examples


def test_a_draft_that_is_right_by_accident_is_not_used() -> None:
    """`aab` then `aaa...`: the rest of the line `aaa` fits its places, but it was made for another text."""
    fed = Fed.of("aabaaaaaa")
    fed.send(0, "aaa")
    assert (fed.text, fed.told) == ("aab", [(1, 2)])
    fed.send(0, "aaa")
    assert fed.told == [(1, 2)]
    fed.send(1, "aa")
    assert (fed.text, fed.told) == ("aabaaa", [(1, 2), (3, 2)])


def test_a_draft_that_comes_late_is_compared_with_what_was_committed() -> None:
    right, wrong = Fed.of("aabaaaaaa"), Fed.of("aabaaaaaa")
    for fed in (right, wrong):
        fed.send(0, "aa")
        assert (fed.text, fed.told) == ("aab", [(1, 2)])
    right.send(0, "baa")
    assert (right.text, right.told) == ("aabaaa", [(1, 2), (2, 2)])
    wrong.send(0, "aaa")
    assert (wrong.text, wrong.told) == ("aab", [(1, 2)])


def test_what_was_not_taken_by_a_pass_is_taken_by_the_next() -> None:
    fed = Fed.of("aaaaaba", draft_length=1, ahead=5)
    fed.send(0, "a")
    fed.send(0, "aaaaa")
    assert (fed.text, fed.told) == ("aaaaab", [(1, 1), (2, 1), (2, 1)])


def test_without_drafts_one_token_comes_for_each_time_that_it_is_asked_for() -> None:
    fed = Fed.of("abab")
    for asked in range(3):
        fed.send(asked, "")
    assert (fed.text, fed.told) == ("aba", [(1, 0), (2, 0), (3, 0)])


def test_who_asks_without_having_seen_every_verdict_is_not_answered() -> None:
    fed = Fed.of("abab")
    fed.send(0, "")
    fed.send(0, "")
    assert fed.told == [(1, 0)]


def test_an_end_in_a_line_is_the_end() -> None:
    fed = Fed.of("aa.")
    fed.send(0, "aa.")
    assert fed.finished
    assert (fed.text, fed.told) == ("aa.", [(1, 3)])
    assert fed.verdicts[0].payload == b""


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ([(1, "a")], "drafts of epoch 1 came in epoch 0"),
        ([(0, "ab"), (1, "a"), (0, "a")], "drafts of epoch 0 came in epoch 1"),
        ([(0, "aaaaaaaaaaaa")], "at most 11 drafts fit here, but 12 came"),
        ([(0, "aaa"), (0, "aaa"), (0, "aaa"), (0, "aaa")], "at most 2 drafts fit here, but 3 came"),
    ],
)
def test_what_cannot_be_is_refused(sent: list[tuple[int, str]], sentence: str) -> None:
    """Three a pass, twelve tokens."""
    fed = Fed.of("aaaaaaaaaaaaaaa")
    for epoch, text in sent[:-1]:
        fed.send(epoch, text)
    with pytest.raises(ProtocolError, match=sentence):
        fed.send(*sent[-1])


HEARD = 2**31
"""Stands for the messages that must have been heard."""

FRAMES = st.one_of(
    st.tuples(st.just("genuine"), st.integers(0, 40)),
    st.tuples(st.just("right"), st.integers(0, 5), st.integers(0, 12), st.integers(0, 5)),
    st.tuples(st.just("any"), st.integers(0, 5), st.lists(st.integers(0, 2), max_size=5)),
    st.tuples(st.just("bytes"), st.integers(0, 5), st.integers(0, 8), st.binary(max_size=3)),
    st.tuples(st.just("progress"), st.integers(0, 11)),
)
"""Frames of a real device in any order, pieces of the very answer at any place, any drafts, garbage."""


def genuine(pair: Pair, options: CoupledOptions, chance: PhiloxChance, tokens: int) -> list[Message]:
    """What a real device sends."""
    device, cloud = pair.sides(tokens, PLAIN, chance)
    up: deque[Message] = deque()
    down: deque[Message] = deque()
    sent: list[Message] = []
    halves = [Running(CoupledDevice(device, options).run(), down, up), Running(CoupledCloud(cloud, options).run(), up, down)]
    while not all(half.over for half in halves):
        before = len(up)
        next(half for half in halves if half.able).go_on(late=False)
        sent += list(up)[before:]
    return sent


@pytest.mark.medium
@examples(300)
@given(
    st.integers(0, 50),
    st.sampled_from([0, 1, 3]),
    st.sampled_from([0, 3]),
    st.sampled_from([LOCKSTEP, AUTO, 0.0, 20.0]),
    st.lists(FRAMES, max_size=12),
    st.integers(0, 2**12 - 1),
    st.booleans(),
)
def test_no_frames_make_a_cloud_say_anything_but_its_answer(
    seed: int, draft_length: int, ahead: int, patience: float, frames: list[tuple[Any, ...]], late: int, same: bool
) -> None:
    """It goes on with its own answer or refuses; and where it stops it waits for a message."""
    pair, options = alike() if same else Pair(SHARED, SHARED), CoupledOptions(draft_length, ahead, patience)
    chance = PhiloxChance(seed)
    whole, real = reference(pair, PLAIN, chance, 10), genuine(pair, options, chance, 10)
    fed = Fed(pair.sides(10, PLAIN, chance)[1], options)
    for index, frame in enumerate(frames):
        if fed.finished:
            break
        match frame:
            case ("genuine", place):
                message = real[place % len(real)]
            case ("right", epoch, start, count):
                message = fed.draft(epoch, [number for number in whole[start : start + count] if number < pair.common.size])
            case ("any", epoch, numbers):
                message = fed.draft(epoch, numbers)
            case ("progress", step):
                message = Progress(step)
            case (_, epoch, count, payload):
                message = Draft(epoch, count, payload)
        try:
            fed.give(message)
            while late >> index & 1 and not (fed.waits or fed.finished):
                fed.give(None)
        except ProtocolError:
            break
        finally:
            assert fed.side.transcript.numbers == whole[: len(fed.side.transcript.numbers)]
    else:
        for _ in range(20):
            if not (fed.waits or fed.finished):
                fed.give(None)
        assert fed.waits or fed.finished
        assert fed.side.transcript.numbers == whole[: len(fed.side.transcript.numbers)]


def tell(verdicts: Sequence[Message], committed: Sequence[int], patience: float) -> None:
    """Give a device half these, one after the other, whatever it sends; then it must have committed just that."""
    pair = Pair(SHARED, SHARED)
    device, _ = pair.sides(12, PLAIN, PhiloxChance(3))
    up: deque[Message] = deque()
    half = Running(CoupledDevice(device, CoupledOptions(3, 3, patience)).run(), deque(verdicts), up)
    try:
        half.as_far_as_it_gets()
    finally:
        assert device.transcript.numbers == committed


def token(number: int) -> bytes:
    writer = Writer()
    writer.number(number, Pair(SHARED, SHARED).common.target_bits)
    return writer.finish()


@pytest.mark.parametrize("patience", [LOCKSTEP, AUTO, 0.0, 20.0])
@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        (Verdict(9, 0, token(0)), "a verdict was made when 9 messages were heard, but it must be"),
        (Verdict(HEARD, 7, token(0)), "7 drafts were accepted, but only"),
        (Verdict(HEARD, 0, b""), "the payload is shorter than its message says"),
        (Verdict(HEARD, 0, bytes(9)), "the payload is longer than its message says"),
        (Verdict(HEARD, 0, token(3)), "the token after the accepted ones is 3, but must be below 3"),
        (Draft(0, 0, b""), "Draft came where Verdict was due"),
    ],
)
def test_a_verdict_that_cannot_be(verdict: Message, sentence: str, patience: float) -> None:
    if isinstance(verdict, Verdict) and verdict.round == HEARD:
        # In lockstep it answers the first drafts, in a stream it may be there before they are sent.
        verdict = replace(verdict, round=int(patience == LOCKSTEP))
    with pytest.raises(ProtocolError, match=sentence):
        tell([verdict], [], patience)


def test_a_verdict_twice() -> None:
    """In lockstep the second one answers nothing; in a stream a cloud says as many tokens as it likes."""
    verdict = Verdict(1, 0, token(0))
    with pytest.raises(ProtocolError, match="a verdict was made when 1 messages were heard, but it must be 2 to 2"):
        tell([verdict] * 2, [0], LOCKSTEP)
    tell([replace(verdict, round=0)] * 2, [0, 0], AUTO)


def test_messages_are_never_unheard() -> None:
    """A number that falls: a verdict from another time."""
    for patience in (LOCKSTEP, AUTO):
        up: deque[Message] = deque()
        down: deque[Message] = deque()
        device, _ = Pair(SHARED, SHARED).sides(12, PLAIN, PhiloxChance(3))
        half = Running(CoupledDevice(device, CoupledOptions(1, 0, patience)).run(), down, up)
        half.as_far_as_it_gets()
        down.append(Verdict(1, 0, token(0)))
        half.as_far_as_it_gets()
        down.append(Verdict(0, 0, token(0)))
        with pytest.raises(ProtocolError, match="a verdict was made when 0 messages were heard, but it must be"):
            half.as_far_as_it_gets()
        assert device.transcript.numbers == [0]

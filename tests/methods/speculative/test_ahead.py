"""`coupled` drafts ahead of the verdict: whatever comes late, the answer is that of `cloud`, and nothing stale is used."""

import random
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.core.distributions import Logits
from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import ProtocolError
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.base import CloudSide, DeviceSide, Transcript
from antiphon.methods.effects import Effect, Half, Now, Receive, Send, Step
from antiphon.methods.speculative.coupled import COUPLED, CoupledCloud, CoupledDevice, CoupledOptions
from antiphon.methods.verifier import Targets, Verifier
from antiphon.models.base import Model
from antiphon.models.toy import ToyModel, named_toy, toy_pieces
from antiphon.options import NoOptions
from antiphon.testing.distributions import LARGE, SHARED, SMALL, Pair, distance, method_distribution, target_distribution
from antiphon.vocabulary import identity
from antiphon.wire.messages import Draft, Message, Verdict
from antiphon.wire.packing import Writer
from support.broken_links import Network, broken, random_delay
from support.examples import examples
from support.links import request
from support.timed import Times, timed_distribution

LENGTHS = [1, 2, 3, 0]
AHEADS = [0, 1, 2, 3]
PLAIN = SamplingParams(temperature=1.0)
NARROW = SamplingParams(temperature=1.0, top_k=2)


# The distribution.


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


# Real ends, any delays.

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


# Any order in which halves get to run and messages come, if they keep their order.


def reference(pair: Pair, sampling: SamplingParams, chance: PhiloxChance, tokens: int) -> list[int]:
    """The numbers that `cloud` commits."""
    _, side = pair.sides(tokens, sampling, chance)
    half: Any = WITHOUT_DOCUMENTS["cloud"].cloud
    steps = half(side, NoOptions()).run()
    answer: Any = None
    while side.transcript.finish is None:
        effect = steps.send(answer)
        answer = effect.run() if isinstance(effect, Step) else None
    return side.transcript.numbers


class Running:
    """A half under way, as far as it gets without a message."""

    def __init__(self, half: Half, inbox: deque[Message], outbox: deque[Message]) -> None:
        self._half, self._inbox, self._outbox = half, inbox, outbox
        self._effect: Effect | None = half.send(None)
        self._time = 0.0

    @property
    def over(self) -> bool:
        return self._effect is None

    @property
    def able(self) -> bool:
        """Whether it could go on now."""
        blocked = isinstance(self._effect, Receive) and self._effect.within is None and not self._inbox
        return not self.over and not blocked

    def go_on(self, late: bool) -> None:
        """One effect; if it need not have a message yet and they are `late`, it gets none."""
        answer: Any = None
        match self._effect:
            case Step():
                answer = self._effect.run()
            case Send(message):
                self._outbox.append(message)
            case Receive(within) if self._inbox and not (within is not None and late):
                answer = self._inbox.popleft()
            case Now():
                answer = self._time = self._time + 1.0
        try:
            self._effect = self._half.send(answer)
        except StopIteration:
            self._effect = None

    def as_far_as_it_gets(self) -> None:
        """Until it must have a message that is not there, or is over."""
        while self.able:
            self.go_on(late=False)


def interleaved(device: Half, cloud: Half, source: random.Random, lateness: float) -> None:
    """Run both to their end, at random who and when."""
    up: deque[Message] = deque()
    down: deque[Message] = deque()
    halves = [Running(device, down, up), Running(cloud, up, down)]
    while not all(half.over for half in halves):
        able = [half for half in halves if half.able]
        assert able, "the halves wait for each other"
        source.choice(able).go_on(source.random() < lateness)


class Alike(ToyModel):
    """Says the same token nearly always, so that drafts made for another place are seldom wrong by themselves."""

    def logits(self, tokens: Sequence[int]) -> Logits:
        plain = super().logits(tokens)
        return (plain + np.array([3.0, 0.0, -4.0])).astype(np.float32)


def alike() -> Pair:
    pair = Pair(SHARED, SHARED)
    pair.device, pair.cloud = Alike(SHARED, seed=1, sharpness=1.0), Alike(SHARED, seed=2, sharpness=1.0)
    return pair


@examples(200)
@given(
    st.integers(0, 10_000),
    st.sampled_from([0, 1, 2, 3, 6]),
    st.sampled_from([0, 1, 2, 4, 16]),
    st.integers(1, 16),
    st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    st.sampled_from(["shared", "different", "alike"]),
)
def test_any_order_of_events_gives_the_same_answer(
    seed: int, draft_length: int, ahead: int, tokens: int, lateness: float, which: str
) -> None:
    pair = {"shared": Pair(SHARED, SHARED), "different": Pair(SMALL, LARGE), "alike": alike()}[which]
    chance, options = PhiloxChance(seed), CoupledOptions(draft_length, ahead)
    device, cloud = pair.sides(tokens, PLAIN, chance)
    interleaved(CoupledDevice(device, options).run(), CoupledCloud(cloud, options).run(), random.Random(seed), lateness)
    assert device.transcript.numbers == cloud.transcript.numbers == reference(pair, PLAIN, chance, tokens)


@pytest.mark.medium
@pytest.mark.parametrize("draft_length", [1, 2, 0])
def test_no_more_is_on_its_way_than_the_cloud_takes(draft_length: int) -> None:
    """A drafter that is always right, so that lines go on and on: rests of a line that were not sent add up."""
    for seed in range(60):
        pair, chance, options = alike(), PhiloxChance(seed), CoupledOptions(draft_length, 2 + seed % 9)
        pair.device = pair.cloud
        device, cloud = pair.sides(40, PLAIN, chance)
        halves = CoupledDevice(device, options).run(), CoupledCloud(cloud, options).run()
        interleaved(*halves, random.Random(seed), lateness=(seed % 4) / 4)
        assert device.transcript.numbers == reference(pair, PLAIN, chance, 40)


# Nothing stale: a draft is compared only with the token that stands behind the very tokens that it was made for.


class Telling(CoupledDevice):
    """Writes down for what each draft was made."""

    def __init__(self, side: DeviceSide, options: CoupledOptions, made: dict[tuple[int, int], list[int]]) -> None:
        super().__init__(side, options)
        self._made = made

    def _send_rest(self) -> Send:
        committed, line = self.side.transcript.numbers, [draft.number for draft in self._line]
        for place in range(self._sent, len(line)):
            self._made[self._epoch, len(committed) + place] = [*committed, *line[: place + 1]]
        return super()._send_rest()


class Judging(CoupledCloud):
    """Looks up for what the drafts of each pass were made."""

    def __init__(self, side: CloudSide, options: CoupledOptions, made: dict[tuple[int, int], list[int]]) -> None:
        super().__init__(side, options)
        self._made = made
        self.judged = 0

    def _answer(self) -> Generator[Any, Any, None]:
        committed, queue = self.side.transcript.numbers, list(self._queue)
        for place in range(len(queue)):
            assert self._made[self._epoch, len(committed) + place] == [*committed, *queue[: place + 1]]
            self.judged += 1
        yield from super()._answer()


def judge(seed: int, draft_length: int, ahead: int, kind: type[Judging] = Judging) -> int:
    """Drafts that were looked at in one answer of a pair that mostly says the same token."""
    made: dict[tuple[int, int], list[int]] = {}
    device, cloud = alike().sides(16, PLAIN, PhiloxChance(seed))
    options = CoupledOptions(draft_length, ahead)
    judging = kind(cloud, options, made)
    interleaved(Telling(device, options, made).run(), judging.run(), random.Random(seed), 0.5)
    return judging.judged


@pytest.mark.medium
@pytest.mark.parametrize("draft_length", [1, 2, 3, 0])
def test_a_draft_is_used_only_where_it_was_made_for(draft_length: int) -> None:
    assert sum(judge(seed, draft_length, ahead) for seed in range(30) for ahead in (0, 1, 3, 8)) > 200


class Careless(Judging):
    """Does not look whether what comes late belongs to the line that fell."""

    def _add(self, number: int) -> None:
        if self._next >= len(self.side.transcript.numbers):
            self._queue.append(number)
        self._next += 1


def test_stale_drafts_do_come_and_their_use_would_be_seen() -> None:
    found = 0
    for seed in range(30):
        try:
            judge(seed, 1, 3, Careless)
        except AssertionError:
            found += 1
    assert found > 5


# A cloud half that is fed by hand.


class Script(ToyModel):
    """Says one text, whatever stands before; the prompt has one token."""

    def __init__(self, text: str) -> None:
        super().__init__(SHARED)
        self._text = text

    def logits(self, tokens: Sequence[int]) -> Logits:
        row = np.zeros(len(SHARED), dtype=np.float32)
        row["ab.".index((self._text + "." * len(tokens))[len(tokens) - 1])] = 50.0
        return row


GREEDY = SamplingParams(temperature=0.0)


class Fed:
    """A cloud half, and what it says to what it is sent."""

    def __init__(self, side: CloudSide, options: CoupledOptions) -> None:
        self.side = side
        self.verdicts: list[Verdict] = []
        self.finished = self.waits = False
        self._half = CoupledCloud(side, options).run()
        self._run(None)

    @classmethod
    def of(cls, text: str, draft_length: int = 3, ahead: int = 3, tokens: int = 12) -> "Fed":
        """One whose answer is `text`: `a`, `b`, and `.` for the end."""
        model = Script(text)
        common = identity(model.vocabulary)
        verifier = Verifier(model.open(), [0], common, GREEDY)
        side = CloudSide(common, Transcript(common.ends, tokens), PhiloxChance(1), verifier)
        return cls(side, CoupledOptions(draft_length, ahead))

    def send(self, epoch: int, text: str) -> None:
        """Drafts, alone: the half then gets nothing more until it waits."""
        self.give(self.draft(epoch, ["ab.".index(letter) for letter in text]))
        while not (self.waits or self.finished):
            self.give(None)

    def draft(self, epoch: int, numbers: Sequence[int]) -> Draft:
        writer = Writer()
        for number in numbers:
            writer.number(number, self.side.common.common_bits)
        return Draft(epoch, len(numbers), writer.finish())

    def give(self, message: Message | None) -> None:
        """Answer what it asks for: a message, or that none has come (only if it can do without)."""
        assert message is not None or not self.waits
        self._run(message)

    def _run(self, answer: Any) -> None:
        try:
            while not isinstance(effect := self._half.send(answer), Receive):
                answer = effect.run() if isinstance(effect, Step) else None
                if isinstance(effect, Send):
                    assert isinstance(effect.message, Verdict)
                    self.verdicts.append(effect.message)
            self.waits = effect.within is None
        except StopIteration:
            self.finished = True

    @property
    def text(self) -> str:
        return "".join("ab."[number] for number in self.side.transcript.numbers)

    @property
    def told(self) -> list[tuple[int, int]]:
        """Round and accepted count of each verdict."""
        return [(verdict.round, verdict.accepted) for verdict in self.verdicts]


def test_a_draft_that_is_right_by_accident_is_not_used() -> None:
    """`aab` then `aaa...`: the rest of the line `aaa` fits its places, but it was made for another text."""
    fed = Fed.of("aabaaaaaa")
    fed.send(0, "aaa")
    assert (fed.text, fed.told) == ("aab", [(0, 2)])
    fed.send(0, "aaa")
    assert fed.told == [(0, 2)]
    fed.send(1, "aa")
    assert (fed.text, fed.told) == ("aabaaa", [(0, 2), (1, 2)])


def test_a_draft_that_comes_late_is_compared_with_what_was_committed() -> None:
    right, wrong = Fed.of("aabaaaaaa"), Fed.of("aabaaaaaa")
    for fed in (right, wrong):
        fed.send(0, "aa")
        assert (fed.text, fed.told) == ("aab", [(0, 2)])
    right.send(0, "baa")
    assert (right.text, right.told) == ("aabaaa", [(0, 2), (1, 2)])
    wrong.send(0, "aaa")
    assert (wrong.text, wrong.told) == ("aab", [(0, 2)])


def test_what_was_not_taken_by_a_pass_is_taken_by_the_next() -> None:
    fed = Fed.of("aaaaaba", draft_length=1, ahead=5)
    fed.send(0, "aaaaaa")
    assert (fed.text, fed.told) == ("aaaaab", [(0, 1), (1, 1), (2, 1)])


def test_without_drafts_one_token_comes_for_each_time_that_it_is_asked_for() -> None:
    fed = Fed.of("abab")
    for asked in range(3):
        fed.send(asked, "")
    assert (fed.text, fed.told) == ("aba", [(0, 0), (1, 0), (2, 0)])


def test_who_asks_without_having_seen_every_verdict_is_not_answered() -> None:
    fed = Fed.of("abab")
    fed.send(0, "")
    fed.send(0, "")
    assert fed.told == [(0, 0)]


def test_an_end_in_a_line_is_the_end() -> None:
    fed = Fed.of("aa.")
    fed.send(0, "aa.")
    assert fed.finished
    assert (fed.text, fed.told) == ("aa.", [(0, 3)])
    assert fed.verdicts[0].payload == b""


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ([(1, "a")], "drafts of epoch 1 came in epoch 0"),
        ([(0, "ab"), (1, "a"), (0, "a")], "drafts of epoch 0 came in epoch 1"),
        ([(0, "aaaaaaa")], "at most 6 drafts fit here, but 7 came"),
        ([(0, "aaa"), (0, "aaa"), (0, "aaa"), (0, "aaa")], "at most 2 drafts fit here, but 3 came"),
    ],
)
def test_what_cannot_be_is_refused(sent: list[tuple[int, str]], sentence: str) -> None:
    """Three a pass and three ahead, twelve tokens."""
    fed = Fed.of("aaaaaaaaaaaaaaa")
    for epoch, text in sent[:-1]:
        fed.send(epoch, text)
    with pytest.raises(ProtocolError, match=sentence):
        fed.send(*sent[-1])


FRAMES = st.one_of(
    st.tuples(st.just("genuine"), st.integers(0, 40)),
    st.tuples(st.just("right"), st.integers(0, 5), st.integers(0, 12), st.integers(0, 5)),
    st.tuples(st.just("any"), st.integers(0, 5), st.lists(st.integers(0, 2), max_size=5)),
    st.tuples(st.just("bytes"), st.integers(0, 5), st.integers(0, 8), st.binary(max_size=3)),
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
    st.lists(FRAMES, max_size=12),
    st.integers(0, 2**12 - 1),
    st.booleans(),
)
def test_no_frames_make_a_cloud_say_anything_but_its_answer(
    seed: int, draft_length: int, ahead: int, frames: list[tuple[Any, ...]], late: int, same: bool
) -> None:
    """It goes on with its own answer or refuses; and where it stops it waits for a message."""
    pair, options, chance = alike() if same else Pair(SHARED, SHARED), CoupledOptions(draft_length, ahead), PhiloxChance(seed)
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


# A device half that is told what cannot be.


def tell(verdicts: Sequence[Message], committed: Sequence[int]) -> None:
    """Give a device half these, one after the other, whatever it sends; then it must have committed just that."""
    pair = Pair(SHARED, SHARED)
    device, _ = pair.sides(12, PLAIN, PhiloxChance(3))
    up: deque[Message] = deque()
    half = Running(CoupledDevice(device, CoupledOptions(3, 3)).run(), deque(verdicts), up)
    try:
        half.as_far_as_it_gets()
    finally:
        assert device.transcript.numbers == committed


def token(number: int) -> bytes:
    writer = Writer()
    writer.number(number, Pair(SHARED, SHARED).common.target_bits)
    return writer.finish()


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        (Verdict(1, 0, token(0)), "Verdict of round 1 came in round 0"),
        (Verdict(0, 7, token(0)), "7 drafts were accepted, but only"),
        (Verdict(0, 0, b""), "the payload is shorter than its message says"),
        (Verdict(0, 0, bytes(9)), "the payload is longer than its message says"),
        (Verdict(0, 0, token(3)), "the token after the accepted ones is 3, but must be below 3"),
        (Draft(0, 0, b""), "Draft came where Verdict was due"),
    ],
)
def test_a_verdict_that_cannot_be(verdict: Message, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        tell([verdict], [])


def test_a_verdict_twice() -> None:
    with pytest.raises(ProtocolError, match="Verdict of round 0 came in round 1"):
        tell([Verdict(0, 0, token(0))] * 2, [0])

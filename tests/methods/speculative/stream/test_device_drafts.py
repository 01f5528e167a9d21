"""The device's half in a stream: when it drafts, when it sends, when it stops and looks again; and clouds that lie."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from antiphon.core.chance import PhiloxChance
from antiphon.core.distributions import Logits
from antiphon.core.draft_length import Known
from antiphon.core.pass_costs import PassCosts
from antiphon.core.stream import AUTO, LOOK_AGAIN
from antiphon.errors import ProtocolError
from antiphon.methods.base import DeviceSide
from antiphon.methods.drafter import Guess
from antiphon.methods.effects import Came, Emit, Now, Receive, Send, Step
from antiphon.methods.speculative.coupled import CoupledCloud, CoupledDevice
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.methods.speculative.stream.device import TOLD_EVERY
from antiphon.methods.speculative.stream.pace import Pace
from antiphon.models.toy import ToyModel
from antiphon.testing.distributions import PROMPT, SHARED, Pair
from antiphon.wire.messages import Draft, Message, Progress, Verdict
from antiphon.wire.packing import Writer
from methods.speculative.ahead import GREEDY, reference
from methods.speculative.stream.timed import Timed, Times, run_timed

TOKENS = 200

GPU = Times(draft=0.004, further=0.0, verify=0.033, way=0.0)
"""A wide pass costs what a narrow one does."""
CPU = Times(draft=0.004, further=0.033, verify=0.033, way=0.0)
"""A pass of three tokens costs three of one."""


def options(draft_length: int = 0, ahead: int = -1, patience: float = AUTO, objective: Any = "speed") -> CoupledOptions:
    """Only the model drafts: these texts repeat."""
    return CoupledOptions(draft_length, ahead, patience, objective, "off")


class Endless(ToyModel):
    """Says `a` or `b`, never an end; `wrong`: what its cloud never says."""

    def __init__(self, *, wrong: bool = False) -> None:
        super().__init__(SHARED)
        self._wrong = wrong

    def logits(self, tokens: Sequence[int]) -> Logits:
        said = (sum(tokens[-3:]) + len(tokens)) % 2
        row = np.zeros(len(SHARED), dtype=np.float32)
        row[1 - said if self._wrong else said] = 50.0
        return row


def pair_of(*, wrong: bool) -> Pair:
    """A drafter that is always right, or never."""
    pair = Pair(SHARED, SHARED)
    pair.device, pair.cloud = Endless(wrong=wrong), Endless()
    return pair


def written(asked: CoupledOptions, times: Times, *, wrong: bool = False, tokens: int = TOKENS) -> Timed:
    """An answer on a clock, which must be that of `cloud`."""
    pair, chance = pair_of(wrong=wrong), PhiloxChance(1)
    device, cloud = pair.sides(tokens, GREEDY, chance)
    timed = run_timed(CoupledDevice(device, asked).run(), CoupledCloud(cloud, asked).run(), times, cloud.costs)
    assert [token.number for token in timed.emitted] == reference(pair, GREEDY, chance, tokens)
    return timed


# When it drafts.


@pytest.mark.parametrize("patience", [AUTO, 0.0, 20.0])
def test_where_drafts_stand_and_cost_nothing_most_tokens_are_drafts(patience: float) -> None:
    timed = written(options(patience=patience), GPU)
    assert timed.passes < TOKENS / 3
    assert timed.drafts >= TOKENS / 2


def test_where_drafts_do_not_stand_it_stops_and_looks_again() -> None:
    """50 ms each way, so a line must stand for several tokens to be of use at all."""
    far = Times(draft=0.004, further=0.0, verify=0.033, way=0.05)
    timed = written(options(), far, wrong=True)
    assert timed.passes == TOKENS, "one a token"
    long = written(options(), far, wrong=True, tokens=2 * TOKENS)
    looks, each = TOKENS / LOOK_AGAIN, far.verify / far.draft
    assert looks / 2 < long.drafts - timed.drafts <= (looks + 1) * each, "for a verdict's time, to see whether they stand now"
    assert timed.drafts < TOKENS / 2


@pytest.mark.parametrize(("objective", "longest"), [("speed", 5), ("battery", 1), ("data", 0)])
def test_where_drafts_have_a_price_it_stops_sooner(objective: str, longest: int) -> None:
    """Of drafts every second one stands, a bit more often at the last."""
    pace, guess = Pace(options(objective=objective), 6), Guess(0, 1.0)
    for _ in range(200):
        pace.tested([], guess)
        pace.tested([guess], None)
    assert [pace.pays([guess] * drafts, 0.0, None) for drafts in range(8)].count(True) == longest


def test_where_drafts_are_not_taken_it_stops_and_looks_again() -> None:
    """They would all stand, but a pass of two tokens takes as long as two passes: it is the stream, and the device rests."""
    timed = written(options(patience=0.0), CPU)
    assert TOKENS - 12 <= timed.passes <= TOKENS
    long = written(options(patience=0.0), CPU, tokens=2 * TOKENS)
    assert long.drafts - timed.drafts < TOKENS / LOOK_AGAIN, "and longer rests each time"
    assert timed.drafts < TOKENS / 8
    assert timed.seconds < 1.03 * written(options(patience=0.0), CPU, wrong=True).seconds


def test_a_pace_says_what_is_of_use() -> None:
    """50 ms a way, 25 ms a pass: behind nothing a draft must stand for four tokens before its own place comes."""
    pace, guess = Pace(options(), 6), Guess(0, 1.0)
    assert pace.pays([], 0.0, None), "nothing is known: it tries"
    for _ in range(200):
        pace.tested([], guess)
    for number in range(12):
        pace.trip.leave(0.025 * number - 0.125)
        pace.trip.arrive(number + 1, 0.025 * number)
    assert not pace.pays([], 0.28, None), "drafts hardly ever stand"
    for _ in range(400):
        pace.tested([guess], None)
    assert pace.pays([], 0.28, None)
    assert not pace.pays([Guess(0, 1.0)] * 4, 100.0, None), "the cloud is far beyond"
    pace.use.came(0, 1)
    assert pace.pays([], 0.28, None), "one draft that was left out says little"
    pace.use.came(0, 1)
    assert not pace.pays([], 0.28, None), "what stands is not taken"
    pace.use.came(1, 0)
    assert pace.pays([], 0.28, None), "now it is"


def test_where_drafts_are_unwanted_it_rests_and_looks_again_ever_more_seldom() -> None:
    pace, guess, known = Pace(options(), 6), Guess(0, 1.0), Guess(0, Known(0.99))
    pauses = []
    for _ in range(8):
        pace.use.unwanted()
        assert not pace.pays([], 0.0, None)
        assert pace.pays([], 0.0, known), "what is looked up costs nothing"
        rest = 0
        while not pace.pays([], 0.0, None):
            pace.tested([], None)
            rest += 1
        assert not pace.pays([guess], 0.0, None), "one draft is enough to learn"
        pauses.append(rest)
        pace.tested([guess], None)
    assert pauses == [32, 64, 128, 256, 512, 1024, 1024, 1024]
    pace.use.came(1, 0)
    assert pace.pays([], 0.0, None)


# When it sends: by hand, with a clock.


class Hand:
    """A device half whose messages, verdicts and time are made by hand. A draft takes 4 ms, a look nothing."""

    def __init__(
        self, asked: CoupledOptions, pair: Pair | None = None, tokens: int = TOKENS, learned: Pace | None = None
    ) -> None:
        self.pair = pair or pair_of(wrong=False)
        self.side: DeviceSide = self.pair.sides(tokens, GREEDY, PhiloxChance(1))[0]
        self.side.memory.learned = learned
        self.sent: list[Message] = []
        self.drafts = 0
        self.time = 0.0
        self.inbox: deque[tuple[float, Message]] = deque()
        self.text = reference(self.pair, GREEDY, PhiloxChance(1), tokens)
        self.emitted: list[Emit] = []
        self.said = 0.0
        """When the last verdict comes."""
        self._came = 0.0
        self._half = CoupledDevice(self.side, asked).run()
        self._effect: Any = next(self._half)

    def say(self, accepted: int, number: int, heard: int, after: float = 0.033) -> None:
        """A verdict that comes so long after the one before it."""
        writer = Writer()
        writer.number(number, self.pair.common.target_bits)
        self.said += after
        self.inbox.append((self.said, Verdict(heard, accepted, writer.finish())))

    def run(self, until: float) -> None:
        """Until then, or until it waits with nothing on its way."""
        while self.time < until:
            answer: Any = None
            match self._effect:
                case Step():
                    self.drafts += 1
                    self.time += 0.004
                    answer = self._effect.run()
                case Send(message):
                    self.sent.append(message)
                case Now():
                    answer = self.time
                case Came():
                    answer = self._came
                case Receive(within):
                    if within is None and self.inbox:
                        self.time = max(self.time, self.inbox[0][0])
                    elif within is None:
                        return
                    if self.inbox and self.inbox[0][0] <= self.time:
                        self._came, answer = self.inbox.popleft()
                case Emit():
                    self.emitted.append(self._effect)
            self._effect = self._half.send(answer)


def test_the_first_draft_leaves_at_once_and_the_others_while_it_drafts_on() -> None:
    pace = Pace(options(), 6)
    pace.tested([Guess(0, 0.0)] * 400, None)
    hand = Hand(options(), learned=pace)
    hand.run(0.005)
    assert [(message.round, message.count) for message in hand.sent] == [(0, 1)]
    hand.run(1.0)
    assert sum(message.count for message in hand.sent) == 6 + 32, "no verdict has come: it makes what may be ahead"
    assert all(message.round == 0 for message in hand.sent)


def test_it_looks_for_verdicts_between_two_drafts() -> None:
    """A token is shown after one draft at most."""
    hand = Hand(options())
    hand.say(0, hand.text[0], heard=0, after=0.01)
    hand.run(0.0145)
    assert hand.side.transcript.numbers == hand.text[:1]
    assert hand.drafts <= 4


def test_a_line_that_stands_keeps_its_epoch_and_another_begins_behind_what_is_known() -> None:
    hand = Hand(options(2, 0))
    hand.run(0.02)
    assert [message.round for message in hand.sent] == [0] * len(hand.sent)
    hand.say(1, hand.text[1], heard=len(hand.sent), after=0.001)
    hand.run(0.1)
    assert {message.round for message in hand.sent} == {0, 1}, "all of it was settled: nothing is on its way"
    before, now = len(hand.sent), hand.time
    assert len(hand.side.memory.line) == 2
    hand.say(0, 1 - hand.text[2], heard=before, after=now + 0.001 - hand.said)
    hand.run(now + 0.0011)
    assert len(hand.side.memory.line) <= 1, "it fell, and what was drafted behind it too"
    hand.run(now + 0.2)
    assert [message.round for message in hand.sent[before:]] == [2] * len(hand.sent[before:])


def test_it_says_that_none_is_coming_once() -> None:
    hand = Hand(options(objective="battery"), pair_of(wrong=True))
    for number in range(30):
        hand.say(0, hand.text[number], heard=len(hand.sent))
    hand.run(10.0)
    idle = [message for message in hand.sent if isinstance(message, Draft) and message.count == 0]
    assert len(idle) == 1
    assert hand.side.transcript.numbers == hand.text[:30]


def test_it_tells_how_far_it_is_where_no_line_does() -> None:
    hand = Hand(options(objective="battery"), pair_of(wrong=True), 60)
    for number in range(2 * TOLD_EVERY + 4):
        hand.say(0, hand.text[number], heard=0)
    hand.run(10.0)
    told = [message for message in hand.sent if isinstance(message, Progress)]
    assert told
    steps = [message.step for message in told]
    assert steps == sorted(set(steps))
    assert all(step <= len(hand.text) for step in steps)


def test_what_was_drafted_and_not_sent_was_tested_by_nobody() -> None:
    """A verdict ends the line, the next one comes long before it was to be expected: drafts waited, to leave together."""
    hand = Hand(options(patience=0.0))
    answer = [*hand.text[:10], 1 - hand.text[10]]
    for number in answer:
        hand.say(0, number, heard=0)
    model = hand.pair.cloud
    drafted = int(model.logits([*model.tokenize(PROMPT), *answer]).argmax())
    hand.say(0, drafted, heard=0, after=0.01)
    hand.run(0.5)
    assert hand.side.transcript.numbers == [*answer, drafted]
    *before, last = [emit.tested.drafts for emit in hand.emitted]
    assert sum(map(len, before)) > 5
    assert last == ()


def test_an_answer_begins_with_the_line_that_was_left() -> None:
    """Of a session that was lost, or written while the cloud was gone."""
    hand = Hand(options(2, 0))
    hand.side.memory.line.extend(Guess(number, 0.0) for number in hand.text[:9])
    hand._effect = next(half := CoupledDevice(hand.side, options(2, 0)).run())
    hand._half = half
    hand.run(0.004)
    assert [(message.round, message.count) for message in hand.sent] == [(0, 9)]
    assert hand.drafts == 0


# Clouds that lie.


@pytest.mark.parametrize(
    ("accepted", "heard", "sentence"),
    [
        (3, 2, "3 drafts were accepted, but only 1 were sent by then"),
        (1, 1, "1 drafts were accepted, but only 0 were sent by then"),
        (0, 9, "a verdict was made when 9 messages were heard, but it must be 0 to"),
    ],
)
def test_a_verdict_on_what_was_not_sent_is_refused_and_nothing_is_lost(accepted: int, heard: int, sentence: str) -> None:
    hand = Hand(options(2, 0))
    hand.run(0.02)
    hand.say(0, hand.text[0], heard=0, after=0.001)
    hand.run(0.03)
    hand.say(accepted, 0, heard, after=0.001)
    with pytest.raises(ProtocolError, match=sentence):
        hand.run(0.1)
    assert hand.side.transcript.numbers == hand.text[:1]


def test_what_was_heard_never_becomes_less() -> None:
    hand = Hand(options(2, 0))
    hand.run(0.02)
    hand.say(0, hand.text[0], heard=1, after=0.001)
    hand.say(0, hand.text[1], heard=0, after=0.001)
    with pytest.raises(ProtocolError, match="a verdict was made when 0 messages were heard, but it must be 1 to"):
        hand.run(0.1)
    assert hand.side.transcript.numbers == hand.text[:1]


def test_costs_that_are_not_known_are_no_reason_to_rest() -> None:
    """A cloud that never told the time of anything: all verdicts at one instant."""
    hand = Hand(options())
    for number in range(20):
        hand.say(0, hand.text[number], heard=0, after=0.0)
    hand.run(1.0)
    assert hand.side.transcript.numbers == hand.text[:20]
    assert PassCosts().seconds(1) == 0.0

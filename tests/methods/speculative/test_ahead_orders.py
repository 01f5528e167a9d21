"""Whatever comes in whichever order, a draft is used only where it was made for, and the answer is that of `cloud`."""

import random
from collections import deque
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.chance import PhiloxChance
from antiphon.core.stream import AUTO, LOCKSTEP
from antiphon.methods.base import CloudSide, DeviceSide
from antiphon.methods.effects import Finish, Half, Send
from antiphon.methods.speculative.coupled import CoupledDevice, LockstepDevice
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.methods.speculative.stream.cloud import CoupledCloud, Pending
from antiphon.methods.speculative.stream.device import StreamDevice
from antiphon.testing.distributions import LARGE, SHARED, SMALL, Pair
from antiphon.wire.messages import Draft, Message
from methods.speculative.ahead import PLAIN, Eager, Running, alike, reference
from support.examples import examples

PATIENCES = [LOCKSTEP, AUTO, 0.0, 2000.0]
"""The last one in milliseconds: each look at the clock is a second here."""


def interleaved(device: Half, cloud: Half, source: random.Random, lateness: float, faster: float = 1.0) -> None:
    """Run both to their end, at random who and when; the device is so many times faster on average."""
    up: deque[Message] = deque()
    down: deque[Message] = deque()
    halves = [Running(device, down, up), Running(cloud, up, down)]
    while not all(half.over for half in halves):
        able = [half for half in halves if half.able]
        assert able, "the halves wait for each other"
        (one,) = source.choices(able, [faster if half is halves[0] else 1.0 for half in able])
        one.go_on(source.random() < lateness)


@examples(200)
@given(
    st.integers(0, 10_000),
    st.sampled_from([0, 1, 2, 3, 6]),
    st.sampled_from([0, 1, 2, 4, 16]),
    st.sampled_from(PATIENCES),
    st.integers(1, 16),
    st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    st.sampled_from(["shared", "different", "alike"]),
    st.sampled_from([0.2, 1.0, 5.0]),
    st.booleans(),
)
def test_any_order_of_events_gives_the_same_answer(
    seed: int,
    draft_length: int,
    ahead: int,
    patience: float,
    tokens: int,
    lateness: float,
    which: str,
    faster: float,
    eager: bool,
) -> None:
    pair = {"shared": Pair(SHARED, SHARED), "different": Pair(SMALL, LARGE), "alike": alike()}[which]
    chance, options = PhiloxChance(seed), CoupledOptions(draft_length, ahead, patience)
    device, cloud = pair.sides(tokens, PLAIN, chance)
    if eager and not options.lockstep:
        device.memory.learned = Eager(options, options.max_drafts)
    halves = CoupledDevice(device, options).run(), CoupledCloud(cloud, options).run()
    interleaved(*halves, random.Random(seed), lateness, faster)
    assert device.transcript.numbers == cloud.transcript.numbers == reference(pair, PLAIN, chance, tokens)


@pytest.mark.medium
@pytest.mark.parametrize("patience", PATIENCES)
@pytest.mark.parametrize("draft_length", [1, 2, 0])
def test_no_more_is_on_its_way_than_the_cloud_takes(draft_length: int, patience: float) -> None:
    """A drafter that is always right, so that lines go on and on: rests of a line that were not sent add up."""
    for seed in range(60):
        pair, chance, options = alike(), PhiloxChance(seed), CoupledOptions(draft_length, 2 + seed % 9, patience)
        pair.device = pair.cloud
        device, cloud = pair.sides(40, PLAIN, chance)
        halves = CoupledDevice(device, options).run(), CoupledCloud(cloud, options).run()
        interleaved(*halves, random.Random(seed), lateness=(seed % 4) / 4)
        assert device.transcript.numbers == reference(pair, PLAIN, chance, 40)


Made = dict[tuple[int, int], list[int]]
"""For what a draft was made, itself included, by its line's epoch and its position."""


class Telling:
    """A device half that writes down for what each draft was made."""

    def __init__(self, side: DeviceSide, options: CoupledOptions, made: Made) -> None:
        self._half: Any = LockstepDevice(side, options) if options.lockstep else StreamDevice(side, options)
        self._transcript, self._made = side.transcript, made

    def run(self) -> Half:
        effect = next(steps := self._half.run())
        while True:
            if isinstance(effect, Send) and isinstance(effect.message, Draft):
                self._note(effect.message.round)
            try:
                effect = steps.send((yield effect))
            except StopIteration as stop:
                finish: Finish = stop.value
                return finish

    def _note(self, epoch: int) -> None:
        committed, line = self._transcript.numbers, [draft.number for draft in self._half._line]
        for place in range(len(line)):
            whole = [*committed, *line[: place + 1]]
            assert self._made.setdefault((epoch, len(committed) + place), whole) == whole


class Judging(CoupledCloud):
    """Looks up for what the drafts of each pass were made."""

    def __init__(self, side: CloudSide, options: CoupledOptions, made: Made) -> None:
        super().__init__(side, options)
        self._made = made
        self.judged = 0

    def answer(self) -> Generator[Any, Any, None]:
        committed, queue = self.side.transcript.numbers, list(self._pending.queue)
        for place in range(len(queue)):
            assert self._made[self._pending.epoch, len(committed) + place] == [*committed, *queue[: place + 1]]
            self.judged += 1
        yield from super().answer()


def judge(seed: int, options: CoupledOptions, kind: type[Judging] = Judging) -> int:
    """Drafts that were looked at in one answer of a pair that mostly says the same token."""
    made: Made = {}
    device, cloud = alike().sides(16, PLAIN, PhiloxChance(seed))
    judging = kind(cloud, options, made)
    if not options.lockstep:
        device.memory.learned = Eager(options, options.max_drafts)
    interleaved(
        Telling(device, options, made).run(), judging.run(), random.Random(seed), 0.5, 1.0 if options.lockstep else 12.0
    )
    return judging.judged


@pytest.mark.medium
@pytest.mark.parametrize("patience", PATIENCES)
@pytest.mark.parametrize("draft_length", [1, 2, 3, 0])
def test_a_draft_is_used_only_where_it_was_made_for(draft_length: int, patience: float) -> None:
    options = [CoupledOptions(draft_length, ahead, patience) for ahead in (0, 1, 3, 8)]
    assert sum(judge(seed, each) for seed in range(30) for each in options) > 150


class CarelessPending(Pending):
    """Does not look whether what comes late belongs to the line that fell."""

    def add(self, number: int) -> None:
        if self.next >= len(self._transcript.numbers):
            self.queue.append(number)
        self.next += 1


class Careless(Judging):
    """Keeps what comes so."""

    def __init__(self, side: CloudSide, options: CoupledOptions, made: Made) -> None:
        super().__init__(side, options, made)
        self._pending = CarelessPending(side.transcript)


@pytest.mark.parametrize("patience", PATIENCES)
def test_stale_drafts_do_come_and_their_use_would_be_seen(patience: float) -> None:
    found = 0
    for seed in range(30):
        try:
            judge(seed, CoupledOptions(1, 3, patience), Careless)
        except AssertionError:
            found += 1
    assert found > 5

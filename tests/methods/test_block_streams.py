"""Block verification with production's own numbers: a million answers of `dsd`, whose distribution is the target's.

Enumeration draws afresh, so it cannot see what hangs together because two rounds use one number. Here every number is the one
that production draws for its key, all keys at once; for some of them the real halves write the same answers.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from antiphon.config import SamplingParams
from antiphon.core.acceptance import residual
from antiphon.core.block import judged
from antiphon.core.chance import PhiloxChance, PhiloxStream, Place, Role
from antiphon.core.distributions import Probs, process
from antiphon.core.rounding import quantise_fixed
from antiphon.methods import METHODS
from antiphon.testing.distributions import LARGE, PROMPT, SMALL, Pair, target_distribution, variation, written

Numbers = tuple[int, ...]
Keys = NDArray[np.uint64]
Uniform = Callable[[Keys, Role, Place], NDArray[np.float64]]

TOKENS, DRAFTS, ANSWERS = 3, 2, 1_000_000
PLAIN = SamplingParams(temperature=1.0)
HALF, LOW = np.uint64(32), np.uint64(2**32 - 1)


def product(first: int, second: Keys) -> tuple[Keys, Keys]:
    """The upper and the lower 64 bits of products of 64 bits."""
    a, b = np.uint64(first >> 32), np.uint64(first & 2**32 - 1)
    c, d = second >> HALF, second & LOW
    middle = a * d + (b * d >> HALF)
    carried = b * c + (middle & LOW)
    return a * c + (middle >> HALF) + (carried >> HALF), np.uint64(first) * second


def uniform(keys: Keys, role: Role, place: Place) -> NDArray[np.float64]:
    """The first number of `role` at a place, for each key: Philox4x64-10."""
    ones = np.ones_like(keys)
    words = [ones, place.index * ones, place.first * ones, 0 * ones]
    low, high = keys.copy(), int(role) * ones
    for _ in range(10):
        (first, lower), (second, other) = product(0xD2E7470EE14C6C93, words[0]), product(0xCA5A826395121157, words[2])
        words = [second ^ words[1] ^ low, other, first ^ words[3] ^ high, lower]
        low, high = low + np.uint64(0x9E3779B97F4A7C15), high + np.uint64(0xBB67AE8584CAA73B)
    return (words[0] >> np.uint64(11)) * 2.0**-53


def by_position_alone(keys: Keys, role: Role, place: Place) -> NDArray[np.float64]:
    """As if a number hung on the position that it is about, whichever round draws it."""
    return uniform(keys, role, Place(place.position))


def with_one_number(keys: Keys, role: Role, place: Place) -> NDArray[np.float64]:
    """As if all drafts of a round were tested with the same number."""
    return uniform(keys, role, Place(place.first) if role is Role.ACCEPT else place)


class Writer:
    """Writes the answers of many keys at once, by what the methods compute of the models' distributions."""

    def __init__(self, pair: Pair, uniform: Uniform) -> None:
        self.pair, self.uniform = pair, uniform
        self.draft_probs, self.target_probs = cache(self._draft_probs), cache(self._target_probs)

    def write(self, keys: Keys, written: Numbers = ()) -> Iterator[tuple[Numbers, Keys]]:
        """Each answer, with the keys that have it; behind what is `written`."""
        if len(written) == TOKENS or set(written) & self.pair.common.ends:
            yield written, keys
            return
        for drafts, some in self._drafted(keys, written, ()):
            for tokens, fewer in self._settled(some, written, drafts):
                yield from self.write(fewer, (*written, *tokens))

    def _drafted(self, keys: Keys, written: Numbers, drafts: Numbers) -> Iterator[tuple[Numbers, Keys]]:
        if len(drafts) == min(DRAFTS, TOKENS - len(written) - 1) or set(drafts) & self.pair.common.ends:
            yield drafts, keys
            return
        for number, some in self._drawn(keys, Role.DRAFT, Place(len(written), len(drafts)), self.draft_probs(written, drafts)):
            yield from self._drafted(some, written, (*drafts, number))

    def _settled(self, keys: Keys, written: Numbers, drafts: Numbers) -> Iterator[tuple[Numbers, Keys]]:
        first = len(written)
        probs = [self.draft_probs(written, drafts[:index]) for index in range(len(drafts))]
        block = judged(drafts, probs, lambda index: self.target_probs((*written, *drafts[:index])))
        accepted = np.zeros(len(keys), dtype=np.int64)
        for index, held in enumerate(block.held):
            accepted[self.uniform(keys, Role.ACCEPT, Place(first, index)) < held] = index + 1
        for count in np.unique(accepted).tolist():
            stood, some = drafts[:count], keys[accepted == count]
            if set(stood) & self.pair.common.ends:
                yield stood, some
                continue
            target, role = self.target_probs((*written, *stood)), Role.TARGET
            if count < len(drafts):
                target, role = residual(block.reached[count] * target, probs[count]), Role.RESAMPLE
            for number, fewer in self._drawn(some, role, Place(first, count), target):
                yield (*stood, number), fewer

    def _drawn(self, keys: Keys, role: Role, place: Place, probs: Probs) -> Iterator[tuple[int, Keys]]:
        cumulated = np.cumsum(probs)
        numbers = np.searchsorted(cumulated, self.uniform(keys, role, place) * cumulated[-1], side="right")
        for number in np.unique(numbers).tolist():
            yield number, keys[numbers == number]

    def _draft_probs(self, written: Numbers, drafts: Numbers) -> Probs:
        device, _ = self.pair.sides(TOKENS, PLAIN, PhiloxChance(0))
        assert device.drafter is not None
        device.drafter.commit(written)
        _, probs = made(device.drafter.distribution(drafts))
        return quantise_fixed(16)(probs)

    def _target_probs(self, numbers: Numbers) -> Probs:
        history = [*self.pair.cloud.tokenize(PROMPT), *self.pair.common.cloud_ids[list(numbers)].tolist()]
        probs: Probs = process(self.pair.cloud.logits(history), PLAIN, history)[self.pair.common.cloud_ids]
        return probs


def made(steps: Any) -> Any:
    """What a half's steps come to."""
    answer = None
    while True:
        try:
            answer = steps.send(answer).run()
        except StopIteration as stop:
            return stop.value


def shares(uniform: Uniform, pair: Pair) -> dict[Numbers, float]:
    """How often each answer was written."""
    counts: defaultdict[Numbers, int] = defaultdict(int)
    for first in range(0, ANSWERS, 100_000):
        for answer, keys in Writer(pair, uniform).write(np.arange(first, first + 100_000, dtype=np.uint64)):
            counts[answer] += len(keys)
    assert sum(counts.values()) == ANSWERS
    return {answer: count / ANSWERS for answer, count in counts.items()}


def bound(answers: int) -> float:
    """Of the total variation between the target and a million draws from it, exceeded once in 10^9 times.

    On average it is at most sqrt(answers / n) / 2, and one draw moves it by at most 1 / n (McDiarmid).
    """
    return float(np.sqrt(answers / ANSWERS) / 2 + np.sqrt(np.log(1e9) / (2 * ANSWERS)))


def test_the_numbers_are_those_of_production() -> None:
    keys = np.array([0, 1, 42, 2**64 - 1], dtype=np.uint64)
    for role, place in ((Role.DRAFT, Place(0)), (Role.ACCEPT, Place(7, 3)), (Role.RESAMPLE, Place(2**31, 6))):
        streams = [PhiloxChance(int(key)).at(place, role) for key in keys]
        assert uniform(keys, role, place).tolist() == [PhiloxStream._uniform(stream) for stream in streams]


def test_the_answers_are_those_of_the_real_halves() -> None:
    pair, method = Pair(SMALL, LARGE, seed=6), METHODS["dsd"]
    options = method.options_from({"draft_length": DRAFTS, "verification": "block"})
    answers = {}
    for answer, keys in Writer(pair, uniform).write(np.arange(300, dtype=np.uint64)):
        answers.update(dict.fromkeys(keys.tolist(), answer))
    for key, answer in answers.items():
        assert tuple(token.number for token in written(pair, method, options, PLAIN, TOKENS, PhiloxChance(key))) == answer
    assert len(Counter(answers.values())) > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 6])
def test_a_million_answers(seed: int) -> None:
    pair = Pair(SMALL, LARGE, seed=seed)
    target = target_distribution(pair, PLAIN, TOKENS)
    apart, most = variation(shares(uniform, pair), target), bound(len(target))
    print(f"\ntotal variation of a million answers from the target: {apart:.5f}, bound {most:.5f}")
    assert apart < most < 0.008


@pytest.mark.slow
@pytest.mark.parametrize("fault", [by_position_alone, with_one_number])
def test_numbers_that_are_used_twice_are_seen(fault: Uniform) -> None:
    pair = Pair(SMALL, LARGE, seed=3)
    target = target_distribution(pair, PLAIN, TOKENS)
    apart = variation(shares(fault, pair), target)
    print(f"\ntotal variation with numbers used twice: {apart:.5f}, bound {bound(len(target)):.5f}")
    assert apart > 1.5 * bound(len(target))

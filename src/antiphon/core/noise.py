"""Noise that both ends know, so that the same token wins on both as often as can be (METHODS 3, coupled drafting).

For every answer position and every token there is an exponential number E, the same on both ends. The token of a distribution p
is the one with the smallest E / p: a *race*, which token x wins with probability p(x). Two similar distributions mostly have
the same winner, and nobody needs to send a probability to find out.

The number of a token hangs on the key of the answer, the position, and the id that the cloud's model has for the token, on
nothing else: a device that knows few of the tokens has the same numbers for those. It takes operations on 32 bits alone
(`docs/protocol.md`), so that numpy, a GPU or JavaScript can make the number of any token without those of the others.
"""

import numpy as np
from numpy.typing import NDArray

from antiphon.core.distributions import Ids, Probs

Words = NDArray[np.uint32]

BLOCK = 2**15
"""Words that are mixed together: with what goes with them they fit into a core's second cache."""
SAMPLE = 4096
"""Of the likeliest tokens at most so many are raced in full to bound the others."""
FEW = 64
"""Where of so many tokens one is possible, or fewer, all that are are raced in full."""
SLACK = 1.0 + 1e-9
"""What is left of a bound for roundings."""
_ROUNDS = 10
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_STEPS = 0x9E3779B9, 0xBB67AE85
_LOW = 2**32 - 1


class Noise:
    """The noise of one answer. key: below 2^128, `antiphon.core.chance.answer_key` of what was asked.

    Of four words of Philox4x32-10 for the position two mix a token's id to the upper 32 bits of its uniform number, two to the
    lower ones. Of the 64 bits 52 are used, r, for u = (r + 1/2) / 2^52: exact in float64, never 0 and never 1 (with one bit
    more the last would round up to 1). E = -log u, between 1.1e-16 and 36.8.
    """

    def __init__(self, key: int) -> None:
        self._words = [key >> shift & _LOW for shift in (0, 32, 64, 96)]

    def race(self, position: int, ids: Ids) -> "NoiseRace":
        """The race of the tokens with these ids of the cloud at a target position (the index of a token in the answer)."""
        return NoiseRace(self.keys(position), ids)

    def uniform(self, position: int, ids: Ids) -> NDArray[np.float64]:
        """The uniform numbers of tokens, by ids of the cloud: float64, shape (ids,), in (0, 1)."""
        return _uniform(self.keys(position), ids)

    def keys(self, position: int) -> tuple[int, int, int, int]:
        """The four keys of a position: the block of Philox4x32-10 with half of the key, the other half in its counter."""
        return _philox(self._words[0], self._words[1], (position, 0, self._words[2], self._words[3]))


class NoiseRace:
    """The race at one position, of the tokens with these ids."""

    def __init__(self, keys: tuple[int, int, int, int], ids: Ids) -> None:
        self._keys, self._ids = keys, ids

    def winner(self, probs: Probs) -> int:
        """The place of the token with the smallest E / p."""
        return self.first(probs, 1)[0]

    def times(self) -> NDArray[np.float64]:
        """The E of all tokens: float64, shape (ids,)."""
        uniform = _uniform(self._keys, self._ids)
        np.log(uniform, out=uniform)
        return np.negative(uniform, out=uniform)

    def first(self, probs: Probs, count: int) -> list[int]:
        """The places of the `count` tokens with the smallest E / p, winner first; fewer if fewer have a probability above 0.

        Of two that are as fast the lower id is first, wherever they stand.
        """
        return self.first_with_times(probs, count)[0]

    def first_with_times(self, probs: Probs, count: int) -> tuple[list[int], Probs]:
        """As `first`, and when they are there, E / p: float64, shape (places,), ascending."""
        able = self._runners(probs, count)
        # By time, then by the cloud's id: places differ between drafters, and of equals the same token must win on both ends.
        times = self._finish(probs, able)
        order = np.lexsort((self._ids[able], times))[:count]
        return able[order].tolist(), times[order]

    def _runners(self, probs: Probs, count: int) -> NDArray[np.intp]:
        """Tokens among which the first `count` are; hardly more."""
        # One at temperature 0, few where distributions are truncated: there is nothing to bound.
        if FEW * np.count_nonzero(above := probs > 0) <= len(probs):
            return np.flatnonzero(above)
        # Most tokens need no logarithm: the likeliest are raced in full, and their times bound what any other must beat.
        likely = _likeliest(probs, count)
        if len(likely) < count:
            return likely
        return self._able(probs, float(np.partition(self._finish(probs, likely), count - 1)[count - 1]))

    def _finish(self, probs: Probs, places: NDArray[np.intp]) -> NDArray[np.float64]:
        """When these tokens are there, E / p."""
        times = -np.log(_uniform(self._keys, self._ids[places]))
        with np.errstate(over="ignore"):  # a probability may be so small that its time is beyond all numbers
            times /= probs[places]
        return times

    def _able(self, probs: Probs, limit: float) -> NDArray[np.intp]:
        """The tokens that may be as fast as the limit: those with E <= p * limit, hence 1 - u <= p * limit; hardly more.

        Of u the upper 32 bits are enough for that, so most tokens need no other word and no logarithm.
        """
        able, reach = [], limit * 2.0**32 * SLACK
        # Even the likeliest are so unlikely that their times overflow: the bound rules nobody out.
        if not np.isfinite(reach):
            return np.flatnonzero(probs)
        for start in range(0, len(probs), BLOCK):
            words = _mixed(self._ids[start : start + BLOCK], self._keys[0], self._keys[1])
            able.append(np.flatnonzero(np.invert(words, out=words) <= probs[start : start + BLOCK] * reach) + start)
        found = np.concatenate(able)
        return found[probs[found] > 0]


def _likeliest(probs: Probs, count: int) -> NDArray[np.intp]:
    """Tokens that are among the likeliest, `count` at least, ascending; all that are above 0 if they are fewer."""
    highest = float(probs.max())
    # Each floor is a look at the whole vocabulary, so they fall fast; mostly the first or the second one is low enough.
    for exponent in (3, 6, 12, 24, 48, 96):
        floor = highest * 2.0**-exponent
        found = np.flatnonzero(probs >= floor)
        # A floor that underflowed to 0 would let in tokens of probability 0, which cannot win.
        if len(found) >= count and floor > 0:
            return found[: max(SAMPLE, count)]
    return np.flatnonzero(probs)


def _uniform(keys: tuple[int, int, int, int], ids: Ids) -> NDArray[np.float64]:
    uniform = np.empty(len(ids))
    for start in range(0, len(ids), BLOCK):
        block, part = ids[start : start + BLOCK], uniform[start : start + BLOCK]
        np.multiply(_mixed(block, keys[0], keys[1]), 2.0**20, out=part)
        part += _mixed(block, keys[2], keys[3]) >> np.uint32(12)
    uniform += 0.5
    uniform *= 2.0**-52
    return uniform


def _mixed(ids: Ids, first: int, second: int) -> Words:
    """A word for each id, from two keys: three multiplications, with the bits above folded down before each and at the end.

    Multipliers and shifts are those of a search for little bias (Wellons, `triple32`).
    """
    words = ids.astype(np.uint32)
    words += np.uint32(first)
    words ^= (spare := np.right_shift(words, 17))
    words *= np.uint32(0xED5AD4BB)
    words ^= np.uint32(second)
    words ^= np.right_shift(words, 11, out=spare)
    words *= np.uint32(0xAC4C1B51)
    words ^= np.right_shift(words, 15, out=spare)
    words *= np.uint32(0x31848BAB)
    words ^= np.right_shift(words, 14, out=spare)
    return words


def _philox(low: int, high: int, counter: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Philox4x32-10 (Salmon et al. 2011): the four words of a counter under the key (low, high)."""
    first, second, third, fourth = counter
    for _ in range(_ROUNDS):
        one, other = _MULTIPLIERS[0] * first, _MULTIPLIERS[1] * third
        first, second, third, fourth = (other >> 32) ^ second ^ low, other & _LOW, (one >> 32) ^ fourth ^ high, one & _LOW
        low, high = (low + _STEPS[0]) & _LOW, (high + _STEPS[1]) & _LOW
    return first, second, third, fourth

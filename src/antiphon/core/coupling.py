"""Noise that both ends know, so that the same token wins on both as often as can be (METHODS 3, coupled drafting).

For every answer position and every token there is an exponential number E, the same on both ends. The token of a law p is the
one with the smallest E / p: a *race*, which token x wins with probability p(x). Two similar laws mostly have the same winner,
and nobody needs to send a probability to find out.
"""

import numpy as np
from numpy.typing import NDArray

from antiphon.core.distributions import Probs

ROLE = 7
"""The second half of the key: no stream of `antiphon.core.chance` has it."""


class Noise:
    """Races from the raw output of numpy's Philox4x64-10, which is stable across platforms and numpy versions.

    The key is (seed, ROLE); token n has word n mod 4 of the counter (n // 4 + 1, 0, position, 0). Of a raw number r the uniform
    number is ((r >> 12) + 1/2) / 2^52, exact in float64, never 0 and never 1 (with one bit more the last would round up to 1),
    and E = -log of it, between 1.1e-16 and 36.8.
    """

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Philox(key=np.array([seed, ROLE], dtype=np.uint64))
        self._state = self._generator.state
        self._state["buffer_pos"] = 4  # nothing buffered: the next number comes from the counter

    def race(self, position: int) -> "NoiseRace":
        """The race at a target position (the index of a token in the answer)."""
        return NoiseRace(self, position)

    def handicap(self, position: int, token: int) -> float:
        """The log E of a token: at temperature T it wins if its logit less T times this is the largest."""
        return float(np.log(-np.log(self.uniform(position, token + 1)[token])))

    def uniform(self, position: int, count: int) -> NDArray[np.float64]:
        """The uniform numbers of tokens 0 to count - 1: float64, shape (count,), in (0, 1)."""
        self._state["state"]["counter"][:] = (0, 0, position, 0)  # numpy adds 1 before the first block
        self._generator.state = self._state
        raw: NDArray[np.uint64] = self._generator.random_raw(count)
        raw >>= np.uint64(12)
        uniform = raw.astype(np.float64)
        uniform += 0.5
        uniform *= 2.0**-52
        return uniform


class NoiseRace:
    """The race at one position."""

    def __init__(self, noise: Noise, position: int) -> None:
        self._noise, self._position = noise, position

    def winner(self, probs: Probs) -> int:
        """The token with the smallest E / p."""
        return self.first(probs, 1)[0]

    def times(self, count: int) -> NDArray[np.float64]:
        """The E of tokens 0 to count - 1: float64, shape (count,)."""
        uniform = self._noise.uniform(self._position, count)
        np.log(uniform, out=uniform)
        return np.negative(uniform, out=uniform)

    def first(self, probs: Probs, count: int) -> list[int]:
        """The `count` tokens with the smallest E / p, winner first; fewer if fewer have a probability above 0."""
        uniform = self._noise.uniform(self._position, len(probs))
        likely = _likeliest(probs, count)
        times = -np.log(uniform[likely]) / probs[likely]
        # Whoever is faster than the slowest of these has E < p * limit, so u > exp(-p * limit) >= 1 - p * limit.
        limit = float(times.max()) if len(likely) == count else np.inf
        able = np.flatnonzero((uniform >= 1.0 - probs * limit) & (probs > 0)) if np.isfinite(limit) else likely
        order = np.argsort(-np.log(uniform[able]) / probs[able], kind="stable")
        runners: list[int] = able[order[:count]].tolist()
        return runners


def _likeliest(probs: Probs, count: int) -> NDArray[np.intp]:
    """The `count` likeliest tokens, ascending; all that are above 0 if they are fewer."""
    if count == 1:
        return np.array([int(np.argmax(probs))])
    if count >= len(probs):
        return np.flatnonzero(probs)
    best = np.sort(np.argpartition(probs, len(probs) - count)[len(probs) - count :])
    return best[probs[best] > 0]

"""What a remote end says of its scores of one step: some of them, and a bound on all the others (METHODS 4).

Scores cross as 16-bit logarithms, and what counts on either end is the decoded value: equal codes are ties. A token's
*strength* is its probability, divided by its noise E when the answer is sampled (`antiphon.core.mixture.weights`); the remote
end ranks by that.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from antiphon.core.distributions import Probs

Values = NDArray[np.float64]
"""One number for each token: float64, shape (tokens,)."""
Codes = NDArray[np.uint16]
"""One code for each token, shape (tokens,)."""
Bound = Literal["next", "global"]
"""What bounds the scores that were not sent: the largest of them, or the paper's: the largest of all, which after each chunk is
tightened to the largest of those that were not sent by then (CONCORD V-A)."""

BLOCK = 512
"""Values of which first only the largest is looked at; for a vocabulary of 262,144 as many blocks."""
ZERO = 2**16 - 1
"""The code of 0, and of log-probability -inf."""


@dataclass(frozen=True, slots=True)
class LogGrid:
    """Positive numbers as 16-bit logarithms: code c is exp(top - c * step), so a larger code is a smaller number; ZERO is 0."""

    top: float
    step: float

    def codes(self, values: Values) -> Codes:
        """The nearest codes; what is above the grid gets the largest value, what is below it 0."""
        with np.errstate(divide="ignore"):
            steps = np.log(values)
        steps -= self.top
        steps /= -self.step
        np.clip(steps, 0, ZERO, out=steps)
        return np.rint(steps, out=steps).astype("<u2")

    def code_above(self, value: float) -> int:
        """The code of the smallest value of the grid that is surely not below `value`, also by another machine's logarithm."""
        if value == 0:
            return ZERO
        steps = (self.top - math.log(value)) / self.step - 1e-6
        return min(max(math.floor(steps), 0), ZERO - 1)

    def values(self, codes: Codes) -> Values:
        """The numbers that codes stand for, float64, in the shape of `codes`."""
        decoded: Values = _table(self)[codes]
        return decoded

    def value(self, code: int) -> float:
        """The number that one code stands for."""
        return float(_table(self)[code])


SCORES = LogGrid(top=0.0, step=2.0**-11)
"""Probabilities from 1 down to e^-32, each within 0.025 %; a vocabulary of 262,144 tokens loses at most 3.3e-9 of its mass."""
SUMS = LogGrid(top=38.0, step=2.0**-10)
"""Probabilities divided by noise, from e^38 (noise is at least e^-36.8) down to e^-26."""


def bound_grid(*, sampled: bool) -> LogGrid:
    """The grid of bounds: that of the scores itself under greedy decoding, so that a bound is exact."""
    return SUMS if sampled else SCORES


@lru_cache(maxsize=4)
def _table(grid: LogGrid) -> Values:
    values: Values = np.exp(grid.top - grid.step * np.arange(ZERO + 1))
    values[ZERO] = 0.0
    values.setflags(write=False)
    return values


@dataclass(frozen=True, slots=True)
class Report:
    """What crosses: scores, and the bound that holds for every token that is not in this report or an earlier one.

    scores: SCORES code by token id, the strongest first. bound: a code of `bound_grid`. Reports of a step are absorbed in the
    order in which they were made: a bound takes everything before it as received.
    """

    scores: Mapping[int, int]
    bound: int


class StepScores:
    """One step of a remote end: its scores, and which of them were sent.

    probs: its distribution, shape (tokens,). noise: the E of each token when the answer is sampled (METHODS 3).
    """

    def __init__(self, probs: Probs, noise: Values | None = None, bound: Bound = "next") -> None:
        self.codes = SCORES.codes(probs)
        """All scores, by token id."""
        self._sampled = noise is not None
        self._left = SCORES.values(self.codes)  # the strength of what was not sent, -1 for the rest
        if noise is not None:
            self._left /= noise
        self.draft = int(self._left.argmax())
        """The strongest token, the end's own."""
        self._loose = self._code(self.draft) if bound == "global" else None

    def strongest(self, count: int, enough: float = 0.0) -> Report:
        """The `count` strongest tokens that were not sent yet, lowest id first among equals; fewer if fewer are left.

        enough: of them, those at least this share as strong as the first. The first of a step's first report is this end's own
        draft.
        """
        ids = ranked(self._left, count)
        return self.of([token for token in ids if self._left[token] >= enough * self._left[ids[0]]])

    def chunk(self, count: int) -> Report:
        """The `count` strongest that were not sent yet, in answer to a question: it tightens the global bound, too."""
        scores = self._sent(ranked(self._left, count))
        if self._loose is not None:
            self._loose = self._next()
        return Report(scores, self._bound())

    def of(self, tokens: Iterable[int]) -> Report:
        """The scores of these tokens. Raises IndexError if one is not in the vocabulary."""
        ids = [int(token) for token in tokens]
        if ids and min(ids) < 0:
            raise IndexError("a token id is negative")
        return Report(self._sent(ids), self._bound())

    def _sent(self, ids: list[int]) -> dict[int, int]:
        # Scores cross without the noise, which both ends have; only bounds are on the sum.
        scores = {token: int(self.codes[token]) for token in ids}
        self._left[ids] = -1.0
        return scores

    def _bound(self) -> int:
        return self._next() if self._loose is None else self._loose

    def _next(self) -> int:
        """That of the largest strength that was not sent."""
        return self._code(int(self._left.argmax()))

    def _code(self, token: int) -> int:
        left = float(self._left[token])
        if left <= 0:
            return ZERO  # everything was sent, or the rest is 0
        return SUMS.code_above(left) if self._sampled else int(self.codes[token])


def ranked(values: Values, count: int) -> list[int]:
    """The ids of the `count` largest values that are not negative, largest first, lowest id first among equals."""
    # A partition of a whole vocabulary a step would cost more than all else here: the floor leaves few to look at.
    ids = np.flatnonzero(values >= _floor(values, count))
    if len(ids) > count:
        able = values[ids]
        border = np.partition(able, len(able) - count)[len(able) - count] if count else np.inf
        above, ties = ids[able > border], ids[able == border]
        ids = np.concatenate([above, ties[: count - len(above)]])
    first: list[int] = ids[np.argsort(-values[ids], kind="stable")].tolist()
    return first


def _floor(values: Values, count: int) -> float:
    """What the `count` largest values reach for certain: so many blocks have a value that does. At least 0."""
    largest = np.maximum.reduceat(values, np.arange(0, len(values), BLOCK))
    if not 0 < count <= len(largest):
        return 0.0
    return max(0.0, float(np.partition(largest, len(largest) - count)[len(largest) - count]))

"""How far two tokens are apart, in logits: by what decides, which is the whole way from logits to the token that wins.

Penalties, biases, temperature, noise, and who is kept by top-k, top-p and min-p: instead of a formula for each of them, the
logits are moved and the token is drawn again.
"""

import math
from collections.abc import Callable

import numpy as np

from antiphon.core.distributions import Logits

MOST = 8.0
"""Logits; more is no noise of any kind."""
_LEAST = 2.0**-13
_DIRECTIONS = ((1, -1, -1), (1, -1, 0), (1, -1, 1))
"""How the wanted token moves, the other one, and all the rest: with them up the other one drops out of truncated probs."""


def farthest(first: Logits, second: Logits) -> float:
    """By how much two readings differ in a logit at most: by nothing where both rule it out, without bound where one does."""
    with np.errstate(invalid="ignore"):  # -inf less -inf
        apart = np.abs(first - second)
    apart[first == second] = 0.0
    return float(apart.max())


def least_shift(logits: Logits, wanted: int, other: int, wins: Callable[[Logits], bool]) -> float:
    """The least shift of every logit, up or down, by which `wanted` wins instead of `other`; infinite above MOST.

    logits: float32, shape (tokens,). wins: whether `wanted` wins with such logits. Found to an eighth of it, of the shifts in
    three directions; no smaller one than 2^-13 is told.
    """
    found = math.inf
    for ours, theirs, rest in _DIRECTIONS:
        direction = np.full(len(logits), rest, np.float32)
        direction[[wanted, other]] = ours, theirs

        def holds(shift: float, direction: Logits = direction) -> bool:
            return wins(logits + np.float32(shift) * direction)

        found = min(found, _least(holds, min(found, MOST)))
    return found


def _least(holds: Callable[[float], bool], most: float) -> float:
    if not holds(most):
        return math.inf
    # Halved until it holds no more, then narrowed to an eighth: a shift is compared with noise, and needs no more digits.
    high = most
    while high > _LEAST and holds(high / 2):
        high /= 2
    low = high / 2
    for _ in range(3):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high

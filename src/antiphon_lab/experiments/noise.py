"""`antiphon-lab bench noise`: what the noise of a position costs, by the tokens that take part (METHODS 3, noise).

On one thread, without a model: the uniform numbers of tokens; the winner of the race over a distribution like a language
model's, and over one in which all tokens are alike, the worst there is; and, to compare, making the first from logits, which
every token of any method takes. The median counts: the first ones find nothing in the caches.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from antiphon.config import SamplingParams
from antiphon.core.distributions import Ids, Probs, process
from antiphon.core.noise import Noise
from antiphon.options import require

SAMPLING = SamplingParams(temperature=1.0)
EXPONENT = 1.2
"""The likeliest tokens of a language model's distribution fall about so: the probability of the n-th is n^-1.2 of the first."""
KEY = 1
MOST = 2**22
"""Tokens at most: as many ids as the wire's numbers are tested with."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians of so many repeats, in milliseconds.

    uniform: the numbers of all tokens. race, even_race: the winner over a distribution like a language model's, or where all
    tokens are alike. distribution: to make the first of these from logits.
    """

    tokens: int
    repeats: int
    uniform_ms: float
    race_ms: float
    even_race_ms: float
    distribution_ms: float

    @property
    def share(self) -> float:
        """A race over making its distribution: this, unlike a time, is much the same on every machine."""
        return self.race_ms / self.distribution_ms


def numbers(text: str) -> tuple[int, ...]:
    """Numbers of tokens, written with commas between. Raises UsageError."""
    parts = [part.strip() for part in text.split(",")]
    fits = all(part.isascii() and part.isdigit() and 0 < int(part) <= MOST for part in parts)
    require(fits, f"tokens must be numbers from 1 to {MOST} with commas between, not {text!r}")
    return tuple(map(int, parts))


def run(tokens: Sequence[int], repeats: int) -> list[Cost]:
    """Measure each number of tokens. Raises UsageError for no repeats."""
    require(repeats > 0, f"each must be measured at least once, not {repeats} times")
    return [measure(count, repeats) for count in tokens]


def measure(tokens: int, repeats: int) -> Cost:
    """The cost of one position for so many tokens."""
    noise, ids = Noise(KEY), np.random.default_rng(KEY).permutation(tokens).astype(np.int32)
    logits = (-EXPONENT * np.log1p(ids)).astype(np.float32)
    probs, even = process(logits, SAMPLING), np.full(tokens, 1.0 / tokens)
    return Cost(
        tokens,
        repeats,
        _median(lambda position: noise.uniform(position, ids), repeats),
        _median(lambda position: _winner(noise, position, ids, probs), repeats),
        _median(lambda position: _winner(noise, position, ids, even), repeats),
        _median(lambda position: process(logits, SAMPLING), repeats),
    )


def _winner(noise: Noise, position: int, ids: Ids, probs: Probs) -> int:
    return noise.race(position, ids).winner(probs)


def _median(call: Callable[[int], object], repeats: int) -> float:
    """Milliseconds of a call, each for another position."""
    found = []
    for position in range(repeats):
        started = time.perf_counter()
        call(position)
        found.append(1000 * (time.perf_counter() - started))
    return statistics.median(found)


def table(costs: Sequence[Cost]) -> Table:
    """A row for each number of tokens."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown.title, shown.title_justify = "Milliseconds of a position, medians on one thread", "left"
    for heading in ("tokens", "positions", "numbers", "race", "race, all alike", "distribution", "race over distribution"):
        shown.add_column(heading, justify="right")
    for cost in costs:
        times = (cost.uniform_ms, cost.race_ms, cost.even_race_ms, cost.distribution_ms)
        shown.add_row(f"{cost.tokens:,}", f"{cost.repeats:,}", *(f"{time:.3f}" for time in times), f"{cost.share:.2f}")
    return shown

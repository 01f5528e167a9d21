"""The token after a rejection, drawn by two ends that each know half (METHODS 2; X-CoSD 3).

The device knows the draft distribution p over the common vocabulary C (the first numbers of the wire order), the cloud the
target q.

*Hybrid resampling* (HR): the cloud sends q *lumped*, the values on C and the mass outside it as one value more. The device
draws from the residual max(q - p, 0) of that; if the lump is drawn, the token is a spare that the cloud drew from q outside C.

*Server resampling with device verification* (SR-DV): the cloud draws candidates from q, the device accepts z with probability
max(1 - p(z) / q(z), 0). The draft x that was rejected has q(x) < p(x), so it never passes: candidates are drawn without it.
"""

import numpy as np

from antiphon.core.distributions import Probs
from antiphon.core.rounding import Quantise, Ratios

MAX_CANDIDATES = 31
"""Candidates in one message of `xcosd-e` at most: with none, a count of 5 bits."""


def lumped(target_probs: Probs, size: int) -> Probs:
    """The distribution on the first `size` tokens, and everything else as one value more: shape (size + 1,)."""
    return np.append(target_probs[:size], target_probs[size:].sum())


def quantise_lumped(size: int, ratios: Ratios) -> Quantise:
    """The quantiser of a target that crosses lumped: outside C every value moves by the same factor."""

    def quantise(probs: Probs) -> Probs:
        distribution = lumped(probs, size)
        rounded = ratios.probs(ratios.codes(distribution))
        # One factor for all outside C: the device is never told their values, and the spare's distribution stays as it was.
        factor = rounded[-1] / distribution[-1] if distribution[-1] > 0 else 0.0
        return np.concatenate([rounded[:-1], probs[size:] * factor])

    return quantise


def spare_distribution(target_probs: Probs, size: int) -> Probs:
    """The distribution of a token outside C, given that it is one: shape (tokens - size,)."""
    outside = target_probs[size:].copy()
    outside /= outside.sum()
    return outside


def candidate_distribution(target_probs: Probs, rejected: int) -> Probs:
    """The target without the draft that was rejected, shape of `target_probs`."""
    distribution = target_probs.copy()
    # Something is left to draw from: the draft fell, so the target gives it less than p(x), which is at most 1.
    distribution[rejected] = 0.0
    distribution /= distribution.sum()
    return distribution


def chance_to_round_up(units: float) -> float:
    """With which probability to round `units` > 0 up to a whole number, so that the mean of 1 / rounded is 1 / units.

    Draft probabilities are whole numbers n of the same units. max(1 - n / v, 0) is linear in 1 / v between two neighbouring
    whole numbers v, so the device's test with the rounded value accepts exactly as often as one with the value itself.
    """
    low = np.floor(units)
    return float(min(1.0, (low + 1) * (units - low) / units))


def usual_floor(draft_prob: float) -> float:
    """The `floor` (see `CandidateCount`) that is usual where a draft of this probability fell: what both ends can say of it.

    q(x)/p(x) = r leaves the draft with probability r, so if all r are alike, one that fell has r = 1/3 on average.
    """
    return (2 * draft_prob / 3) / (1 - draft_prob / 3)


def chance_of_candidate(draft_units: int, candidate_units: int) -> float:
    """With which probability the device accepts a candidate, both probabilities in the same units."""
    return max(0.0, 1.0 - draft_units / candidate_units)


class CandidateCount:
    """How many candidates to send: a running estimate of how often one passes, and the number that costs least.

    A candidate passes with probability a = TV(p, q) / (1 - q(x)), at least the `floor` (p(x) - q(x)) / (1 - q(x)), which the
    cloud knows. The rest of the way, g in a = floor + (1 - floor) g, is estimated from outcomes, and taken to vary from place
    to place as a beta distribution of SPREAD trials: where candidates failed before, more are sent.

    passed, tested: what it knows of outcomes. With `usual_floor` both ends can keep the same estimate.
    """

    SPREAD = 4.0
    TRIP_BITS = 1000.0
    """What one more round trip may cost in bits: 50 ms of a 20 kbit/s link."""

    def __init__(self, passed: float = 1.0, tested: float = 2.0) -> None:
        self._passed, self._tested = passed, tested

    @property
    def known(self) -> tuple[float, float]:
        """What it knows of outcomes: `passed` and `tested` of one that goes on."""
        return self._passed, self._tested

    def observe(self, floor: float, tested: int, passed: bool) -> None:
        """Learn that `tested` candidates were tested, of which the last passed or none did."""
        self._passed += passed - floor * tested
        self._tested += (1 - floor) * tested

    def failing(self, floor: float, failed: int) -> Probs:
        """The probability that 1, 2, ... MAX_CANDIDATES candidates all fail after `failed` have, shape (MAX_CANDIDATES,)."""
        # Never sure: at 0 no number of candidates would seem to do, at 1 one would always, and neither would be unlearned.
        mean = float(np.clip(self._passed / self._tested, 0.02, 0.98))
        passing, missing = self.SPREAD * mean, self.SPREAD * (1 - mean) + failed
        counts = np.arange(MAX_CANDIDATES, dtype=np.float64)
        # Beta-binomial: each candidate that failed makes the next one's failing likelier, for the place may be a bad one.
        factors = (1 - floor) * (missing + counts) / (passing + missing + counts)
        return np.cumprod(factors).astype(np.float64)

    def best(self, floor: float, failed: int, bits: float) -> tuple[int, float]:
        """The number of candidates of `bits` bits each that is expected to cost least, and that cost in bits."""
        fail = self.failing(floor, failed)
        # A message that fails is followed by one like it, so the expected cost is that of one over the chance that it passes.
        costs = (np.arange(1, MAX_CANDIDATES + 1) * bits + self.TRIP_BITS * fail) / (1 - fail)
        index = int(np.argmin(costs))
        return index + 1, float(costs[index])

"""What a wire can carry: probs are rounded before anyone draws from them (METHODS 0, what is sent is what was sampled).

*Fixed point* is for draft distributions of which single values cross: every value is exact on the wire, and they sum to exactly
1.
*Ratios* to the largest value, as logarithms or as float32, are for distributions that cross whole. Rounding a rounded
distribution again gives the same codes, so both ends hold one distribution, whichever of them rounded it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from antiphon.core.distributions import Probs

Quantise = Callable[[Probs], Probs]
"""Rounds a distribution to what a wire carries."""


def exactly(probs: Probs) -> Probs:
    """The quantiser of a wire that carries no distribution: nothing is rounded."""
    return probs


def fixed_point(probs: Probs, bits: int) -> NDArray[np.int64]:
    """Round to multiples of 1 / (2^bits - 1) that sum to exactly 1: int64 counts, shape (tokens,), sum 2^bits - 1.

    The cumulated sum is rounded, so each count is within 1 of its exact value, and a probability of 0 stays 0. Every count
    fits in `bits` bits, a point mass too. So the sum and every single value are exact on the wire: the distribution that is
    sampled is the distribution that was sent.
    """
    total = float(2**bits - 1)
    cumulated = np.cumsum(probs)
    # By the last sum and not by 1, from which it differs in the last digits: so the counts end at exactly 2^bits - 1.
    cumulated *= total / cumulated[-1]
    counts = np.rint(cumulated, out=cumulated).astype(np.int64)
    counts[1:] -= counts[:-1].copy()
    return counts


def from_fixed_point(counts: NDArray[np.int64], bits: int) -> Probs:
    """The probabilities that `fixed_point` counts stand for."""
    return counts / float(2**bits - 1)


def quantise_fixed(bits: int) -> Quantise:
    """The quantiser of `fixed_point` at so many bits."""
    return lambda probs: from_fixed_point(fixed_point(probs, bits), bits)


class Ratios(Protocol):
    """A code for the ratios of a distribution's values to the largest of them, which is 1."""

    @property
    def bits(self) -> int:
        """Bits of one value on the wire."""
        ...

    @property
    def dtype(self) -> str:
        """The codes' numpy type, little end first."""
        ...

    @property
    def zero(self) -> float:
        """The code of a probability of 0."""
        ...

    def codes(self, probs: Probs) -> NDArray[Any]:
        """The codes of a distribution, shape (tokens,)."""
        ...

    def probs(self, codes: NDArray[Any]) -> Probs:
        """The distribution that codes stand for, normalised in float64. Raises ValueError if they stand for none."""
        ...


@dataclass(frozen=True, slots=True)
class LogRatios:
    """Logarithms: of 2^bits codes, code c is the ratio 2^(-octaves c / (2^bits - 2)), the last is 0; so are smaller ratios.

    A ratio moves by at most e^(step / 2), so the distribution by at most step / 4 + tokens * 2^-octaves in total variation:
    1.1e-4 for 262,144 tokens at 16 bits, 0.011 at 8 bits besides what is cut off. (Half floats would lose everything below
    6e-8, which is a lot of such a vocabulary.)
    """

    bits: int = 16
    octaves: int = 40

    @property
    def dtype(self) -> str:
        """Unsigned integers."""
        return f"<u{self.bits // 8}"

    @property
    def zero(self) -> int:
        """The last code."""
        return (1 << self.bits) - 1

    @property
    def step(self) -> float:
        """The natural logarithm of the ratio of two neighbouring codes' values."""
        return self.octaves * math.log(2) / (self.zero - 1)

    def codes(self, probs: Probs) -> NDArray[Any]:
        """The nearest codes, unsigned integers."""
        with np.errstate(divide="ignore"):
            steps = np.log(probs / probs.max())
        steps /= -self.step
        # Ratios below the smallest, and the infinite logarithm of a probability of 0, all end at the code of 0.
        np.minimum(steps, self.zero, out=steps)
        codes: NDArray[Any] = np.rint(steps, out=steps).astype(self.dtype)
        return codes

    def probs(self, codes: NDArray[Any]) -> Probs:
        """The distribution of these codes; the largest value must have code 0."""
        # A peer may send any codes. Without a code 0 these would decode to something that no sender rounded, and round
        # differently again.
        if not len(codes) or codes.min() != 0:
            raise ValueError("the largest is not 1")
        probs: Probs = _ratios_of_log_codes(self)[codes]
        probs /= probs.sum()
        return probs


@lru_cache(maxsize=4)
def _ratios_of_log_codes(code: LogRatios) -> Probs:
    ratios: Probs = np.exp(-code.step * np.arange(2**code.bits))
    ratios[-1] = 0.0
    ratios.setflags(write=False)
    return ratios


class FloatRatios:
    """float32 ratios: within 2^-24 of the distribution, in total variation."""

    bits = 32
    dtype = "<f4"
    zero = 0.0

    def codes(self, probs: Probs) -> NDArray[Any]:
        """The nearest ratios, float32."""
        ratios: NDArray[Any] = (probs / probs.max()).astype(self.dtype)
        return ratios

    def probs(self, codes: NDArray[Any]) -> Probs:
        """The distribution of these ratios; none may be negative or not finite, and the largest must be 1."""
        if not len(codes) or not np.isfinite(codes).all() or codes.min() < 0 or codes.max() != 1:
            raise ValueError("they are negative, not finite, or the largest is not 1")
        probs = codes.astype(np.float64)
        probs /= probs.sum()
        return probs


def ratios_of(precision: int) -> Ratios:
    """The code of a distribution at `precision` bits: 8, 16 or 32."""
    codes: dict[int, Ratios] = {8: LogRatios(8, 16), 16: LogRatios(16, 40), 32: FloatRatios()}
    return codes[precision]


def quantise_ratios(ratios: Ratios) -> Quantise:
    """The quantiser of a distribution that crosses in this code."""
    return lambda probs: ratios.probs(ratios.codes(probs))

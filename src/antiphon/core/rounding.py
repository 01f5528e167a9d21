"""What a wire can carry: laws are rounded before anyone draws from them (METHODS 0, "what is sent is what was sampled").

A device rounds its draft laws to fixed point: every single value is exact on the wire, and they sum to exactly 1. A cloud
rounds its target to ratios to the largest value, as 16-bit logarithms or as float32. Rounding a rounded law again gives the
same codes, so both ends hold one law, whichever of them rounded it.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar, Protocol

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
    fits in `bits` bits, a point mass too. So the sum and every single value are exact on the wire: the law that is sampled is
    the law that was sent.
    """
    total = float(2**bits - 1)
    cumulated = np.cumsum(probs)
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
    """A code for the ratios of a law's values to the largest of them, which is 1."""

    bits: ClassVar[int]
    """Bits of one value on the wire."""
    dtype: ClassVar[str]
    """The codes' numpy type, little end first."""
    zero: ClassVar[float]
    """The code of a probability of 0."""

    def codes(self, probs: Probs) -> NDArray[Any]:
        """The codes of a law, shape (tokens,)."""
        ...

    def probs(self, codes: NDArray[Any]) -> Probs:
        """The law that codes stand for, normalised in float64. Raises ValueError if they stand for none."""
        ...


class LogRatios:
    """16-bit logarithms: code c is the ratio 2^(-40 c / 65534), code 65535 is 0; smaller ratios than 2^-40 become 0.

    A ratio moves by at most e^(STEP / 2), so the law by at most STEP / 4 + tokens * 2^-40 in total variation: 1.1e-4 for
    262,144 tokens. (Half floats would lose everything below 6e-8, which is a lot of such a vocabulary.)
    """

    bits: ClassVar[int] = 16
    dtype: ClassVar[str] = "<u2"
    zero: ClassVar[float] = 65535
    OCTAVES: ClassVar[int] = 40
    STEP: ClassVar[float] = 40 * 0.6931471805599453 / 65534

    def codes(self, probs: Probs) -> NDArray[Any]:
        """The nearest codes, uint16."""
        with np.errstate(divide="ignore"):
            steps = np.log(probs / probs.max())
        steps /= -self.STEP
        np.minimum(steps, self.zero, out=steps)
        codes: NDArray[Any] = np.rint(steps, out=steps).astype(self.dtype)
        return codes

    def probs(self, codes: NDArray[Any]) -> Probs:
        """The law of these codes; the largest value must have code 0."""
        if not len(codes) or codes.min() != 0:
            raise ValueError("the largest is not 1")
        probs: Probs = _ratios_of_log_codes()[codes]
        probs /= probs.sum()
        return probs


@lru_cache(maxsize=1)
def _ratios_of_log_codes() -> Probs:
    ratios: Probs = np.exp(-LogRatios.STEP * np.arange(65536))
    ratios[65535] = 0.0
    ratios.setflags(write=False)
    return ratios


class FloatRatios:
    """float32 ratios: within 2^-24 of the law, in total variation."""

    bits: ClassVar[int] = 32
    dtype: ClassVar[str] = "<f4"
    zero: ClassVar[float] = 0.0

    def codes(self, probs: Probs) -> NDArray[Any]:
        """The nearest ratios, float32."""
        ratios: NDArray[Any] = (probs / probs.max()).astype(self.dtype)
        return ratios

    def probs(self, codes: NDArray[Any]) -> Probs:
        """The law of these ratios; none may be negative or not finite, and the largest must be 1."""
        if not len(codes) or not np.isfinite(codes).all() or codes.min() < 0 or codes.max() != 1:
            raise ValueError("they are negative, not finite, or the largest is not 1")
        probs = codes.astype(np.float64)
        probs /= probs.sum()
        return probs


def ratios_of(precision: int) -> Ratios:
    """The code of a target law at `precision` bits: 16 or 32."""
    return FloatRatios() if precision == 32 else LogRatios()


def quantise_ratios(ratios: Ratios) -> Quantise:
    """The quantiser of a target law that crosses in this code."""
    return lambda probs: ratios.probs(ratios.codes(probs))

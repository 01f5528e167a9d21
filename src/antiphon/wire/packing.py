"""Payloads, packed to the bit: numbers in the fewest bits, then arrays on a byte boundary, little end first.

A reader checks everything that it hands out, so a method never sees a number out of range, a distribution that is not
one, or bytes left over. Every fault is a ProtocolError.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from antiphon.core.distributions import Probs, from_fixed_point, from_float32, to_float32
from antiphon.errors import ProtocolError


class Writer:
    """Builds one payload."""

    def __init__(self) -> None:
        self._done = bytearray()
        self._bits = 0
        self._count = 0

    def number(self, value: int, bits: int) -> None:
        """Append an unsigned number in `bits` bits."""
        self._bits |= value << self._count
        self._count += bits

    def probability(self, prob: float, bits: int) -> None:
        """Append one probability that is a multiple of 1 / (2^bits - 1)."""
        self.number(round(prob * (2**bits - 1)), bits)

    def probabilities(self, probs: Probs, bits: int) -> None:
        """Append a distribution whose values are multiples of 1 / (2^bits - 1), `bits` (16 or 32) each."""
        counts = np.rint(probs * float(2**bits - 1))
        self._array(counts.astype(f"<u{bits // 8}"))

    def float32_distribution(self, probs: Probs) -> None:
        """Append a distribution as float32 ratios to its largest value; both ends then use `from_float32` of them."""
        self._array(to_float32(probs).astype("<f4"))

    def finish(self) -> bytes:
        """The payload."""
        self._align()
        return bytes(self._done)

    def _array(self, values: NDArray[np.generic]) -> None:
        self._align()
        self._done += values.tobytes()

    def _align(self) -> None:
        self._done += self._bits.to_bytes((self._count + 7) // 8, "little")
        self._bits = self._count = 0


class Reader:
    """Takes one payload apart, in the order in which it was written."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._cursor = 0  # in bits

    def number(self, bits: int, below: int, what: str) -> int:
        """An unsigned number of `bits` bits that must be under `below`; `what` names it in the error."""
        start, stop = self._cursor, self._cursor + bits
        chunk = int.from_bytes(self._payload[start // 8 : (stop + 7) // 8], "little")
        self._advance(stop)
        value = (chunk >> (start % 8)) & ((1 << bits) - 1)
        if value >= below:
            raise ProtocolError(f"{what} is {value}, but must be below {below}", "out-of-range")
        return value

    def probability(self, bits: int, what: str) -> float:
        """One probability above 0, a multiple of 1 / (2^bits - 1)."""
        count = self.number(bits, 2**bits, what)
        if count == 0:
            raise ProtocolError(f"{what} is 0, so it cannot have been drawn", "bad-probability")
        return count / float(2**bits - 1)

    def probabilities(self, size: int, bits: int, what: str) -> Probs:
        """A distribution over `size` tokens, as `Writer.probabilities` wrote it; it must sum to exactly 1."""
        counts = self._array(f"<u{bits // 8}", size).astype(np.int64)
        if int(counts.sum()) != 2**bits - 1:
            total = counts.sum() / (2**bits - 1)
            raise ProtocolError(f"{what} sum to {total:.9g}, not 1", "bad-probability")
        return from_fixed_point(counts, bits)

    def float32_distribution(self, size: int, what: str) -> Probs:
        """A distribution over `size` tokens, as `Writer.float32_distribution` wrote it."""
        try:
            return from_float32(self._array("<f4", size))
        except ValueError as error:
            raise ProtocolError(f"{what} are no distribution: {error}", "bad-probability") from error

    def finish(self) -> None:
        """Check that nothing is left but the padding of the last byte, all zero."""
        if self._payload[(self._cursor + 7) // 8 :] or self._padding():
            raise ProtocolError("the payload is longer than its message says")

    def _padding(self) -> int:
        return self._payload[self._cursor // 8] >> (self._cursor % 8) if self._cursor % 8 else 0

    def _array(self, dtype: str, size: int) -> NDArray[Any]:
        if self._padding():
            raise ProtocolError("the payload has padding that is not zero")
        start = (self._cursor + 7) // 8
        self._advance(8 * (start + size * np.dtype(dtype).itemsize))
        return np.frombuffer(self._payload, dtype, size, start)

    def _advance(self, cursor: int) -> None:
        if cursor > 8 * len(self._payload):
            raise ProtocolError("the payload is shorter than its message says")
        self._cursor = cursor

"""Payloads, packed to the bit: numbers in the fewest bits, then arrays on a byte boundary, little end first.

A reader checks everything that it hands out, so a method never sees a number out of range, a distribution that is not
one, or bytes left over. Every fault is a ProtocolError.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from antiphon.core.distributions import Probs
from antiphon.core.rounding import Ratios, from_fixed_point
from antiphon.errors import ProtocolError
from antiphon.vocabulary import bits_for


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

    def small(self, value: int) -> None:
        """Append an unsigned number that is mostly small, in Elias's gamma code of value + 1: 0 takes 1 bit, 1 and 2 take 3."""
        length = (value + 1).bit_length()
        self.number(1 << (length - 1), length)  # as many zeros as bits follow
        self.number(value + 1 - (1 << (length - 1)), length - 1)

    def probability(self, prob: float, bits: int) -> None:
        """Append one probability that is a multiple of 1 / (2^bits - 1)."""
        self.number(round(prob * (2**bits - 1)), bits)

    def probabilities(self, probs: Probs, bits: int) -> None:
        """Append a distribution whose values are multiples of 1 / (2^bits - 1), `bits` (16 or 32) each."""
        counts = np.rint(probs * float(2**bits - 1))
        self.array(counts.astype(f"<u{bits // 8}"))

    def distribution(self, probs: Probs, ratios: Ratios) -> None:
        """Append a distribution in this code, by `codes`."""
        self.codes(ratios.codes(probs), ratios.zero)

    def codes(self, codes: NDArray[Any], zero: float) -> None:
        """Append the codes of all tokens, or only those that are not `zero` with their tokens' numbers.

        Whichever is smaller; a bit in front says which.
        """
        support, bits = np.flatnonzero(codes != zero), 8 * codes.itemsize
        # Counted and not guessed: at temperature 0 or under top-k a target has few tokens, and is a hundredth of the dense
        # form.
        sparse = len(support) > 0 and _sparse_bits(len(support), len(codes), bits) < len(codes) * bits
        self.number(int(sparse), 1)
        if sparse:
            # One less, for none is not possible: so a count of all tokens fits into the bits of a token.
            self.number(len(support) - 1, bits_for(len(codes)))
            self.numbers(support, bits_for(len(codes)))
        self.array(codes[support] if sparse else codes)

    def numbers(self, values: NDArray[np.integer[Any]], bits: int) -> None:
        """Append unsigned numbers in `bits` bits each."""
        # All at once: a loop over numbers shifts an ever longer integer, in time quadratic in their count.
        flags = (values[:, None] >> np.arange(bits)) & 1
        packed = np.packbits(flags.astype(np.uint8), bitorder="little").tobytes()
        self.number(int.from_bytes(packed, "little"), bits * len(values))

    def finish(self) -> bytes:
        """The payload."""
        self._align()
        return bytes(self._done)

    def array(self, values: NDArray[np.generic]) -> None:
        """Append an array, on a byte boundary."""
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
        # Bits can hold more than there are tokens; no method should have to ask whether an id is one.
        if value >= below:
            raise ProtocolError(f"{what} is {value}, but must be below {below}", "out-of-range")
        return value

    def small(self, below: int, what: str) -> int:
        """A number as `Writer.small` wrote it, that must be under `below`."""
        length = 0
        while not self.number(1, 2, what):
            # Before more is read: no number has more bits than the largest that there may be.
            length += 1
            if length >= below.bit_length():
                raise ProtocolError(f"{what} must be below {below}, but has more bits", "out-of-range")
        value = (1 << length) - 1 + self.number(length, 1 << length, what)
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
        counts = self.array(f"<u{bits // 8}", size).astype(np.int64)
        # Whole numbers: the sum is exact, and what is off by one is refused. The test and the residual would else be about
        # something that is no distribution.
        if int(counts.sum()) != 2**bits - 1:
            total = counts.sum() / (2**bits - 1)
            raise ProtocolError(f"{what} sum to {total:.9g}, not 1", "bad-probability")
        return from_fixed_point(counts, bits)

    def distribution(self, size: int, ratios: Ratios, what: str) -> Probs:
        """A distribution over `size` tokens, as `Writer.distribution` wrote it."""
        codes = self.codes(ratios.dtype, size, ratios.zero, what)
        try:
            return ratios.probs(codes)
        except ValueError as error:
            raise ProtocolError(f"{what} are no distribution: {error}", "bad-probability") from error

    def codes(self, dtype: str, size: int, zero: float, what: str) -> NDArray[Any]:
        """The codes of `size` tokens, as `Writer.codes` wrote them."""
        if not self.number(1, 2, what):
            return self.array(dtype, size)
        support = self._support(size, what)
        listed = self.array(dtype, len(support))
        # One distribution has one form: else two payloads mean the same, and a sender could hide bits in the choice.
        if (listed == zero).any():
            raise ProtocolError(f"{what} list a token of probability 0", "bad-probability")
        full = np.full(size, zero, dtype=dtype)
        full[support] = listed
        return full

    def _support(self, size: int, what: str) -> NDArray[np.int64]:
        bits = bits_for(size)
        support = self.numbers(self.number(bits, size, f"the count of {what}") + 1, bits)
        if support[-1] >= size or (np.diff(support) <= 0).any():
            raise ProtocolError(f"{what} do not list tokens below {size} in ascending order", "out-of-range")
        return support

    def numbers(self, count: int, bits: int) -> NDArray[np.int64]:
        """`count` unsigned numbers of `bits` bits each; the caller checks them."""
        start, stop = self._cursor, self._cursor + bits * count
        self._advance(stop)
        data = np.frombuffer(self._payload, np.uint8, (stop + 7) // 8 - start // 8, start // 8)
        flags = np.unpackbits(data, bitorder="little")[start % 8 : start % 8 + bits * count]
        return flags.reshape(count, bits).astype(np.int64) @ (1 << np.arange(bits))

    def finish(self) -> None:
        """Check that nothing is left but the padding of the last byte, all zero."""
        # What is left over is a sign that the two ends count differently; better an error now than other tokens later.
        if self._payload[(self._cursor + 7) // 8 :] or self._padding():
            raise ProtocolError("the payload is longer than its message says")

    def _padding(self) -> int:
        return self._payload[self._cursor // 8] >> (self._cursor % 8) if self._cursor % 8 else 0

    def array(self, dtype: str, size: int) -> NDArray[Any]:
        """An array of `size` elements; the caller checks them."""
        if self._padding():
            raise ProtocolError("the payload has padding that is not zero")
        start = (self._cursor + 7) // 8
        # Before anything is allocated: a length that a peer invented must not cost memory.
        self._advance(8 * (start + size * np.dtype(dtype).itemsize))
        return np.frombuffer(self._payload, dtype, size, start)

    def rest(self, dtype: str) -> NDArray[Any]:
        """An array to the end of the payload; the caller checks it."""
        size, over = divmod(len(self._payload) - (self._cursor + 7) // 8, np.dtype(dtype).itemsize)
        if over:
            raise ProtocolError("the payload ends within an element of its array")
        return self.array(dtype, size)

    def _advance(self, cursor: int) -> None:
        if cursor > 8 * len(self._payload):
            raise ProtocolError("the payload is shorter than its message says")
        self._cursor = cursor


def distribution_bits(probs: Probs, ratios: Ratios) -> int:
    """Bits of a rounded distribution as `Writer.distribution` writes it, without the padding."""
    sparse = _sparse_bits(int(np.count_nonzero(probs)), len(probs), ratios.bits)
    return 1 + min(sparse, len(probs) * ratios.bits)


def _sparse_bits(support: int, size: int, bits: int) -> int:
    return bits_for(size) + support * (bits_for(size) + bits)

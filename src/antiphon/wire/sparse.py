"""Sparse distributions, packed: the tokens above 0 of draft distributions and their ratios to the largest (METHODS 2, TSLT).

Three forms. `delta`: the gaps between ascending numbers as varints (7 bits a byte, the high bit says that more follow), then
the codes. `plain`, the paper's: every number in full. `tight`: counts, gaps and codes entropy-coded by one range coder to the
end of the payload, which knows about how they are spread.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from antiphon.core.distributions import Probs
from antiphon.core.rounding import Ratios
from antiphon.errors import ProtocolError, UsageError
from antiphon.vocabulary import bits_for
from antiphon.wire.packing import Reader, Writer

Numbers = NDArray[np.int64]
Codes = NDArray[Any]
Sparse = tuple[Numbers, Codes]
"""Ascending numbers of tokens, and the code of each."""


class Form(Protocol):
    """How sparse distributions are written; they are the last thing in a payload."""

    def write(self, writer: Writer, distributions: Sequence[Sparse]) -> None:
        """Append distributions."""
        ...

    def read(self, reader: Reader, count: int) -> list[Sparse]:
        """Read `count` distributions; the caller checks them."""
        ...


class SparseCodec:
    """Writes and reads distributions over `size` tokens in a form: `delta`, `plain` or `tight`."""

    def __init__(self, size: int, ratios: Ratios, form: str) -> None:
        self._size, self._ratios = size, ratios
        self._form = form_of(form, size, ratios)

    def write(self, writer: Writer, distributions: Sequence[Probs]) -> None:
        """Append distributions that were rounded to the ratios; nothing may follow them."""
        self._form.write(writer, [self._sparse(distribution) for distribution in distributions])

    def read(self, reader: Reader, count: int) -> list[Probs]:
        """`count` distributions. Raises ProtocolError for anything else."""
        return [self._distribution(support, codes) for support, codes in self._form.read(reader, count)]

    def _sparse(self, distribution: Probs) -> Sparse:
        codes = self._ratios.codes(distribution)
        support = np.flatnonzero(codes != self._ratios.zero)
        return support, codes[support]

    def _distribution(self, support: Numbers, codes: Codes) -> Probs:
        if support[0] < 0 or support[-1] >= self._size or (np.diff(support) <= 0).any():
            raise ProtocolError(
                f"a draft distribution does not list tokens below {self._size} in ascending order", "out-of-range"
            )
        if (codes == self._ratios.zero).any():
            raise ProtocolError("a draft distribution lists a token of probability 0", "bad-probability")
        full = np.full(self._size, self._ratios.zero, dtype=self._ratios.dtype)
        full[support] = codes
        try:
            return self._ratios.probs(full)
        except ValueError as error:
            raise ProtocolError(f"a draft distribution is no distribution: {error}", "bad-probability") from error


def form_of(name: str, size: int, ratios: Ratios) -> Form:
    """The form of this name. Raises UsageError if there is none, or if it cannot be had here."""
    match name:
        case "delta":
            return _Delta(size, ratios)
        case "plain":
            return _Plain(size, ratios)
        case "tight":
            return _Tight(size, ratios)
    raise UsageError(f"wire must be delta, plain or tight, not {name!r}")


class _Plain:
    """A count, the numbers in full, the codes."""

    def __init__(self, size: int, ratios: Ratios) -> None:
        self._size, self._ratios = size, ratios

    def write(self, writer: Writer, distributions: Sequence[Sparse]) -> None:
        for support, codes in distributions:
            writer.number(len(support) - 1, bits_for(self._size))
            self._write_support(writer, support)
            writer.array(codes)

    def read(self, reader: Reader, count: int) -> list[Sparse]:
        return [self._read(reader) for _ in range(count)]

    def _read(self, reader: Reader) -> Sparse:
        count = reader.number(bits_for(self._size), self._size, "the tokens of a draft distribution") + 1
        support = self._read_support(reader, count)
        return support, reader.array(self._ratios.dtype, count)

    def _write_support(self, writer: Writer, support: Numbers) -> None:
        writer.numbers(support, bits_for(self._size))

    def _read_support(self, reader: Reader, count: int) -> Numbers:
        return reader.numbers(count, bits_for(self._size))


class _Delta(_Plain):
    """A count, the gaps as varints, the codes."""

    def _write_support(self, writer: Writer, support: Numbers) -> None:
        writer.array(np.frombuffer(bytes(_varints(_gaps(support))), np.uint8))

    def _read_support(self, reader: Reader, count: int) -> Numbers:
        gaps = np.fromiter((_varint(reader) for _ in range(count)), dtype=np.int64, count=count)
        # Gaps cannot be negative, so the numbers ascend by themselves; that they stay below the vocabulary is checked by the
        # caller.
        return np.cumsum(gaps + 1) - 1


def _gaps(support: Numbers) -> Numbers:
    """How many numbers lie between each and the one before it."""
    return np.diff(support, prepend=-1) - 1


def _varints(values: Numbers) -> Iterator[int]:
    for value in values.tolist():
        while value >= 128:
            yield value & 127 | 128
            value >>= 7
        yield value


def _varint(reader: Reader) -> int:
    value = shift = 0
    while (byte := int(reader.array("u1", 1)[0])) >= 128:
        value |= (byte & 127) << shift
        shift += 7
        # Four bytes of 7 bits hold any gap of the largest vocabulary; without an end a peer could make a number of any size.
        if shift > 21:
            raise ProtocolError("a gap between tokens is larger than any vocabulary", "out-of-range")
    # A varint of more bytes than it needs would be a second way to write the same gap.
    if byte == 0 and shift:
        raise ProtocolError("a gap between tokens is written in more bytes than it needs")
    return value | byte << shift


class _Tight:
    """One range coder for all distributions of a payload.

    A number n > 0 is its length in bits and the bits below the highest. Lengths of counts are uniform, those of gaps under a
    normal distribution around what the count suggests; codes are under a normal distribution whose mean and deviation are sent
    in a byte each. What was read must give the same bytes when it is written again, so no two payloads mean the same
    distributions.
    """

    MIDDLE, SPREAD = 0.63, 0.3
    """Mean and deviation of a gap's length in bits, as shares of the length of the mean gap: fitted on WikiText-2."""

    def __init__(self, size: int, ratios: Ratios) -> None:
        if ratios.bits > 16:
            raise UsageError("wire tight needs a draft precision of 8 or 16 bits")
        self._size, self._longest = size, max(2, bits_for(size) + 1)  # a uniform symbol has at least two values
        self._last = int(ratios.zero) - 1
        self._unit, self._dtype = self._last / 255, ratios.dtype
        self._stream = _constriction()
        self._model = self._stream.model

    def write(self, writer: Writer, distributions: Sequence[Sparse]) -> None:
        if distributions:
            writer.array(self._packed(distributions).astype("<u4"))

    def read(self, reader: Reader, count: int) -> list[Sparse]:
        if not count:
            return []
        packed = reader.rest("<u4")
        decoder = self._stream.queue.RangeDecoder(packed.astype(np.uint32))
        try:
            distributions = [self._decoded(decoder) for _ in range(count)]
        except AssertionError as error:  # what the library raises for words that its encoder cannot have written
            raise ProtocolError("packed draft distributions are no output of the range coder") from error
        # A range decoder makes symbols of any words. Only those that the encoder would write are taken.
        if not np.array_equal(self._packed(distributions), packed):
            raise ProtocolError("packed draft distributions are not what their tokens and codes come to")
        return distributions

    def _packed(self, distributions: Sequence[Sparse]) -> NDArray[np.uint32]:
        encoder = self._stream.queue.RangeEncoder()
        for support, codes in distributions:
            mean, spread = self._fit(codes)
            self._encode(encoder, np.array([len(support)]), self._model.Uniform(self._longest))
            self._encode(encoder, _gaps(support) + 1, self._gap_lengths(len(support)))
            encoder.encode(np.array([mean, spread], dtype=np.int32), self._model.Uniform(256))
            encoder.encode(codes.astype(np.int32), self._codes(mean, spread))
        packed: NDArray[np.uint32] = encoder.get_compressed()
        return packed

    def _decoded(self, decoder: Any) -> Sparse:
        count = int(self._decode(decoder, 1, self._model.Uniform(self._longest))[0])
        if count > self._size:
            raise ProtocolError("a packed draft distribution has more tokens than there are", "out-of-range")
        gaps = self._decode(decoder, count, self._gap_lengths(count))
        mean, spread = decoder.decode(self._model.Uniform(256), 2).tolist()
        codes = decoder.decode(self._codes(mean, spread), count).astype(self._dtype)
        return np.cumsum(gaps) - 1, codes

    def _encode(self, encoder: Any, values: Numbers, lengths: Any) -> None:
        # The exponent of a float64 is the bit length of a whole number, without a loop.
        bits = np.frexp(values)[1].astype(np.int32)
        highest = (1 << (bits[bits > 1] - 1)).astype(np.int32)
        encoder.encode(bits - 1, lengths)
        if len(highest):
            encoder.encode(values[bits > 1].astype(np.int32) - highest, self._model.Uniform(), highest)

    def _decode(self, decoder: Any, count: int, lengths: Any) -> Numbers:
        bits = decoder.decode(lengths, count) + 1
        highest = (1 << (bits[bits > 1] - 1)).astype(np.int32)
        values = np.ones(count, dtype=np.int64)
        if len(highest):
            values[bits > 1] = highest + decoder.decode(self._model.Uniform(), highest)
        return values

    def _gap_lengths(self, count: int) -> Any:
        # Nothing about the gaps is sent but their count: with so many tokens of so many the mean gap follows.
        length = math.log2(self._size / count)
        return self._model.QuantizedGaussian(0, self._longest - 1, self.MIDDLE * length, self.SPREAD * (length + 1))

    def _codes(self, mean: int, spread: int) -> Any:
        return self._model.QuantizedGaussian(0, self._last, mean * self._unit, (spread + 1) * self._unit / 2)

    def _fit(self, codes: Codes) -> tuple[int, int]:
        return round(float(codes.mean()) / self._unit), min(255, round(2 * float(codes.std()) / self._unit))


def _constriction() -> Any:
    try:
        import constriction
    except ImportError as error:
        raise UsageError("wire tight needs a library that is not installed: pip install 'antiphon[tight]'") from error
    return constriction.stream

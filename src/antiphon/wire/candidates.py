"""Candidates for the device to choose from, packed: each token once, with as many draws as it has (METHODS 2, SR-DV)."""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.core.resampling import MAX_CANDIDATES
from antiphon.errors import ProtocolError
from antiphon.vocabulary import CommonVocabulary, bits_for
from antiphon.wire.packing import Reader, Writer

COUNT_BITS = bits_for(MAX_CANDIDATES + 1)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One draw: a wire number, its probability rounded down to units of a draft probability, and whether to add a unit.

    Outside the common vocabulary a candidate always passes, so there it needs no probability.
    """

    number: int
    low: int = 0
    up: bool = False

    @property
    def units(self) -> int:
        """Its probability, rounded to the units of a draft probability."""
        return self.low + self.up


class CandidateCodec:
    """Writes and reads candidates; `bits` are those of a draft probability.

    as_paper: the rejected draft may be among them, and more may follow one that always passes.
    """

    def __init__(self, common: CommonVocabulary, bits: int, *, as_paper: bool = False) -> None:
        self._common, self._bits, self._as_paper = common, bits, as_paper

    def write(self, writer: Writer, candidates: Sequence[Candidate]) -> None:
        """Append a count and the candidates in the order in which they were drawn."""
        writer.number(len(candidates), COUNT_BITS)
        seen: list[int] = []
        for candidate in candidates:
            self._write(writer, candidate, seen)

    def _write(self, writer: Writer, candidate: Candidate, seen: list[int]) -> None:
        # A likely token is drawn again and again: the second time its place among the seen ones is enough, a few bits instead
        # of an id and a probability. Only the coin of its rounding is new.
        again = candidate.number in seen
        if seen:
            writer.number(int(again), 1)
        if again:
            writer.number(seen.index(candidate.number), bits_for(len(seen)))
        else:
            writer.number(candidate.number, self._common.target_bits)
            seen.append(candidate.number)
        if candidate.number < self._common.size:
            if not again:
                writer.number(candidate.low, self._bits)
            writer.number(int(candidate.up), 1)

    def read(self, reader: Reader, rejected: int) -> list[Candidate]:
        """The candidates after the draft `rejected`; none if something else follows instead. Raises ProtocolError."""
        count = reader.number(COUNT_BITS, MAX_CANDIDATES + 1, "the count of candidates")
        seen: dict[int, Candidate] = {}
        candidates: list[Candidate] = []
        for index in range(count):
            candidates.append(self._read(reader, seen, f"candidate {index + 1}"))
        self._check(candidates, rejected)
        return candidates

    def _read(self, reader: Reader, seen: dict[int, Candidate], what: str) -> Candidate:
        if seen and reader.number(1, 2, what):
            first = list(seen.values())[reader.number(bits_for(len(seen)), len(seen), f"the place of {what}")]
            common = first.number < self._common.size
            return Candidate(first.number, first.low, common and bool(reader.number(1, 2, what)))
        number = reader.number(self._common.target_bits, self._common.target_size, what)
        if number in seen:
            raise ProtocolError(f"{what} is listed twice", "out-of-range")
        seen[number] = Candidate(number)
        if number < self._common.size:
            low = reader.number(self._bits, 2**self._bits, f"the probability of {what}")
            seen[number] = Candidate(number, low, bool(reader.number(1, 2, what)))
        return seen[number]

    def _check(self, candidates: Sequence[Candidate], rejected: int) -> None:
        for candidate in candidates:
            if candidate.number == rejected and not self._as_paper:
                raise ProtocolError("a candidate is the very draft that was rejected", "out-of-range")
            # The device divides by it.
            if candidate.number < self._common.size and not 0 < candidate.units < 2**self._bits:
                raise ProtocolError("a candidate has a probability of 0 or above 1, so it cannot be one", "bad-probability")
        # Such a candidate ends the test: what stands behind it was drawn for nothing.
        if not self._as_paper and any(candidate.number >= self._common.size for candidate in candidates[:-1]):
            raise ProtocolError("a candidate outside the common vocabulary always passes, but more follow", "out-of-range")

"""Candidates on the wire: what a cloud can draw is read again, and nothing else is."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.core.resampling import MAX_CANDIDATES
from antiphon.errors import ProtocolError
from antiphon.vocabulary import CommonVocabulary, bits_for
from antiphon.wire.candidates import COUNT_BITS, Candidate, CandidateCodec
from antiphon.wire.packing import Reader, Writer
from support.examples import examples


def vocabulary(size: int, target_size: int) -> CommonVocabulary:
    """`size` common tokens of `target_size`; a codec asks for no more."""
    return CommonVocabulary(size, np.arange(target_size, dtype=np.int32), None, (), frozenset(), b"")


SMALL = vocabulary(3, 5)
VOCABULARIES = st.sampled_from([SMALL, vocabulary(4, 4), vocabulary(1, 2), vocabulary(265, 272), vocabulary(2, 200)])
PRECISIONS = st.sampled_from([16, 32])


@st.composite
def drawn(draw: st.DrawFn, common: CommonVocabulary, bits: int, rejected: int) -> list[Candidate]:
    """What a cloud can offer: in any order, with repeats; nothing after one from outside the common vocabulary."""
    allowed = [number for number in range(common.size) if number != rejected]
    few = draw(st.lists(st.sampled_from(allowed), min_size=1, max_size=4)) if allowed else []
    lows = {number: draw(st.integers(0, 2**bits - 1)) for number in few}
    numbers = draw(st.lists(st.sampled_from(few), max_size=MAX_CANDIDATES - 1)) if few else []
    candidates = []
    for number in numbers:
        low = lows[number]
        up = draw(st.booleans()) if 0 < low < 2**bits - 1 else low == 0
        candidates.append(Candidate(number, low, up))
    if common.target_size > common.size and draw(st.booleans()):
        candidates.append(Candidate(draw(st.integers(common.size, common.target_size - 1))))
    return candidates


@st.composite
def offers(draw: st.DrawFn) -> tuple[CommonVocabulary, int, int, list[Candidate]]:
    common, bits = draw(VOCABULARIES), draw(PRECISIONS)
    rejected = draw(st.integers(0, common.size - 1))
    return common, bits, rejected, draw(drawn(common, bits, rejected))


def bits_of(candidates: Sequence[Candidate], common: CommonVocabulary, bits: int) -> int:
    """A count; of each but the first a flag, then a place or a number with its probability, and how it was rounded."""
    total, seen = 5, set()
    for index, candidate in enumerate(candidates):
        again = candidate.number in seen
        total += index > 0
        total += bits_for(len(seen)) if again else common.target_bits
        total += (candidate.number < common.size) * (1 if again else bits + 1)
        seen.add(candidate.number)
    return total


def written(candidates: Sequence[Candidate], common: CommonVocabulary, bits: int, before: int = 0) -> bytes:
    writer = Writer()
    writer.number(0, before)
    CandidateCodec(common, bits).write(writer, candidates)
    return writer.finish()


def read(payload: bytes, rejected: int = 0, common: CommonVocabulary = SMALL, bits: int = 16) -> list[Candidate]:
    reader = Reader(payload)
    candidates = CandidateCodec(common, bits).read(reader, rejected)
    reader.finish()
    return candidates


@examples(150)
@given(offers(), st.integers(0, 9))
def test_what_a_cloud_draws_is_read_again(offer: tuple, before: int) -> None:
    """In its order, each with its own rounding, from whatever bit on; what follows is left to others."""
    common, bits, rejected, candidates = offer
    writer = Writer()
    writer.number(2**before - 1, before)
    CandidateCodec(common, bits).write(writer, candidates)
    writer.number(0b101, 3)
    reader = Reader(writer.finish())
    reader.number(before, 2**before, "a number")
    assert CandidateCodec(common, bits).read(reader, rejected) == candidates
    assert reader.number(3, 8, "a number") == 0b101
    reader.finish()


@examples(100)
@given(offers(), st.integers(0, 3))
def test_as_the_paper_draws_them_they_are_read_again(offer: tuple, outside: int) -> None:
    """The rejected draft among them, and more behind one outside the common vocabulary, also twice."""
    common, bits, rejected, candidates = offer
    beyond = [Candidate(common.target_size - 1)] * (outside if common.target_size > common.size else 0)
    drawn = [Candidate(rejected, 1), *beyond, *candidates[:-1], Candidate(rejected, 1, True)][:MAX_CANDIDATES]
    codec, writer = CandidateCodec(common, bits, as_paper=True), Writer()
    codec.write(writer, drawn)
    reader = Reader(writer.finish())
    assert codec.read(reader, rejected) == drawn
    reader.finish()


@examples(100)
@given(offers())
def test_candidates_take_as_few_bits_as_they_can(offer: tuple) -> None:
    common, bits, _, candidates = offer
    exact = bits_of(candidates, common, bits)
    for before in range(8):  # to the bit, not only to the byte
        assert len(written(candidates, common, bits, before)) == (exact + before + 7) // 8


def test_the_bits_of_a_list() -> None:
    """272 tokens of which 265 are common, 16 bits a probability: a first 5 + 9 + 17, a repeat 1 + place + 1."""
    common = vocabulary(265, 272)
    one, two, outside = Candidate(7, 100, True), Candidate(9, 3), Candidate(270)
    assert COUNT_BITS == 5
    for candidates, bits in [
        ([], 5),
        ([one], 31),
        ([one, one], 31 + 2),
        ([one, two], 31 + 27),
        ([one, two, one], 31 + 27 + 3),
        ([outside], 14),
        ([one, two, one, two, outside], 31 + 27 + 3 + 3 + 10),
        ([one] * 31, 31 + 30 * 2),
    ]:
        assert bits_of(candidates, common, 16) == bits
        assert len(written(candidates, common, 16)) == (bits + 7) // 8
        assert read(written(candidates, common, 16), 1, common) == candidates


def test_the_same_token_twice_may_be_rounded_either_way() -> None:
    """Each draw is rounded for itself: the chance that one passes must not hang on the other's."""
    for ups in [(True, False), (False, True), (True, True), (False, False)]:
        candidates = [Candidate(1, 50, up) for up in ups]
        assert read(written(candidates, SMALL, 16)) == candidates
    assert [Candidate(1, 50, up).units for up in (False, True)] == [50, 51]


@examples(100)
@given(offers())
def test_every_truncation_is_refused(offer: tuple) -> None:
    common, bits, rejected, candidates = offer
    payload = written(candidates, common, bits)
    for size in range(len(payload)):
        with pytest.raises(ProtocolError, match="shorter"):
            read(payload[:size], rejected, common, bits)


class Wrong:
    """A writer of lists that no cloud can draw, entry by entry, for 3 common tokens of 5 and 16 bits."""

    def __init__(self, count: int) -> None:
        self.writer = Writer()
        self.writer.number(count, 5)
        self._first = True

    def new(self, number: int, low: int = 9, up: int = 0) -> "Wrong":
        self._flag(0)
        self.writer.number(number, 3)
        if number < 3:
            self.writer.number(low, 16)
            self.writer.number(up, 1)
        return self

    def again(self, place: int, bits: int, up: int | None = 0) -> "Wrong":
        self._flag(1)
        self.writer.number(place, bits)
        if up is not None:
            self.writer.number(up, 1)
        return self

    def _flag(self, value: int) -> None:
        self.writer.number(value, 0 if self._first else 1)
        self._first = False


@pytest.mark.parametrize(
    ("wrong", "code", "sentence"),
    [
        (Wrong(1).new(0), "out-of-range", "a candidate is the very draft that was rejected"),
        (Wrong(2).new(1).new(0), "out-of-range", "a candidate is the very draft that was rejected"),
        (Wrong(2).new(1).new(1), "out-of-range", "candidate 2 is listed twice"),
        (Wrong(3).new(1).new(4).new(4), "out-of-range", "candidate 3 is listed twice"),
        (Wrong(1).new(5), "out-of-range", "candidate 1 is 5, but must be below 5"),
        (Wrong(2).new(1).new(7), "out-of-range", "candidate 2 is 7, but must be below 5"),
        (Wrong(1).new(1, low=0), "bad-probability", "a probability of 0 or above 1"),
        (Wrong(2).new(1, low=0, up=1).again(0, 0), "bad-probability", "a probability of 0 or above 1"),
        (Wrong(1).new(1, low=65535, up=1), "bad-probability", "a probability of 0 or above 1"),
        (Wrong(2).new(1, low=65535).again(0, 0, up=1), "bad-probability", "a probability of 0 or above 1"),
        (Wrong(2).new(3).new(1), "out-of-range", "outside the common vocabulary always passes, but more follow"),
        (Wrong(2).new(3).new(4), "out-of-range", "outside the common vocabulary always passes, but more follow"),
        (Wrong(2).new(3).again(0, 0, up=0), "out-of-range", "outside the common vocabulary always passes, but more follow"),
        (Wrong(4).new(1).new(2).new(4).again(3, 2), "out-of-range", "the place of candidate 4 is 3, but must be below 3"),
    ],
)
def test_a_list_that_no_cloud_draws(wrong: Wrong, code: str, sentence: str) -> None:
    """Rejected draft among them, listed twice, no probability, something after an end of the list, a place beyond it."""
    with pytest.raises(ProtocolError) as caught:
        read(wrong.writer.finish())
    assert sentence in str(caught.value)
    assert caught.value.code == code


def test_the_largest_and_the_smallest_probability_are_fine() -> None:
    candidates = [Candidate(1, 65535), Candidate(2, 0, True), Candidate(1, 65535), Candidate(2, 0, True), Candidate(3)]
    assert read(written(candidates, SMALL, 16)) == candidates


@examples(300)
@given(VOCABULARIES, PRECISIONS, st.binary(max_size=40), st.data())
@example(SMALL, 16, b"\xff" * 40, None)
@example(SMALL, 16, b"\x00", None)
def test_any_bytes(common: CommonVocabulary, bits: int, payload: bytes, data: st.DataObject | None) -> None:
    """A list that a device can test, whose only spelling these bytes are; or a ProtocolError."""
    rejected = data.draw(st.integers(0, common.size - 1)) if data else 0
    try:
        candidates = CandidateCodec(common, bits).read(Reader(payload), rejected)
    except ProtocolError:
        return
    assert len(candidates) <= MAX_CANDIDATES
    for candidate in candidates:
        assert candidate.number != rejected
        assert 0 <= candidate.number < common.target_size
        assert candidate.number >= common.size or 0 < candidate.units < 2**bits
    assert all(candidate.number < common.size for candidate in candidates[:-1])
    size = bits_of(candidates, common, bits)
    mask = (1 << size) - 1
    again = int.from_bytes(written(candidates, common, bits), "little")
    assert again == int.from_bytes(payload, "little") & mask

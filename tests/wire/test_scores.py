"""Scores on the wire: what is written is read, and every other payload is a ProtocolError."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.core.mixture.consult import AskAll, AskChunk, AskScores, Question
from antiphon.core.mixture.scores import ZERO, Report
from antiphon.errors import ProtocolError
from antiphon.vocabulary import bits_for
from antiphon.wire.scores import COUNT_BITS, ScoreCodec
from support.examples import examples

SIZES = st.sampled_from([1, 2, 3, 5, 100, 272, 49_152, 262_144])
CODES = st.one_of(st.integers(0, ZERO), st.sampled_from([0, ZERO]))


def codec(size: int) -> ScoreCodec:
    return ScoreCodec(size, bits_for(size))


def tokens(size: int, most: int = 40) -> st.SearchStrategy[list[int]]:
    one = st.one_of(st.integers(0, size - 1), st.sampled_from([0, size - 1]))
    return st.lists(one, max_size=min(most, size), unique=True)


@st.composite
def reports(draw: st.DrawFn) -> tuple[int, Report]:
    size = draw(SIZES)
    return size, Report({token: draw(CODES) for token in draw(tokens(size))}, draw(CODES))


@st.composite
def questions(draw: st.DrawFn) -> tuple[int, Question]:
    size = draw(SIZES)
    kinds = [
        tokens(size).map(lambda ids: AskScores(tuple(ids))),
        st.integers(0, 2**COUNT_BITS - 1).map(AskChunk),
        st.just(AskAll()),
    ]
    return size, draw(st.one_of(kinds))


def refused(read: Callable[[], Any]) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        read()
    return caught.value


@examples(120)
@given(reports())
@example((5, Report({}, 0)))
@example((1, Report({0: ZERO}, ZERO)))
def test_a_report_comes_back_in_its_order(case: tuple[int, Report]) -> None:
    """The order is part of it: the first token is the cloud's own draft."""
    size, report = case
    payload = codec(size).report(report)
    read = codec(size).read_report(payload)
    assert (list(read.scores.items()), read.bound) == (list(report.scores.items()), report.bound)
    bits = COUNT_BITS + len(report.scores) * (bits_for(size) + 16) + 16
    assert len(payload) == -(-bits // 8)


@examples(120)
@given(questions())
def test_a_question_comes_back(case: tuple[int, Question]) -> None:
    size, question = case
    payload = codec(size).question(question)
    assert codec(size).read_question(payload) == question


@examples(40)
@given(SIZES.filter(lambda size: size < 50_000), st.data())
def test_all_scores_come_back(size: int, data: st.DataObject) -> None:
    codes = np.random.Generator(np.random.PCG64(size)).integers(0, ZERO + 1, size).astype("<u2")
    draft = data.draw(st.one_of(st.none(), st.integers(0, size - 1)))
    payload = codec(size).everything(codes, draft)
    read, drafted = codec(size).read_everything(payload, drafted=draft is not None)
    assert (read.tolist(), drafted) == (codes.tolist(), draft)
    assert len(payload) == 2 * size + -(-(1 + (0 if draft is None else bits_for(size))) // 8)


@examples(60)
@given(SIZES.filter(lambda size: size >= 100), st.data())
def test_of_all_scores_those_that_are_zero_cost_nothing_where_most_are(size: int, data: st.DataObject) -> None:
    support = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=30, unique=True))
    codes = np.full(size, ZERO, "<u2")
    codes[support] = np.arange(len(support))
    payload = codec(size).everything(codes)
    read, _ = codec(size).read_everything(payload)
    assert read.tolist() == codes.tolist()
    bits = bits_for(size)
    assert len(payload) == min(-(-(1 + bits * (1 + len(support))) // 8) + 2 * len(support), 1 + 2 * size)


@examples(60)
@given(SIZES.flatmap(lambda size: st.tuples(st.just(size), tokens(size))))
def test_tokens_come_back(case: tuple[int, list[int]]) -> None:
    size, numbers = case
    payload = codec(size).tokens(numbers)
    assert codec(size).read_tokens(payload, len(numbers)) == numbers
    assert len(payload) == -(-len(numbers) * bits_for(size) // 8)


READERS: list[Callable[[ScoreCodec, bytes], Any]] = [
    ScoreCodec.read_report,
    ScoreCodec.read_question,
    ScoreCodec.read_everything,
    lambda one, payload: one.read_everything(payload, drafted=True),
    lambda one, payload: one.read_tokens(payload, 3),
    lambda one, payload: one.read_tokens(payload, 0),
]


@examples(150)
@given(st.binary(max_size=60), SIZES, st.sampled_from(READERS))
@example(b"", 5, READERS[0])
@example(b"\xff" * 60, 5, READERS[0])
@example(bytes(4), 1, READERS[0])
def test_any_bytes_are_read_or_refused(payload: bytes, size: int, read: Callable[[ScoreCodec, bytes], Any]) -> None:
    try:
        read(codec(size), payload)
    except ProtocolError:
        return


@examples(80)
@given(reports(), st.data())
def test_a_report_cut_short_or_lengthened_is_refused(case: tuple[int, Report], data: st.DataObject) -> None:
    size, report = case
    payload = codec(size).report(report)
    cut = data.draw(st.integers(0, len(payload) - 1))
    assert refused(lambda: codec(size).read_report(payload[:cut])).code == "bad-frame"
    assert refused(lambda: codec(size).read_report(payload + b"\0")).code == "bad-frame"


@pytest.mark.parametrize(
    ("read", "code", "sentence"),
    [
        (lambda: codec(5).read_report(two(5, 1)), "out-of-range", "a token is 5, but must be below 5"),
        (lambda: codec(5).read_report(two(1, 7)), "out-of-range", "a token is 7, but must be below 5"),
        (lambda: codec(5).read_report(two(3, 3)), "out-of-range", "a token's score was sent twice"),
        (lambda: codec(5).read_question(b"\x03"), "out-of-range", "the kind of question is 3, but must be below 3"),
        (lambda: codec(5).read_question(b"\x0a"), "bad-frame", "longer"),
        (lambda: codec(5).read_question(b"\x02\x00"), "bad-frame", "longer"),
        (lambda: codec(5).read_tokens(b"\x05", 1), "out-of-range", "a token is 5"),
        (lambda: codec(5).read_tokens(b"\x00", 3), "bad-frame", "shorter"),
        (lambda: codec(5).read_everything(bytes(10)), "bad-frame", "shorter"),
        (lambda: codec(5).read_everything(bytes(12)), "bad-frame", "longer"),
        (lambda: codec(5).read_everything(b"\x01\xff\xff"), "bad-probability", "list a token of probability 0"),
        (lambda: codec(5).read_everything(b"\x71" + bytes(2)), "out-of-range", "in ascending order"),
        (lambda: codec(5).read_everything(b"\x06" + bytes(10), drafted=True), "out-of-range", "a token is 6"),
    ],
)
def test_what_is_refused(read: Callable[[], Any], code: str, sentence: str) -> None:
    error = refused(read)
    assert error.code == code
    assert sentence in str(error)


def two(first: int, second: int) -> bytes:
    """A report of two scores, whatever the tokens are."""
    value, shift = 2, COUNT_BITS
    for token in (first, second):
        value |= token << shift
        shift += 3 + 16
    return value.to_bytes(-(-(shift + 16) // 8), "little")


def test_a_report_claims_no_more_than_it_has() -> None:
    """A count of thousands in a few bytes is refused before anything of its size is made."""
    assert refused(lambda: codec(262_144).read_report(b"\xff\x1f" + bytes(8))).code == "bad-frame"
    assert refused(lambda: codec(262_144).read_question(b"\xfc\x7f" + bytes(8))).code == "bad-frame"


def test_an_example_by_hand() -> None:
    """V = 5, 3 bits: 2 scores, of token 4 (code 513) and token 1 (65535), bound 7; then all three questions."""
    report = codec(5).report(Report({4: 513, 1: ZERO}, 7))
    assert report == (2 | 4 << 13 | 513 << 16 | 1 << 32 | ZERO << 35 | 7 << 51).to_bytes(9, "little")
    assert codec(5).question(AskScores((4, 1))) == (0 | 2 << 2 | 4 << 15 | 1 << 18).to_bytes(3, "little")
    assert codec(5).question(AskChunk(64)) == (1 | 64 << 2).to_bytes(2, "little")
    assert codec(5).question(AskAll()) == b"\x02"
    assert codec(5).everything(np.arange(5, dtype="<u2"), 4) == b"\x04" + bytes([0, 0, 1, 0, 2, 0, 3, 0, 4, 0])

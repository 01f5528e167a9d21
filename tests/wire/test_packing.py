"""Payloads: what is written is read again, and whatever else is there is a ProtocolError."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.core.distributions import one_hot
from antiphon.core.rounding import Ratios, quantise_ratios
from antiphon.errors import ProtocolError
from antiphon.wire.packing import Reader, Writer, distribution_bits
from support.examples import examples
from support.random_distributions import large
from wire.packed import (
    BOTH,
    FLOAT,
    ITEMS,
    LOG,
    Distribution,
    Item,
    Number,
    bits_of,
    distributions,
    numbers,
    read,
    refused,
    written,
)


@examples(100)
@given(ITEMS)
@example([])
@example([Number(0, 0), Number(1, 1), Distribution(one_hot(1, 3), FLOAT), Number(0, 0)])
def test_what_is_written_is_read_again(items: list[Item]) -> None:
    read(items, written(items))


@examples(40)
@given(st.lists(numbers(), max_size=12))
def test_numbers_take_as_few_bits_as_they_say(items: list[Number]) -> None:
    """The whole payload is one number in base 2, the first item lowest, rounded up to bytes."""
    payload, place, value = written(items), 0, 0
    for item in items:
        value += item.value << place
        place += item.bits
    assert payload == value.to_bytes((place + 7) // 8, "little")


def test_the_layout() -> None:
    """As docs/protocol.md shows it."""
    writer = Writer()
    writer.number(5, 3)
    writer.number(1, 9)
    writer.probabilities(np.array([1.0, 0.0]), 16)
    assert writer.finish().hex() == "0d00ffff0000"
    writer = Writer()
    writer.distribution(np.array([0.25, 0.75]), FLOAT)
    assert writer.finish().hex() == "00" + "abaaaa3e0000803f"


def test_the_layout_of_a_sparse_distribution() -> None:
    """A bit that says so, the count less one, the ids in ascending order, then on a byte boundary their values."""
    probs = np.array([0.0, 0, 0, 0.2, 0, 0, 0.8, 0])
    header = 1 | (2 - 1) << 1 | 3 << 4 | 6 << 7
    assert header.to_bytes(2, "little").hex() == "3303"
    writer = Writer()
    writer.distribution(quantise_ratios(FLOAT)(probs), FLOAT)
    assert writer.finish().hex() == "3303" + np.array([0.25, 1.0], "<f4").tobytes().hex()
    writer = Writer()
    writer.distribution(quantise_ratios(LOG)(probs), LOG)
    code = round(np.log(4) / LOG.step)
    assert writer.finish().hex() == "3303" + np.array([code, 0], "<u2").tobytes().hex()


@BOTH
@pytest.mark.parametrize("size", [1, 2, 5, 8, 9, 100, 1024])
def test_the_smaller_of_dense_and_sparse_is_sent(size: int, ratios: Ratios) -> None:
    """For every size of a support, up to the one where dense wins and beyond; `distribution_bits` is what is written."""
    chosen = set()
    for support in (*range(1, size, max(1, size // 100)), size):
        probs = np.zeros(size)
        probs[np.random.Generator(np.random.PCG64(support)).permutation(size)[:support]] = 1 / support
        probs = quantise_ratios(ratios)(probs)
        header = 1 + bits_of(size) * (1 + support)
        sparse, dense = header + support * ratios.bits, 1 + size * ratios.bits
        assert distribution_bits(probs, ratios) == min(sparse, dense)
        payload = written([Distribution(probs, ratios)])
        head = (header + 7) // 8 if sparse < dense else 1
        values = (support if sparse < dense else size) * ratios.bits // 8
        assert len(payload) == head + values
        assert payload[0] & 1 == (sparse < dense)
        chosen.add(payload[0] & 1)
        read([Distribution(probs, ratios)], payload)
    assert chosen == ({0} if size == 1 else {0, 1})


@given(distributions())
@examples(60)
def test_the_bits_of_a_distribution_are_those_that_are_written(distribution: Distribution) -> None:
    payload = written([distribution])
    assert 0 <= 8 * len(payload) - distribution_bits(distribution.probs, distribution.ratios) < 8


@BOTH
@pytest.mark.parametrize("kept", [1, 40, 262_144])
def test_a_distribution_over_a_real_vocabulary(kept: int, ratios: Ratios) -> None:
    probs = large(1.0)
    probs[np.argsort(-probs)[kept:]] = 0
    distribution = Distribution(quantise_ratios(ratios)(probs / probs.sum()), ratios)
    payload = written([Number(1, 3), distribution, Number(9, 5)])
    read([Number(1, 3), distribution, Number(9, 5)], payload)
    assert len(payload) < (kept * (18 + ratios.bits) + 60) / 8 + 2


def test_ids_behind_any_number_of_bits() -> None:
    """A support is unpacked from whatever bit it starts at."""
    distribution = Distribution(quantise_ratios(LOG)(np.eye(1, 300, 257)[0] + np.eye(1, 300, 9)[0] * 0.1), LOG)
    for bits in range(20):
        items: list[Item] = [Number(2**bits - 1, bits), distribution, Number(1, 1)]
        read(items, written(items))


VALUES = [0.0, -0.0, 1.0, 0.5, -1.0, -1e-45, 1e-45, math.nan, math.inf, -math.inf, 3.4e38, 0.99999994, 1.0000001]


@pytest.mark.parametrize("first", VALUES)
def test_every_pair_of_odd_floats(first: float) -> None:
    for pair in product([first], VALUES):
        reader = Reader(b"\0" + np.array(pair, dtype="<f4").tobytes())
        if all(math.isfinite(value) and value >= 0 for value in pair) and max(pair) == 1:
            probs = reader.distribution(2, FLOAT, "the target probabilities")
            assert probs.tolist() == pytest.approx([value / sum(pair) for value in pair])
        else:
            refused(lambda reader=reader: reader.distribution(2, FLOAT, "the target probabilities"), "bad-probability")


@pytest.mark.parametrize("pattern", ["0000c07f", "0100807f", "0100a0ff", "000080ff", "0000807f", "00000080"])
def test_bit_patterns_that_are_no_numbers(pattern: str) -> None:
    """Quiet and signalling NaN, infinities, minus zero alone: refused without a warning."""
    payload = b"\0" + bytes.fromhex(pattern)
    refused(lambda: Reader(payload).distribution(1, FLOAT, "the target probabilities"), "bad-probability")


@examples(50)
@given(st.lists(st.integers(0, 3000), max_size=20), st.integers(0, 7))
def test_small_numbers_are_read_again(values: list[int], before: int) -> None:
    writer = Writer()
    writer.number(0, before)
    for value in values:
        writer.small(value)
    reader = Reader(writer.finish())
    assert reader.number(before, 1 << before, "it") == 0
    assert [reader.small(3001, "it") for _ in values] == values
    reader.finish()


def test_a_small_number_takes_few_bits() -> None:
    for value, data in ((0, b"\x01"), (1, b"\x02"), (2, b"\x06"), (3, b"\x04"), (6, b"\x1c")):
        writer = Writer()
        writer.small(value)
        assert writer.finish() == data


@pytest.mark.parametrize(
    ("value", "below", "sentence"),
    [
        (5, 5, "it is 5, but must be below 5"),
        (900, 3, "it must be below 3, but has more bits"),
        (7, 7, "it must be below 7|it is 7"),
    ],
)
def test_a_small_number_that_is_too_large(value: int, below: int, sentence: str) -> None:
    writer = Writer()
    writer.small(value)
    with pytest.raises(ProtocolError, match=sentence):
        Reader(writer.finish()).small(below, "it")


def test_a_small_number_that_never_ends() -> None:
    with pytest.raises(ProtocolError, match="has more bits"):
        Reader(bytes(1000)).small(63, "it")
    with pytest.raises(ProtocolError, match="shorter"):
        Reader(bytes(0)).small(63, "it")

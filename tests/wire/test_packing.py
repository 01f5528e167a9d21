"""Payloads: what is written is read again, and whatever else is there is a ProtocolError."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from antiphon.core.distributions import Probs, one_hot, quantise_fixed, quantise_float32
from antiphon.errors import ProtocolError
from antiphon.wire.packing import Reader, Writer


@dataclass(frozen=True)
class Number:
    value: int
    bits: int

    def write(self, writer: Writer) -> None:
        writer.number(self.value, self.bits)

    def check(self, reader: Reader) -> None:
        assert reader.number(self.bits, 2**self.bits, "a number") == self.value


@dataclass(frozen=True)
class Scalar:
    prob: float
    bits: int

    def write(self, writer: Writer) -> None:
        writer.probability(self.prob, self.bits)

    def check(self, reader: Reader) -> None:
        assert reader.probability(self.bits, "a probability") == self.prob


@dataclass(frozen=True)
class Fixed:
    probs: Probs
    bits: int

    def write(self, writer: Writer) -> None:
        writer.probabilities(self.probs, self.bits)

    def check(self, reader: Reader) -> None:
        assert reader.probabilities(len(self.probs), self.bits, "probabilities").tobytes() == self.probs.tobytes()


@dataclass(frozen=True)
class Float:
    probs: Probs

    def write(self, writer: Writer) -> None:
        writer.float32_distribution(self.probs)

    def check(self, reader: Reader) -> None:
        assert reader.float32_distribution(len(self.probs), "probabilities").tobytes() == self.probs.tobytes()


Item = Number | Scalar | Fixed | Float


@st.composite
def numbers(draw: st.DrawFn) -> Number:
    bits = draw(st.integers(0, 40))
    return Number(draw(st.integers(0, 2**bits - 1)), bits)


@st.composite
def scalars(draw: st.DrawFn) -> Scalar:
    bits = draw(st.sampled_from([16, 32]))
    return Scalar(draw(st.integers(1, 2**bits - 1)) / float(2**bits - 1), bits)


@st.composite
def distributions(draw: st.DrawFn) -> Probs:
    values = draw(st.lists(st.one_of(st.just(0.0), st.floats(1e-9, 1.0)), min_size=0, max_size=8))
    probs = np.array([*values, draw(st.sampled_from([1.0, 0.25]))])
    return probs / probs.sum()


FIXED = st.builds(lambda probs, bits: Fixed(quantise_fixed(bits)(probs), bits), distributions(), st.sampled_from([16, 32]))
FLOAT = st.builds(lambda probs: Float(quantise_float32(probs)), distributions())
ITEMS = st.lists(st.one_of(numbers(), scalars(), FIXED, FLOAT), max_size=8)


def written(items: list[Item]) -> bytes:
    writer = Writer()
    for item in items:
        item.write(writer)
    return writer.finish()


def read(items: list[Item], payload: bytes) -> None:
    reader = Reader(payload)
    for item in items:
        item.check(reader)
    reader.finish()


def refused(call: Callable[[], object], code: str = "bad-frame") -> str:
    with pytest.raises(ProtocolError) as caught:
        call()
    assert caught.value.code == code
    return str(caught.value)


@settings(max_examples=100, deadline=None)
@given(ITEMS)
@example([])
@example([Number(0, 0), Number(1, 1), Float(one_hot(1, 3)), Number(0, 0)])
def test_what_is_written_is_read_again(items: list[Item]) -> None:
    read(items, written(items))


@settings(max_examples=40, deadline=None)
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
    writer.float32_distribution(np.array([0.25, 0.75]))
    assert writer.finish().hex() == "abaaaa3e0000803f"


@settings(max_examples=40, deadline=None)
@given(ITEMS)
def test_every_truncation_is_refused(items: list[Item]) -> None:
    payload = written(items)
    for size in range(len(payload)):
        with pytest.raises(ProtocolError):
            read(items, payload[:size])


@settings(max_examples=40, deadline=None)
@given(ITEMS, st.binary(min_size=1, max_size=9))
def test_bytes_left_over_are_refused(items: list[Item], more: bytes) -> None:
    assert "longer" in refused(lambda: read(items, written(items) + more))


@pytest.mark.parametrize("bits", range(1, 24))
def test_padding_that_is_not_zero_is_refused(bits: int) -> None:
    payload = written([Number(2**bits - 1, bits)])
    read([Number(2**bits - 1, bits)], payload)
    for place in range(bits, 8 * len(payload)):
        wrong = (int.from_bytes(payload, "little") | 1 << place).to_bytes(len(payload), "little")
        assert "longer" in refused(lambda wrong=wrong: read([Number(2**bits - 1, bits)], wrong))


def test_padding_before_an_array_is_checked_too() -> None:
    for item in (Fixed(one_hot(0, 2), 16), Float(one_hot(0, 2))):
        payload = bytearray(written([Number(1, 1), item]))
        read([Number(1, 1), item], bytes(payload))
        payload[0] |= 0b1000_0000
        assert "padding" in refused(lambda payload=payload, item=item: read([Number(1, 1), item], bytes(payload)))


@pytest.mark.parametrize(("value", "bits", "below"), [(5, 3, 5), (7, 3, 5), (255, 8, 200), (2**32 - 1, 32, 2**31)])
def test_a_number_out_of_range(value: int, bits: int, below: int) -> None:
    payload = written([Number(value, bits)])
    sentence = refused(lambda: Reader(payload).number(bits, below, "the id of draft 3"), "out-of-range")
    assert sentence == f"the id of draft 3 is {value}, but must be below {below}"
    assert Reader(payload).number(bits, value + 1, "it") == value


def test_the_only_token_of_a_vocabulary_takes_no_bits() -> None:
    reader = Reader(b"")
    assert [reader.number(0, 1, "a token") for _ in range(9)] == [0] * 9
    reader.finish()


@pytest.mark.parametrize("bits", [16, 32])
def test_a_scalar_of_zero_cannot_have_been_drawn(bits: int) -> None:
    sentence = refused(lambda: Reader(bytes(bits // 8)).probability(bits, "the probability of draft 1"), "bad-probability")
    assert sentence == "the probability of draft 1 is 0, so it cannot have been drawn"
    assert Reader(b"\xff" * (bits // 8)).probability(bits, "it") == 1.0


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("counts", [(0, 0, 0), (1, 0, -1), (-1, 1, 0), (-1, -1, -1), (-2, 0, 0)])
def test_sums_that_are_not_one(bits: int, counts: tuple[int, ...]) -> None:
    """-1 is the largest count, which alone is a whole distribution."""
    payload = np.array([count % 2**bits for count in counts], dtype=f"<u{bits // 8}").tobytes()
    refused(lambda: Reader(payload).probabilities(3, bits, "the probabilities of draft 1"), "bad-probability")


VALUES = [0.0, -0.0, 1.0, 0.5, -1.0, -1e-45, 1e-45, math.nan, math.inf, -math.inf, 3.4e38, 0.99999994, 1.0000001]


@pytest.mark.parametrize("first", VALUES)
def test_every_pair_of_odd_floats(first: float) -> None:
    for pair in product([first], VALUES):
        reader = Reader(np.array(pair, dtype="<f4").tobytes())
        if all(math.isfinite(value) and value >= 0 for value in pair) and max(pair) == 1:
            probs = reader.float32_distribution(2, "the target probabilities")
            assert probs.tolist() == pytest.approx([value / sum(pair) for value in pair])
        else:
            refused(lambda reader=reader: reader.float32_distribution(2, "the target probabilities"), "bad-probability")


@pytest.mark.parametrize("pattern", ["0000c07f", "0100807f", "0100a0ff", "000080ff", "0000807f", "00000080"])
def test_bit_patterns_that_are_no_numbers(pattern: str) -> None:
    """Quiet and signalling NaN, infinities, minus zero alone: refused without a warning."""
    refused(lambda: Reader(bytes.fromhex(pattern)).float32_distribution(1, "the target probabilities"), "bad-probability")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=24), ITEMS)
def test_any_bytes_read_as_anything(payload: bytes, items: list[Item]) -> None:
    """Nothing but values in range, or a ProtocolError."""
    reader = Reader(payload)
    try:
        for item in items:
            match item:
                case Number(bits=bits):
                    assert 0 <= reader.number(bits, max(1, 2**bits - 1), "a number") < max(1, 2**bits - 1)
                case Scalar(bits=bits):
                    assert 0 < reader.probability(bits, "a probability") <= 1
                case Fixed(probs, bits):
                    check(reader.probabilities(len(probs), bits, "probabilities"))
                case Float(probs):
                    check(reader.float32_distribution(len(probs), "probabilities"))
        reader.finish()
    except ProtocolError:
        return


def check(probs: Probs) -> None:
    assert bool((probs >= 0).all())
    assert probs.sum() == pytest.approx(1, abs=1e-12)

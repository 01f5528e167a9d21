"""Payloads: what is written is read again, and whatever else is there is a ProtocolError."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from antiphon.core.distributions import Probs, one_hot
from antiphon.core.rounding import FloatRatios, LogRatios, Ratios, quantise_fixed, quantise_ratios
from antiphon.errors import ProtocolError
from antiphon.wire.packing import Reader, Writer, distribution_bits
from support.random_distributions import large

LOG, FLOAT = LogRatios(), FloatRatios()
BOTH = pytest.mark.parametrize("ratios", [LOG, FLOAT], ids=["log", "float"])


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
class Distribution:
    probs: Probs
    ratios: Ratios

    def write(self, writer: Writer) -> None:
        writer.distribution(self.probs, self.ratios)

    def check(self, reader: Reader) -> None:
        assert reader.distribution(len(self.probs), self.ratios, "probabilities").tobytes() == self.probs.tobytes()


Item = Number | Scalar | Fixed | Distribution


@st.composite
def numbers(draw: st.DrawFn) -> Number:
    bits = draw(st.integers(0, 40))
    return Number(draw(st.integers(0, 2**bits - 1)), bits)


@st.composite
def scalars(draw: st.DrawFn) -> Scalar:
    bits = draw(st.sampled_from([16, 32]))
    return Scalar(draw(st.integers(1, 2**bits - 1)) / float(2**bits - 1), bits)


@st.composite
def dense_probs(draw: st.DrawFn) -> Probs:
    values = draw(st.lists(st.one_of(st.just(0.0), st.floats(1e-9, 1.0)), min_size=0, max_size=8))
    probs = np.array([*values, draw(st.sampled_from([1.0, 0.25]))])
    return probs / probs.sum()


FIXED = st.builds(lambda probs, bits: Fixed(quantise_fixed(bits)(probs), bits), dense_probs(), st.sampled_from([16, 32]))


@st.composite
def distributions(draw: st.DrawFn) -> Distribution:
    """Dense and sparse ones, in either code: often most tokens have probability 0."""
    probs, ratios = draw(dense_probs()), draw(st.sampled_from([LOG, FLOAT]))
    probs = np.concatenate([np.zeros(draw(st.sampled_from([0, 0, 3, 40]))), probs, np.zeros(draw(st.sampled_from([0, 17])))])
    return Distribution(quantise_ratios(ratios)(probs), ratios)


ITEMS = st.lists(st.one_of(numbers(), scalars(), FIXED, distributions()), max_size=8)


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
@example([Number(0, 0), Number(1, 1), Distribution(one_hot(1, 3), FLOAT), Number(0, 0)])
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


def bits_of(size: int) -> int:
    """ceil(log2(size)), written differently from the code."""
    return sum(2**power < size for power in range(30))


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
@settings(max_examples=60, deadline=None)
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


def sparse_distribution(size: int, ids: list[int], values: list[float], ratios: Ratios, count: int | None = None) -> bytes:
    """What a wrong peer may send: any ids with any codes."""
    writer = Writer()
    writer.number(1, 1)
    writer.number((len(ids) if count is None else count) - 1, bits_of(size))
    for number in ids:
        writer.number(number, bits_of(size))
    writer.array(np.array(values, dtype=ratios.dtype))
    return writer.finish()


@pytest.mark.parametrize(
    ("ids", "values", "ratios", "code", "sentence"),
    [
        ([3, 1], [0, 9], LOG, "out-of-range", "do not list tokens below 5 in ascending order"),
        ([1, 1], [0, 0], LOG, "out-of-range", "do not list tokens below 5 in ascending order"),
        ([1, 5], [0, 9], LOG, "out-of-range", "do not list tokens below 5 in ascending order"),
        ([7], [1.0], FLOAT, "out-of-range", "do not list tokens below 5 in ascending order"),
        ([0, 1, 2, 3, 4, 4], [0] * 6, LOG, "out-of-range", "the count of the target probabilities is 5, but must be below 5"),
        ([1, 2], [0, 65535], LOG, "bad-probability", "list a token of probability 0"),
        ([1, 2], [1.0, 0.0], FLOAT, "bad-probability", "list a token of probability 0"),
        ([1, 2], [1.0, -0.0], FLOAT, "bad-probability", "list a token of probability 0"),
        ([1], [65535], LOG, "bad-probability", "list a token of probability 0"),
        ([1, 2], [1, 2], LOG, "bad-probability", "are no distribution: the largest is not 1"),
        ([1, 2], [0.5, 0.25], FLOAT, "bad-probability", "are no distribution"),
        ([1, 2], [1.0, -0.25], FLOAT, "bad-probability", "are no distribution"),
        ([1, 2], [1.0, math.nan], FLOAT, "bad-probability", "are no distribution"),
        ([1, 2], [math.inf, 1.0], FLOAT, "bad-probability", "are no distribution"),
    ],
)
def test_a_sparse_distribution_that_is_none(
    ids: list[int], values: list[float], ratios: Ratios, code: str, sentence: str
) -> None:
    payload = sparse_distribution(5, ids, values, ratios)
    said = refused(lambda: Reader(payload).distribution(5, ratios, "the target probabilities"), code)
    assert said.startswith("the count" if "count" in sentence else "the target probabilities ")
    assert sentence in said


def test_a_sparse_distribution_that_promises_more_than_it_has() -> None:
    """Of a large vocabulary: refused by the length, before anything is made of it."""
    payload = sparse_distribution(2**22, [1], [0], LOG, count=2**22)
    assert "shorter" in refused(lambda: Reader(payload).distribution(2**22, LOG, "it"))
    assert "shorter" in refused(lambda: Reader(b"\x01").distribution(2**22, LOG, "it"))
    assert "shorter" in refused(lambda: Reader(b"\x00").distribution(2**22, FLOAT, "it"))
    assert "shorter" in refused(lambda: Reader(b"").distribution(1, FLOAT, "it"))


@BOTH
def test_a_sparse_distribution_of_the_only_token(ratios: Ratios) -> None:
    """No bits for its count or its number, in front of nothing and behind a whole byte."""
    values = [0.0 if ratios is LOG else 1.0]
    assert Reader(sparse_distribution(1, [0], values, ratios)).distribution(1, ratios, "it").tolist() == [1.0]
    writer = Writer()
    writer.number(0, 7)
    writer.number(1, 1)
    writer.array(np.array(values, dtype=ratios.dtype))
    reader = Reader(writer.finish())
    reader.number(7, 1, "a number")
    assert reader.distribution(1, ratios, "it").tolist() == [1.0]
    reader.finish()


def test_ids_behind_any_number_of_bits() -> None:
    """A support is unpacked from whatever bit it starts at."""
    distribution = Distribution(quantise_ratios(LOG)(np.eye(1, 300, 257)[0] + np.eye(1, 300, 9)[0] * 0.1), LOG)
    for bits in range(20):
        items: list[Item] = [Number(2**bits - 1, bits), distribution, Number(1, 1)]
        read(items, written(items))


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
    for item in (Fixed(one_hot(0, 2), 16), Distribution(one_hot(0, 2), LOG)):
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
                case Distribution(probs, ratios):
                    check(reader.distribution(len(probs), ratios, "probabilities"))
        reader.finish()
    except ProtocolError:
        return


def check(probs: Probs) -> None:
    assert bool((probs >= 0).all())
    assert probs.sum() == pytest.approx(1, abs=1e-12)

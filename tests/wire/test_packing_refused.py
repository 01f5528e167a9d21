"""Payloads that no writer writes: one ProtocolError each."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.distributions import Probs, one_hot
from antiphon.core.rounding import Ratios
from antiphon.errors import ProtocolError
from antiphon.wire.packing import Reader, Writer
from support.examples import examples
from wire.packed import BOTH, FLOAT, ITEMS, LOG, Distribution, Fixed, Item, Number, Scalar, bits_of, read, refused, written


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


@examples(40)
@given(ITEMS)
def test_every_truncation_is_refused(items: list[Item]) -> None:
    payload = written(items)
    for size in range(len(payload)):
        with pytest.raises(ProtocolError):
            read(items, payload[:size])


@examples(40)
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


@examples(100)
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

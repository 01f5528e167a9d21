"""Sparse probs that no device sends are refused, each with its sentence; each distribution has one spelling."""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from antiphon.core.distributions import truncated
from antiphon.core.rounding import quantise_ratios, ratios_of
from antiphon.errors import ProtocolError
from antiphon.wire.packing import Writer
from support.examples import examples
from wire.sparse_samples import EACH, SIZE, like_a_model, ramp, read, some_distributions, written


def spelled(*parts: tuple[int, int] | bytes) -> bytes:
    """A payload of numbers with their bits, and of bytes on a byte boundary."""
    writer = Writer()
    for part in parts:
        if isinstance(part, bytes):
            writer.array(np.frombuffer(part, np.uint8))
        else:
            writer.number(*part)
    return writer.finish()


ASCENDING = f"a draft distribution does not list tokens below {SIZE} in ascending order"


ZERO = "a draft distribution lists a token of probability 0"


NO_LARGEST = "a draft distribution is no distribution: the largest is not 1"


NO_FLOATS = "a draft distribution is no distribution: they are negative, not finite, or the largest is not 1"


LARGE_GAP = "a gap between tokens is larger than any vocabulary"


LONG_GAP = "a gap between tokens is written in more bytes than it needs"


SHORT, LONG = "the payload is shorter than its message says", "the payload is longer than its message says"


def floats(*values: float) -> bytes:
    return np.array(values, "<f4").tobytes()


@pytest.mark.parametrize(
    ("form", "bits", "payload", "code", "sentence"),
    [
        ("plain", 8, spelled((1, 9), (5, 9), (4, 9), b"\0\1"), "out-of-range", ASCENDING),
        ("plain", 8, spelled((1, 9), (5, 9), (5, 9), b"\0\1"), "out-of-range", ASCENDING),
        ("plain", 8, spelled((2, 9), (1, 9), (0, 9), (7, 9), b"\0\1\2"), "out-of-range", ASCENDING),
        ("plain", 8, spelled((0, 9), (300, 9), b"\0"), "out-of-range", ASCENDING),
        ("plain", 8, spelled((0, 9), (511, 9), b"\0"), "out-of-range", ASCENDING),
        ("plain", 8, spelled((300, 9)), "out-of-range", "the tokens of a draft distribution is 300, but must be below 300"),
        ("delta", 8, spelled((300, 9)), "out-of-range", "the tokens of a draft distribution is 300, but must be below 300"),
        ("delta", 8, spelled((0, 9), b"\xac\x02", b"\0"), "out-of-range", ASCENDING),
        ("delta", 8, spelled((1, 9), b"\xaa\x02\x01", b"\0\1"), "out-of-range", ASCENDING),
        ("delta", 8, spelled((0, 9), b"\xff\xff\xff\x7f", b"\0"), "out-of-range", ASCENDING),
        ("delta", 8, spelled((0, 9), b"\xff\xff\xff\xff\x01", b"\0"), "out-of-range", LARGE_GAP),
        ("delta", 8, spelled((0, 9), b"\xff" * 40), "out-of-range", LARGE_GAP),
        ("delta", 8, spelled((0, 9), b"\x80\x00", b"\0"), "bad-frame", LONG_GAP),
        ("delta", 8, spelled((0, 9), b"\x85\x80\x00", b"\0"), "bad-frame", LONG_GAP),
        ("delta", 8, spelled((0, 9), b"\x80"), "bad-frame", SHORT),
        ("delta", 8, spelled((1, 9), b"\1\1", b"\0\xff"), "bad-probability", ZERO),
        ("plain", 8, spelled((0, 9), (5, 9), b"\xff"), "bad-probability", ZERO),
        ("delta", 16, spelled((1, 9), b"\1\1", b"\0\0\xff\xff"), "bad-probability", ZERO),
        ("delta", 32, spelled((1, 9), b"\1\1", floats(1, 0)), "bad-probability", ZERO),
        ("delta", 32, spelled((1, 9), b"\1\1", floats(1, -0.0)), "bad-probability", ZERO),
        ("delta", 8, spelled((1, 9), b"\1\1", b"\1\1"), "bad-probability", NO_LARGEST),
        ("plain", 16, spelled((0, 9), (5, 9), b"\0\1"), "bad-probability", NO_LARGEST),
        ("delta", 32, spelled((1, 9), b"\1\1", floats(1, 2)), "bad-probability", NO_FLOATS),
        ("delta", 32, spelled((1, 9), b"\1\1", floats(1, -1)), "bad-probability", NO_FLOATS),
        ("delta", 32, spelled((1, 9), b"\1\1", floats(1, float("nan"))), "bad-probability", NO_FLOATS),
        ("delta", 32, spelled((1, 9), b"\1\1", floats(0.5, 0.5)), "bad-probability", NO_FLOATS),
        ("delta", 8, spelled((1, 9), b"\1\1", b"\0"), "bad-frame", SHORT),
        ("plain", 8, spelled((1, 9), (5, 9)), "bad-frame", SHORT),
        ("delta", 8, spelled((0, 9), b"\1", b"\0", b"\0"), "bad-frame", LONG),
        ("plain", 8, spelled((0, 9), (5, 9), b"\0", b"\0"), "bad-frame", LONG),
        ("delta", 8, spelled((0, 9), (1, 1), b"\1", b"\0"), "bad-frame", "the payload has padding that is not zero"),
        ("tight", 8, b"", "bad-frame", "packed draft distributions are not what their tokens and codes come to"),
        ("tight", 8, b"\0\0\0", "bad-frame", "the payload ends within an element of its array"),
        ("tight", 8, b"\0" * 5, "bad-frame", "the payload ends within an element of its array"),
    ],
)
def test_a_distribution_that_no_device_sends(form: str, bits: int, payload: bytes, code: str, sentence: str) -> None:
    """300 tokens take nine bits: a number may be too large, a gap may lead beyond the last token."""
    with pytest.raises(ProtocolError) as caught:
        read(payload, 1, form, bits)
    assert str(caught.value) == sentence
    assert caught.value.code == code


def assert_one_spelling(payload: bytes, count: int, form: str, bits: int, size: int) -> None:
    """A ProtocolError, or distributions of which these bytes are the only spelling."""
    try:
        distributions = read(payload, count, form, bits, size)
    except ProtocolError:
        return
    assert len(distributions) == count
    for distribution in distributions:
        assert distribution.shape == (size,)
        assert distribution.sum() == pytest.approx(1)
        assert (distribution >= 0).all()
    assert written(distributions, form, bits, size) == payload


def assert_refused(payload: bytes, count: int, form: str, bits: int, size: int) -> None:
    """A ProtocolError. Not always of `tight`: what an entropy coder reads need not end where the bytes do.

    But then these are other distributions, which would have been written so; a peer may send any distributions.
    """
    if form == "tight":
        assert_one_spelling(payload, count, form, bits, size)
        return
    with pytest.raises(ProtocolError):
        read(payload, count, form, bits, size)


@EACH
@examples(15)
@given(data=st.data())
def test_every_truncation_is_refused(data: st.DataObject, form: str, bits: int) -> None:
    distributions = data.draw(some_distributions(bits, 40, most=2))
    payload = written(distributions, form, bits, 40)
    for size in range(len(payload)):
        assert_refused(payload[:size], len(distributions), form, bits, 40)


@EACH
@examples(30)
@given(data=st.data(), more=st.binary(min_size=1, max_size=9))
def test_what_is_left_over_is_refused(data: st.DataObject, more: bytes, form: str, bits: int) -> None:
    distributions = data.draw(some_distributions(bits, 40))
    assert_refused(written(distributions, form, bits, 40) + more, len(distributions), form, bits, 40)


@EACH
@examples(30)
@given(data=st.data(), by=st.sampled_from([-1, 1]))
def test_another_number_of_distributions_is_refused(data: st.DataObject, by: int, form: str, bits: int) -> None:
    distributions = data.draw(some_distributions(bits, 40))
    assume(distributions)
    assert_refused(written(distributions, form, bits, 40), len(distributions) + by, form, bits, 40)


@EACH
def test_an_altered_byte_is_seen_or_is_another_distribution(form: str, bits: int) -> None:
    """Every byte, to several others: what is read must be what these bytes say, in the only way to say it."""
    size, ratios = 500, ratios_of(bits)
    distributions = [quantise_ratios(ratios)(truncated(like_a_model(size, seed), 9)) for seed in range(2)]
    payload = written(distributions, form, bits, size)
    for place in range(len(payload)):
        for change in (1, 2, 16, 128, 255):
            altered = bytearray(payload)
            altered[place] ^= change
            assert_one_spelling(bytes(altered), 2, form, bits, size)


@EACH
@examples(150)
@given(
    payload=st.one_of(st.binary(max_size=64), st.binary(max_size=16).map(lambda data: data * 4)),
    count=st.integers(0, 3),
    size=st.sampled_from([2, 5, 300, 50_000, 2**18]),
)
@example(payload=b"\xff" * 64, count=1, size=300)
@example(payload=b"\xff" * 64, count=3, size=50_000)
@example(payload=b"\x00" * 64, count=1, size=300)
@example(payload=b"\x00" * 4, count=1, size=50_000)
@example(payload=b"\xff" * 4, count=1, size=2)
def test_any_bytes(payload: bytes, count: int, size: int, form: str, bits: int) -> None:
    """Never another exception, whatever comes from outside."""
    assert_one_spelling(payload, count, form, bits, size)


@EACH
def test_few_bytes_cannot_ask_for_much_work(form: str, bits: int) -> None:
    """A peer may claim any count; what is done for it stays within a pass over the vocabulary a distribution."""
    size = 2**18
    for payload in (
        b"\xff" * 400,
        b"\x00" * 400,
        bytes(range(256)) * 2,
        written([ramp(range(9), size)], form, 8 if bits == 32 else bits, size),
    ):
        assert_one_spelling(payload, 2, form, bits, size)

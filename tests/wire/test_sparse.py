"""Sparse probs on the wire: what was rounded is read again, each has one spelling, nothing else is read (METHODS 2, TSLT)."""

import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from antiphon.core.distributions import Probs, one_hot, truncated
from antiphon.core.rounding import quantise_ratios, ratios_of
from antiphon.errors import ProtocolError, UsageError
from antiphon.vocabulary import bits_for
from antiphon.wire.packing import Reader, Writer
from antiphon.wire.sparse import SparseCodec, form_of
from support.random_distributions import large

FORMS = [("delta", 8), ("delta", 16), ("delta", 32), ("plain", 8), ("plain", 16), ("plain", 32), ("tight", 8), ("tight", 16)]
EACH = pytest.mark.parametrize(("form", "bits"), FORMS, ids=[f"{form}-{bits}" for form, bits in FORMS])
SIZE = 300


def codec(form: str, bits: int, size: int = SIZE) -> SparseCodec:
    return SparseCodec(size, ratios_of(bits), form)


def written(distributions: Sequence[Probs], form: str, bits: int, size: int = SIZE) -> bytes:
    writer = Writer()
    codec(form, bits, size).write(writer, distributions)
    return writer.finish()


def read(payload: bytes, count: int, form: str, bits: int, size: int = SIZE) -> list[Probs]:
    reader = Reader(payload)
    distributions = codec(form, bits, size).read(reader, count)
    reader.finish()
    return distributions


@st.composite
def some_distributions(draw: st.DrawFn, bits: int, size: int, most: int = 4) -> list[Probs]:
    """Distributions as a device sends them: few tokens or many, anywhere, one of them the likeliest, rounded."""
    distributions = []
    for _ in range(draw(st.integers(0, most))):
        count = draw(st.one_of(st.integers(1, min(size, 6)), st.integers(1, size)))
        random = np.random.default_rng(draw(st.integers(0, 2**32)))
        distribution = np.zeros(size)
        distribution[random.choice(size, count, replace=False)] = random.dirichlet(
            np.full(count, draw(st.sampled_from([0.1, 1.0, 50.0])))
        )
        distributions.append(quantise_ratios(ratios_of(bits))(distribution / distribution.sum()))
    return distributions


# What is sent is what was sampled.


@EACH
@settings(max_examples=60, deadline=None)
@given(data=st.data(), size=st.sampled_from([2, 3, 17, 128, 300, 5000]), before=st.integers(0, 9))
def test_distributions_are_read_as_they_were_sampled(data: st.DataObject, size: int, before: int, form: str, bits: int) -> None:
    """To the last bit, for the two ends must compute the same residual; behind whatever stands before them."""
    distributions = data.draw(some_distributions(bits, size))
    writer = Writer()
    writer.number(2**before - 1, before)
    codec(form, bits, size).write(writer, distributions)
    reader = Reader(writer.finish())
    assert reader.number(before, 2**before, "what stands before") == 2**before - 1
    found = codec(form, bits, size).read(reader, len(distributions))
    reader.finish()
    assert [distribution.tobytes() for distribution in found] == [distribution.tobytes() for distribution in distributions]


@EACH
@pytest.mark.parametrize("size", [2, 3, 256, 257])
def test_one_token_and_all_of_them(size: int, form: str, bits: int) -> None:
    distributions = [one_hot(0, size), one_hot(size - 1, size), np.full(size, 1 / size)]
    rounded = [quantise_ratios(ratios_of(bits))(distribution) for distribution in distributions]
    assert [np.count_nonzero(distribution) for distribution in rounded] == [1, 1, size]
    found = read(written(rounded, form, bits, size), 3, form, bits, size)
    assert [distribution.tobytes() for distribution in found] == [distribution.tobytes() for distribution in rounded]


@EACH
def test_a_vocabulary_of_one_token(form: str, bits: int) -> None:
    distribution = one_hot(0, 1)
    assert read(written([distribution], form, bits, 1), 1, form, bits, 1)[0].tolist() == [1.0]


@EACH
@pytest.mark.parametrize("keep", [{"top_k": 1}, {"top_k": 320}, {"top_k": 3200}, {"top_p": 0.95}], ids=str)
def test_distributions_over_a_real_vocabulary(keep: dict, form: str, bits: int) -> None:
    distribution = quantise_ratios(ratios_of(bits))(truncated(large(0.02, tokens=49_152), **keep))
    found = read(written([distribution, distribution], form, bits, len(distribution)), 2, form, bits, len(distribution))
    assert [other.tobytes() for other in found] == [distribution.tobytes()] * 2


def test_no_distributions_are_no_bytes() -> None:
    for form, bits in FORMS:
        assert written([], form, bits) == b""
        assert read(b"", 0, form, bits) == []


# How much they take.


def ramp(numbers: Sequence[int], size: int) -> Probs:
    """A distribution on these tokens, rounded to 8 bits."""
    distribution = np.zeros(size)
    distribution[list(numbers)] = 1 / (1 + np.arange(len(numbers)))
    return quantise_ratios(ratios_of(8))(distribution / distribution.sum())


@pytest.mark.parametrize(
    ("gap", "size"), [(0, 1), (127, 1), (128, 2), (255, 2), (16383, 2), (16384, 3), (2**21 - 1, 3), (2**21, 4), (4_000_000, 4)]
)
@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_the_bytes_of_a_gap(gap: int, size: int, first: bool) -> None:
    """Seven bits a byte; before the first token as between two."""
    tokens = [gap] if first else [3, 4 + gap]
    distribution = ramp(tokens, 2**22)
    payload = written([distribution], "delta", 8, len(distribution))
    head, codes, others = 3, len(tokens), len(tokens) - 1
    assert len(payload) == head + others + size + codes  # a count of 22 bits, a byte for the gap before 3
    assert read(payload, 1, "delta", 8, len(distribution))[0].tobytes() == distribution.tobytes()


def sizes_of_varints(distribution: Probs) -> int:
    gaps = np.diff(np.flatnonzero(distribution), prepend=-1) - 1
    return sum(max(1, (int(gap).bit_length() + 6) // 7) for gap in gaps)


@pytest.mark.parametrize("bits", [8, 16, 32])
@settings(max_examples=60, deadline=None)
@given(data=st.data(), size=st.sampled_from([2, 128, 300, 40_000]))
def test_delta_and_plain_take_what_they_say(data: st.DataObject, size: int, bits: int) -> None:
    """A count; varints, or numbers in full; codes. Each probs begins on a byte boundary, for the one before ends with codes."""
    distributions = data.draw(some_distributions(bits, size))
    kept = [np.count_nonzero(distribution) for distribution in distributions]
    delta = sum(
        (bits_for(size) + 7) // 8 + sizes_of_varints(distribution) + count * bits // 8
        for distribution, count in zip(distributions, kept, strict=True)
    )
    plain = sum((bits_for(size) * (1 + count) + 7) // 8 + count * bits // 8 for count in kept)
    assert len(written(distributions, "delta", bits, size)) == delta
    assert len(written(distributions, "plain", bits, size)) == plain


def like_a_model(size: int, seed: int) -> Probs:
    """A distribution of the shape of a language model's: Zipf's, over ranks that are not quite the order of ids."""
    random = np.random.default_rng(seed)
    scores = -1.2 * np.log(np.arange(1, size + 1)) + random.normal(0, 1.5, size)
    ranks = np.argsort(np.arange(size) * np.exp(random.normal(0, 1.5, size)))
    distribution = np.empty(size)
    distribution[ranks] = np.exp(scores)
    return distribution / distribution.sum()


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("top_k", [32, 320])
def test_tight_is_smaller_than_delta_is_smaller_than_plain(top_k: int, bits: int) -> None:
    distributions = [quantise_ratios(ratios_of(bits))(truncated(like_a_model(30_000, seed), top_k)) for seed in range(3)]
    tight, delta, plain = (len(written(distributions, form, bits, 30_000)) for form in ("tight", "delta", "plain"))
    assert tight < 0.9 * delta
    assert delta < plain


def test_tight_has_no_form_for_floats() -> None:
    with pytest.raises(UsageError, match="wire tight needs a draft precision of 8 or 16 bits"):
        codec("tight", 32)


def test_there_is_no_other_form() -> None:
    with pytest.raises(UsageError, match="wire must be delta, plain or tight, not 'zip'"):
        form_of("zip", SIZE, ratios_of(8))


def test_a_library_that_is_missing_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """`tight` only; the others need nothing."""
    monkeypatch.setitem(sys.modules, "constriction", None)
    with pytest.raises(UsageError) as caught:
        codec("tight", 8)
    assert str(caught.value) == "wire tight needs a library that is not installed: pip install 'antiphon[tight]'"
    distribution = ramp([1, 2], SIZE)
    assert read(written([distribution], "delta", 8), 1, "delta", 8)[0].tobytes() == distribution.tobytes()


# What no device sends.


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
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_every_truncation_is_refused(data: st.DataObject, form: str, bits: int) -> None:
    distributions = data.draw(some_distributions(bits, 40, most=2))
    payload = written(distributions, form, bits, 40)
    for size in range(len(payload)):
        assert_refused(payload[:size], len(distributions), form, bits, 40)


@EACH
@settings(max_examples=30, deadline=None)
@given(data=st.data(), more=st.binary(min_size=1, max_size=9))
def test_what_is_left_over_is_refused(data: st.DataObject, more: bytes, form: str, bits: int) -> None:
    distributions = data.draw(some_distributions(bits, 40))
    assert_refused(written(distributions, form, bits, 40) + more, len(distributions), form, bits, 40)


@EACH
@settings(max_examples=30, deadline=None)
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
@settings(max_examples=150, deadline=None)
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

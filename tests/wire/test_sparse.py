"""Sparse probs on the wire: what was rounded is read again, each has one spelling, nothing else is read (METHODS 2, TSLT)."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.distributions import Probs, one_hot, truncated
from antiphon.core.rounding import quantise_ratios, ratios_of
from antiphon.errors import UsageError
from antiphon.vocabulary import bits_for
from antiphon.wire.packing import Reader, Writer
from antiphon.wire.sparse import form_of
from support.examples import examples
from support.random_distributions import large
from wire.sparse_samples import EACH, FORMS, SIZE, codec, like_a_model, ramp, read, some_distributions, written


@EACH
@examples(60)
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


@pytest.mark.core(2)
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
@examples(60)
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

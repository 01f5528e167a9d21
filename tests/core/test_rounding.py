"""What a wire does to a distribution: how far rounding moves it, and that both ends hold the same one afterwards."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.core.distributions import Probs, one_hot, total_variation
from antiphon.core.rounding import (
    FloatRatios,
    LogRatios,
    Ratios,
    exactly,
    fixed_point,
    from_fixed_point,
    quantise_fixed,
    quantise_ratios,
    ratios_of,
)
from support.examples import examples
from support.random_distributions import distributions, large

INF = float("inf")
BITS = st.sampled_from([8, 16, 32])
LOG, FLOAT = LogRatios(), FloatRatios()
BOTH = pytest.mark.parametrize("ratios", [LOG, FLOAT], ids=["log", "float"])


def float32(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def bound(ratios: Ratios, tokens: int) -> float:
    """The total variation that a docstring promises; the last bits of float64 are its own."""
    return (LOG.step / 4 + tokens * 2.0**-40 if ratios is LOG else 2.0**-24) + 1e-15


@examples(100)
@given(probs=distributions(), bits=BITS)
def test_fixed_point_counts(probs: Probs, bits: int) -> None:
    total = 2**bits - 1
    counts = fixed_point(probs, bits)
    assert counts.dtype == np.int64
    assert int(counts.sum()) == total
    assert int(counts.min()) >= 0
    assert int(counts.max()) < 2**bits
    assert not counts[probs == 0].any()
    assert np.abs(counts - probs * total).max() < 1 + 1e-4
    assert total_variation(probs, from_fixed_point(counts, bits)) <= len(probs) / 2 / total * (1 + 1e-6)


@examples(100)
@given(probs=distributions(), bits=BITS)
def test_fixed_point_of_what_it_made_is_the_same(probs: Probs, bits: int) -> None:
    counts = fixed_point(probs, bits)
    decoded = from_fixed_point(counts, bits)
    assert np.array_equal(fixed_point(decoded, bits), counts)
    assert np.array_equal(quantise_fixed(bits)(decoded), decoded)
    assert np.array_equal(np.rint(decoded * float(2**bits - 1)).astype(np.int64), counts)


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("index", [0, 3, 6])
def test_fixed_point_of_a_point_mass(bits: int, index: int) -> None:
    assert fixed_point(one_hot(index, 7), bits).tolist() == [2**bits - 1 if i == index else 0 for i in range(7)]
    assert from_fixed_point(fixed_point(one_hot(index, 7), bits), bits).tolist() == one_hot(index, 7).tolist()


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("concentration", [0.01, 1.0])
def test_fixed_point_of_a_real_vocabulary(concentration: float, bits: int) -> None:
    probs = large(concentration)
    counts = fixed_point(probs, bits)
    assert int(counts.sum()) == 2**bits - 1
    assert np.abs(counts - probs * (2**bits - 1)).max() < 1.1
    assert np.array_equal(fixed_point(from_fixed_point(counts, bits), bits), counts)


@BOTH
@pytest.mark.parametrize("concentration", [0.01, 1.0])
def test_ratios_of_a_real_vocabulary(concentration: float, ratios: Ratios) -> None:
    probs = large(concentration)
    decoded = quantise_ratios(ratios)(probs)
    assert total_variation(probs, decoded) < bound(ratios, len(probs))
    assert total_variation(probs, decoded) < 1.1e-4  # what LogRatios says of 262,144 tokens
    assert np.array_equal(ratios.codes(decoded), ratios.codes(probs))
    assert quantise_ratios(ratios)(decoded).tobytes() == decoded.tobytes()


@BOTH
@examples(100)
@given(probs=distributions())
@example(probs=np.array([0.49999997, 1e-8, 0.50000002]))
@example(probs=np.array([1.0]))
def test_ratios_move_a_distribution_by_less_than_their_bound(ratios: Ratios, probs: Probs) -> None:
    decoded = quantise_ratios(ratios)(probs)
    assert total_variation(probs, decoded) < bound(ratios, len(probs))
    assert decoded.sum() == pytest.approx(1, abs=1e-14)
    assert not decoded[probs == 0].any()
    assert bool((decoded >= 0).all())


def test_the_bound_of_the_logarithms_is_tight() -> None:
    """Half of the mass half a step up, half of it half a step down: a bound that is far too wide would say nothing."""
    up, down = np.exp(-LOG.step * (1 + 0.499)), np.exp(-LOG.step * (4000 + 0.501))
    probs = np.array([1.0, *[up] * 20_000, *[down] * round(20_000 * up / down)])
    probs /= probs.sum()
    moved = total_variation(probs, quantise_ratios(LOG)(probs))
    assert 0.95 * bound(LOG, 0) < moved < bound(LOG, len(probs))


@BOTH
@examples(100)
@given(probs=distributions())
def test_rounding_what_is_rounded_changes_nothing_to_the_last_bit(ratios: Ratios, probs: Probs) -> None:
    """The cloud sends what it rounded itself, so the device's decoded distribution must be the cloud's own."""
    codes = ratios.codes(probs)
    decoded = ratios.probs(codes)
    assert codes.dtype == np.dtype(ratios.dtype)
    assert ratios.codes(decoded).tobytes() == codes.tobytes()
    assert ratios.probs(ratios.codes(decoded)).tobytes() == decoded.tobytes()


@pytest.mark.parametrize("largest", [1, 3, 1000])
def test_every_code_of_a_logarithm_stands_for_itself(largest: int) -> None:
    """All 65,536 in one distribution, beside few or many of the largest."""
    codes = np.concatenate([np.arange(65536), np.zeros(largest - 1)]).astype("<u2")
    assert np.array_equal(LOG.codes(LOG.probs(codes)), codes)


RATIOS = st.lists(st.floats(0, 1, width=32), min_size=1, max_size=30).flatmap(
    lambda values: st.integers(0, len(values)).map(lambda at: float32(*values[:at], 1.0, *values[at:]))
)


@examples(100)
@given(values=RATIOS)
@example(values=float32(1.0, 5e-45, 1e-38, 0.0))
def test_every_float_stands_for_itself(values: np.ndarray) -> None:
    decoded = FLOAT.probs(values)
    assert FLOAT.codes(decoded).tobytes() == values.tobytes()
    assert FLOAT.probs(FLOAT.codes(decoded)).tobytes() == decoded.tobytes()


def test_the_smallest_ratio_of_a_logarithm() -> None:
    """2^-40 is the last one that stands; a ratio that lies nearer to the next step becomes 0, and an exact 0 stays one."""
    ratios = [
        1.0,
        2.0**-40,
        2.0**-40 * math.exp(-0.49 * LOG.step),
        2.0**-40 * math.exp(-0.51 * LOG.step),
        2.0**-41,
        1e-300,
        0.0,
    ]
    probs = np.array(ratios) / sum(ratios)
    assert LOG.codes(probs).tolist() == [0, 65534, 65534, 65535, 65535, 65535, 65535]
    decoded = quantise_ratios(LOG)(probs)
    assert decoded[1] == pytest.approx(2.0**-40, rel=1e-9)
    assert decoded[3:].tolist() == [0, 0, 0, 0]


@BOTH
def test_a_point_mass_stays_one(ratios: Ratios) -> None:
    assert quantise_ratios(ratios)(one_hot(2, 5)).tolist() == one_hot(2, 5).tolist()
    assert np.flatnonzero(ratios.codes(one_hot(2, 5)) != ratios.zero).tolist() == [2]


@pytest.mark.parametrize("codes", [(1,), (1, 2, 3), (65535,), (65535, 65535), (65534, 65535)], ids=str)
def test_logarithms_without_a_largest_are_no_distribution(codes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="the largest is not 1"):
        LOG.probs(np.array(codes, dtype="<u2"))


@BOTH
def test_nothing_is_no_distribution(ratios: Ratios) -> None:
    with pytest.raises(ValueError, match="the largest is not 1"):
        ratios.probs(np.array([], dtype=ratios.dtype))


@pytest.mark.parametrize(
    "values",
    [
        (1.0, math.nan),
        (math.nan, 1.0),
        (math.nan,),
        (INF, 1.0),
        (1.0, -INF),
        (INF, -INF),
        (1.0, -1e-45),
        (1.0, -0.5),
        (-1.0,),
        (0.0, 0.0),
        (0.5, 0.5),
        (1.0000001, 1.0),
        (0.99999994, 0.5),
        (3e38, 3e38),
    ],
    ids=str,
)
def test_float32_values_that_are_no_distribution(values: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="negative, not finite, or the largest is not 1"):
        FLOAT.probs(float32(*values))


def test_a_signalling_nan_is_refused_without_a_warning() -> None:
    values = np.frombuffer(np.array([0x7F800001, 0x3F800000], dtype="<u4").tobytes(), dtype="<f4")
    with pytest.raises(ValueError, match="not finite"):
        FLOAT.probs(values)


def test_the_code_of_a_precision() -> None:
    assert isinstance(ratios_of(16), LogRatios)
    assert isinstance(ratios_of(32), FloatRatios)
    assert [ratios_of(bits).bits for bits in (16, 32)] == [16, 32]
    for bits in (16, 32):
        assert np.dtype(ratios_of(bits).dtype).itemsize * 8 == bits


@BOTH
def test_the_input_stays_as_it_was(ratios: Ratios) -> None:
    """Codes are read from a frame that must not be written to, distributions are used again."""
    probs = np.array([0.125, 0.875])
    codes = ratios.codes(probs)
    codes.setflags(write=False)
    decoded = ratios.probs(codes)
    decoded[0] = 7.0  # a view into a table would be seen in the next distribution
    assert probs.tolist() == [0.125, 0.875]
    assert ratios.probs(codes)[0] == pytest.approx(0.125, rel=1e-3)
    assert exactly(probs) is probs

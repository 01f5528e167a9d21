"""Sparse distributions to write, and what is written."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import strategies as st

from antiphon.core.distributions import Probs
from antiphon.core.rounding import quantise_ratios, ratios_of
from antiphon.wire.packing import Reader, Writer
from antiphon.wire.sparse import SparseCodec

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


def ramp(numbers: Sequence[int], size: int) -> Probs:
    """A distribution on these tokens, rounded to 8 bits."""
    distribution = np.zeros(size)
    distribution[list(numbers)] = 1 / (1 + np.arange(len(numbers)))
    return quantise_ratios(ratios_of(8))(distribution / distribution.sum())


def like_a_model(size: int, seed: int) -> Probs:
    """A distribution of the shape of a language model's: Zipf's, over ranks that are not quite the order of ids."""
    random = np.random.default_rng(seed)
    scores = -1.2 * np.log(np.arange(1, size + 1)) + random.normal(0, 1.5, size)
    ranks = np.argsort(np.arange(size) * np.exp(random.normal(0, 1.5, size)))
    distribution = np.empty(size)
    distribution[ranks] = np.exp(scores)
    return distribution / distribution.sum()

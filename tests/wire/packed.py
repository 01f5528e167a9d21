"""What a payload holds, written and read."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import strategies as st

from antiphon.core.distributions import Probs
from antiphon.core.rounding import FloatRatios, LogRatios, Ratios, quantise_fixed, quantise_ratios
from antiphon.errors import ProtocolError
from antiphon.wire.packing import Reader, Writer

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


def bits_of(size: int) -> int:
    """ceil(log2(size)), written differently from the code."""
    return sum(2**power < size for power in range(30))

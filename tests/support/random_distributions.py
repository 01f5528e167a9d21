"""Distributions for property tests: any number of tokens, zeros, point masses, probabilities far apart."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from antiphon.core.distributions import Probs

VALUES = st.one_of(st.just(0.0), st.floats(1e-12, 1.0), st.sampled_from([1.0, 0.5, 1e-30, 1 / 3]))


@st.composite
def distributions(draw: st.DrawFn, least: int = 1, most: int = 40) -> Probs:
    """Any distribution over `least` to `most` tokens; at least one value is large."""
    size = draw(st.integers(least, most))
    found = draw(hnp.arrays(np.float64, size, elements=VALUES))
    found[draw(st.integers(0, size - 1))] = draw(st.sampled_from([1.0, 0.1, 3.0]))
    return found / found.sum()


def large(concentration: float, tokens: int = 262_144, seed: int = 1) -> Probs:
    """A random distribution over as many tokens as a real vocabulary has."""
    probs: Probs = np.random.Generator(np.random.PCG64(seed)).dirichlet(np.full(tokens, concentration))
    return probs

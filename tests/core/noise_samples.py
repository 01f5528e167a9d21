"""The noise of many keys, positions and tokens."""

import numpy as np
from hypothesis import strategies as st

from antiphon.core.distributions import Ids

KEYS = st.integers(0, 2**128 - 1)


POSITIONS = st.integers(0, 2**31)


MASK = 2**32 - 1


def numbers(count: int, first: int = 0) -> Ids:
    return np.arange(first, first + count, dtype=np.int32)

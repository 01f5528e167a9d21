"""What a forward pass is given."""

import ctypes
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from antiphon.models.llamacpp.library import lib
from antiphon.models.llamacpp.sequences import BATCH, ROWS

SEQUENCES = 192
"""For contexts, two each, and for the leaves of their trees, one each. llama.cpp reserves a row of logits for every one (1 MiB
with Gemma's vocabulary), and has 256 at most."""


class Batch:
    """A llama_batch over arrays that numpy owns."""

    def __init__(self) -> None:
        self._tokens = np.zeros(BATCH, np.int32)
        self._positions = np.zeros(BATCH, np.int32)
        self._counts = np.zeros(BATCH, np.int32)
        self._holders = np.zeros(max(2 * BATCH, ROWS * SEQUENCES), np.int32)  # those of every token, one after the other
        self._rows = np.zeros(BATCH, np.uint64)  # the address of each token's first one
        self._wanted = np.zeros(BATCH, np.int8)
        self._struct = lib.llama_batch(
            0,
            _pointer(self._tokens, ctypes.c_int32),
            None,
            _pointer(self._positions, ctypes.c_int32),
            _pointer(self._counts, ctypes.c_int32),
            _pointer(self._rows, ctypes.POINTER(ctypes.c_int32)),
            _pointer(self._wanted, ctypes.c_int8),
        )

    def fill(self, tokens: Sequence[int], positions: Sequence[int], holders: Sequence[Sequence[int]], rows: int) -> Any:
        """The batch of these tokens; logits are wanted of the last `rows`."""
        count, sizes = len(tokens), [len(sequences) for sequences in holders]
        starts = np.fromiter(accumulate(sizes[:-1], initial=0), np.uint64, count)
        self._tokens[:count] = tokens
        self._positions[:count] = positions
        self._counts[:count] = sizes
        self._holders[: sum(sizes)] = list(chain.from_iterable(holders))
        # llama.cpp wants a pointer for each token: addresses are computed for all at once, without a ctypes object for each.
        self._rows[:count] = np.uint64(self._holders.ctypes.data) + starts * np.uint64(self._holders.itemsize)
        self._wanted[:count] = 0
        self._wanted[count - rows : count] = 1
        self._struct.n_tokens = count
        return self._struct


def _pointer(array: NDArray[Any], kind: Any) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(kind))

"""Where a context's tokens lie in the cache: alone it has its cells in the order of its positions, whatever it has read.

A sum over cells runs in their order, so this is what makes logits independent of the trees that were read before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.distributions import Logits
from antiphon.models.base import Stop
from antiphon.models.llamacpp.branches import Pool
from antiphon.models.llamacpp.sequences import NARROW, ROWS, SequenceContext, parts
from antiphon.models.toy import toy_pieces, toy_vocabulary
from models.llamacpp.growing import random_parents

SCRATCH = 90


@dataclass
class Cell:
    position: int
    token: int
    holders: set[int] = field(default_factory=set)


class Cache:
    """Cells without a model: a token takes the lowest free one, as in llama.cpp."""

    name, context_length, vocabulary = "cache", 400, toy_vocabulary(toy_pieces())

    def __init__(self, narrow: int) -> None:
        self.narrow = narrow
        self.widths: list[int] = []
        self._pool = Pool(SCRATCH)
        self._cells: list[Cell | None] = [None] * self.context_length

    def require_open(self) -> None:
        """It always is."""

    def take_context(self) -> tuple[int, int]:
        first, second = self._pool.take(2)
        return first, second

    def take_branches(self, count: int) -> list[int]:
        return self._pool.take(count)

    def give_context(self, holders: tuple[int, int]) -> None:
        self.give_branches(holders)

    def give_branches(self, sequences: Iterable[int]) -> None:
        for sequence in sequences:
            self.forget(sequence, 0)
            self._pool.give(sequence)

    def copy(self, source: int, target: int, start: int, end: int) -> None:
        for cell in self._cells:
            if cell is not None and source in cell.holders and start <= cell.position < end:
                cell.holders.add(target)

    def lift(self, sequence: int, start: int, end: int) -> list[bytes]:
        held = {position: token for position, token in self.held(sequence) if start <= position < end}
        return [bytes([held[position]]) for position in range(start, end)]

    def lay(self, cells: Sequence[bytes], holders: Sequence[int], start: int) -> None:
        for position, cell in enumerate(cells, start):
            self._put(Cell(position, cell[0], set(holders)))

    def forget(self, sequence: int, start: int) -> None:
        for index, cell in enumerate(self._cells):
            if cell is not None and cell.position >= start:
                cell.holders.discard(sequence)
                self._cells[index] = cell if cell.holders else None

    def first(self, sequence: int) -> int:
        return min((position for position, _ in self.held(sequence)), default=-1)

    def needed_from(self, length: int) -> int:
        return 0

    def decode(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        holders: Sequence[Sequence[int]],
        rows: int,
        stop: Stop | None = None,
    ) -> Logits:
        self.widths.append(len(tokens))
        for token, position, sequences in zip(tokens, positions, holders, strict=True):
            self._put(Cell(position, token, set(sequences)))
        return np.zeros((rows, len(self.vocabulary)), np.float32)

    def held(self, sequence: int) -> list[tuple[int, int]]:
        """The positions and tokens that a sequence holds, in the order of their cells."""
        return [(cell.position, cell.token) for cell in self._cells if cell is not None and sequence in cell.holders]

    @property
    def used(self) -> list[int]:
        """The cells that are not free."""
        return [index for index, cell in enumerate(self._cells) if cell is not None]

    def _put(self, cell: Cell) -> None:
        self._cells[self._cells.index(None)] = cell


@given(seed=st.integers(0, 2**32))
def test_a_context_alone_has_its_cells_in_order_and_without_gaps(seed: int) -> None:
    random = np.random.Generator(np.random.PCG64(seed))
    cache = Cache(NARROW)
    context = SequenceContext(cache, (holders := cache.take_context()), 0)
    tokens = [int(token) for token in random.integers(0, 250, 10)]
    context.extend(tokens, 0)
    for _ in range(6):
        count = int(random.integers(1, 15))
        parents = random_parents(random, count)
        nodes = [int(token) for token in random.integers(0, 250, count)]
        node = int(random.integers(-1, count))
        context.grow(nodes, parents)
        context.settle(node)
        path = []
        while node >= 0:
            path.append(nodes[node])
            node = parents[node]
        tokens = [*tokens, *path[::-1], 7]
        context.extend([7])
        assert [cache.held(holder) for holder in holders] == [list(enumerate(tokens))] * 2
        assert cache.used == list(range(len(tokens)))
        cut = int(random.integers(5, len(tokens) + 1))
        context.rewind(cut)
        del tokens[cut:]


@pytest.mark.parametrize(("narrow", "widths"), [(NARROW, [7, 6, 2]), (ROWS, [15])])
def test_passes_are_as_narrow_as_the_model_says(narrow: int, widths: list[int]) -> None:
    cache = Cache(narrow)
    context = SequenceContext(cache, cache.take_context(), 0)
    context.grow(range(15), range(-1, 14))
    context.settle()
    assert cache.widths == widths
    context.extend(range(15), 3)
    assert cache.widths == 2 * widths
    context.extend(range(30), 0)
    assert cache.widths == [*2 * widths, 30]


@pytest.mark.parametrize(
    ("count", "ends"), [(0, []), (1, [1]), (7, [7]), (8, [6, 8]), (9, [7, 9]), (14, [7, 14]), (15, [7, 13, 15])]
)
def test_a_part_of_one_token_stands_alone_or_nowhere(count: int, ends: list[int]) -> None:
    assert [part.stop for part in parts(count, 7)] == ends

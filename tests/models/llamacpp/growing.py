"""Random token trees, and what they must say: the logits of reading every path plainly."""

from collections.abc import Sequence

import numpy as np

from antiphon.models.base import Context, Model


def path_to(parents: Sequence[int], node: int) -> list[int]:
    """The nodes from the top down to `node`."""
    path = []
    while node >= 0:
        path.append(node)
        node = parents[node]
    return path[::-1]


def read_paths(context: Context, tokens: Sequence[int], parents: Sequence[int]) -> np.ndarray:
    """The logits after every node, each of whose paths is read behind the context's tokens, token after token."""
    length, rows = context.length, []
    for node in range(len(tokens)):
        row = [context.extend([tokens[step]]) for step in path_to(parents, node)][-1]
        rows.append(row[0])
        context.rewind(length)
    return np.stack(rows)


def random_parents(random: np.random.Generator, count: int, first: int = 0) -> list[int]:
    """Nodes from `first` on behind any earlier node, more often behind a late one."""
    return [int(random.integers(max(-1, node - 6), node)) for node in range(first, first + count)]


class Walk:
    """One context that grows, settles, extends and rewinds at random, and one that only ever reads the same tokens plainly."""

    def __init__(
        self, model: Model, random: np.random.Generator, widest: int, rounding: float, prefix: Sequence[int] = ()
    ) -> None:
        self.model, self.random, self.widest, self.rounding = model, random, widest, rounding
        self.context, self.plain = model.open(), model.open()
        self.committed: list[int] = []

    def close(self) -> None:
        self.context.close()
        self.plain.close()

    def ids(self, count: int) -> list[int]:
        return [int(token) for token in self.random.integers(3, min(2000, len(self.model.vocabulary)), count)]

    def commit(self, tokens: Sequence[int]) -> None:
        self.committed += tokens
        for token in tokens:
            self.plain.extend([token])
        assert self.context.length == self.plain.length == len(self.committed)

    def grow(self) -> tuple[list[int], list[int]]:
        """One tree in one to three calls."""
        tokens: list[int] = []
        parents: list[int] = []
        rows = []
        for _ in range(self.random.integers(1, 4)):
            count = int(self.random.integers(1, self.widest + 1))
            more, above = self.ids(count), random_parents(self.random, count, len(tokens))
            rows.append(self.context.grow(more, above))
            tokens, parents = tokens + more, parents + above
        self.same(np.concatenate(rows), read_paths(self.plain, tokens, parents))
        return tokens, parents

    def same(self, found: np.ndarray, wanted: np.ndarray) -> None:
        np.testing.assert_allclose(found, wanted, atol=self.rounding)

    def step(self) -> None:
        tokens, parents = self.grow()
        end = self.random.integers(3)
        if end == 0:
            self.context.rewind(len(self.committed))
        else:
            node = int(self.random.integers(-1, len(tokens)))
            self.context.settle(node)
            self.commit([tokens[step] for step in path_to(parents, node)])
        if end == 1:
            more = self.ids(int(self.random.integers(1, 5)))
            self.same(self.context.extend(more), self.plain.extend(more))
            self.committed += more
        if self.random.random() < 0.3:
            self.rewind(int(self.random.integers(len(self.committed) + 1)))

    def rewind(self, length: int) -> None:
        del self.committed[length:]
        for context in (self.context, self.plain):
            context.rewind(length)

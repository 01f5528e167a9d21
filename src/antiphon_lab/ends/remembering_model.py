"""A model that reads no tokens twice: what it said after the same tokens before, it says again.

Virtual time does not care how long a pass really took, so an answer on another link, on other hardware or with another draft
length costs only the passes over tokens that were not read before; with a fixed length in lockstep, none. The logits are those
of the pass that came first. Where a backend's logits depend on how a pass is batched, a run that remembers differs from one
that does not by that noise, as two runs with other batches do.
"""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from antiphon.core.distributions import Logits
from antiphon.models.base import Context, Model, Stop, require_node, require_settled, require_tree
from antiphon_lab.ends.wrapped_model import WrappedModel

REMEMBERED_BYTES = 2**30
"""Logits kept at most, of one model; the oldest go first."""


class RememberingModel(WrappedModel):
    """Another model, and what it said."""

    def __init__(self, model: Model, most_bytes: int = REMEMBERED_BYTES) -> None:
        super().__init__(model)
        self._most = max(1, most_bytes // (4 * len(model.vocabulary)))
        self._rows: OrderedDict[tuple[int, ...], Logits] = OrderedDict()
        self.passes = 0
        """Those that were really made."""

    def open(self) -> "RememberingContext":
        """An empty context."""
        return RememberingContext(self, self._model.open(), [])

    def close(self) -> None:
        """Free the model, and forget."""
        self._rows.clear()
        super().close()

    def recall(self, paths: Sequence[tuple[int, ...]]) -> Logits | None:
        """The logits after each of these token sequences, shape (paths, vocabulary), if all are known."""
        if any(path not in self._rows for path in paths):
            return None
        for path in paths:
            self._rows.move_to_end(path)
        found = [self._rows[path] for path in paths]
        return np.stack(found) if found else np.empty((0, len(self.vocabulary)), dtype=np.float32)

    def remember(self, paths: Sequence[tuple[int, ...]], logits: Logits) -> None:
        """Keep what was said after each of these token sequences."""
        self.passes += 1
        for path, row in zip(paths, logits, strict=True):
            self._rows[path] = row.copy()
        while len(self._rows) > self._most:
            self._rows.popitem(last=False)


class RememberingContext:
    """The tokens that were read as the caller knows it, and a real context that follows when it has to."""

    def __init__(self, model: RememberingModel, context: Context, tokens: list[int]) -> None:
        self._model, self._context, self._tokens = model, context, tokens
        self._held = list(tokens)  # what the real context has read
        self._paths: list[tuple[int, ...]] = []  # the tokens from behind the context to each node of a pending tree
        self._nodes: list[tuple[int, int]] = []  # token and parent of each of them
        self._grown = 0  # how many of them the real context has

    @property
    def length(self) -> int:
        """Tokens read so far."""
        return len(self._tokens)

    def extend(self, tokens: Sequence[int], rows: int = 1, stop: Stop | None = None) -> Logits:
        """Read `tokens`; logits after each of the last `rows`."""
        require_settled(len(self._paths), "extend")
        read = [*self._tokens, *tokens]
        paths = [tuple(read[: len(read) - rows + 1 + row]) for row in range(rows)]
        logits = self._model.recall(paths)
        if logits is None:
            self._follow()
            logits = self._context.extend(tokens, rows)
            self._held = list(read)
            self._model.remember(paths, logits)
        self._tokens = read
        return logits

    def grow(self, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        """Read a tree of tokens; logits after each."""
        require_tree(tokens, parents, len(self._paths))
        paths, nodes = list(self._paths), list(zip(tokens, parents, strict=True))
        for token, parent in nodes:
            paths.append((*(paths[parent] if parent >= 0 else ()), token))
        asked = [(*self._tokens, *path) for path in paths[len(self._paths) :]]
        logits = self._model.recall(asked)
        if logits is None:
            logits = self._really_grow([*self._nodes, *nodes])[-len(nodes) :]
            self._model.remember(asked, logits)
        self._paths, self._nodes = paths, [*self._nodes, *nodes]
        return logits

    def settle(self, node: int = -1) -> None:
        """Keep the path to `node`."""
        require_node(node, len(self._paths))
        kept = node if node < self._grown else -1
        if self._grown:
            self._context.settle(kept)
        if node >= 0:
            self._held += self._paths[node] if kept == node else ()
            self._tokens += self._paths[node]
        self._drop_tree()

    def rewind(self, length: int) -> None:
        """Drop a pending tree, and forget every token after the first `length`."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot rewind a context of {self.length} tokens to {length}")
        if self._grown:
            self._context.settle(-1)
        self._drop_tree()
        del self._tokens[length:]

    def fork(self) -> "RememberingContext":
        """A copy."""
        require_settled(len(self._paths), "fork")
        self._follow()
        return RememberingContext(self._model, self._context.fork(), list(self._tokens))

    def close(self) -> None:
        """Give the cache back."""
        self._context.close()

    def _follow(self) -> None:
        """Have the real context read what it has not."""
        common = 0
        for held, wanted in zip(self._held, self._tokens, strict=False):
            if held != wanted:
                break
            common += 1
        self._context.rewind(common)
        if missing := self._tokens[common:]:
            self._context.extend(missing, 0)
        self._held = list(self._tokens)

    def _really_grow(self, nodes: Sequence[tuple[int, int]]) -> Logits:
        """Grow the nodes that the real context has not; their logits."""
        if not self._grown:
            self._follow()
        tokens, parents = zip(*nodes[self._grown :], strict=True)
        logits = self._context.grow(tokens, parents)
        self._grown = len(nodes)
        return logits

    def _drop_tree(self) -> None:
        self._paths, self._nodes, self._grown = [], [], 0

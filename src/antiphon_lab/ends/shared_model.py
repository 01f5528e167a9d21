"""One model for all answers to a question: what it said after the same tokens it says again, and a prompt is read once.

Both ends of a mixture can be the same model, and the methods that answer a question read the same two prompts and much the same
answers. So contexts here are only lists of tokens; logits are kept by all tokens before them, and what is not kept is read
through a few real contexts, each taken back to where it still fits. Virtual time does not care how long that took. Logits are
then a function of the tokens alone, whoever asks first: the same at every end, and the same when an answer is checked.
"""

from collections.abc import Sequence

import numpy as np

from antiphon.core.distributions import Logits
from antiphon.models.base import Context, Model, Stop, require_node, require_settled, require_tree
from antiphon_lab.ends.wrapped_model import WrappedModel

READERS = 3
"""Real contexts at most: the device's prompt, the cloud's, and one for both ends' passages together."""

Path = tuple[int, ...]


class _Reader:
    """A real context, and what it holds."""

    def __init__(self, context: Context) -> None:
        self.context, self.held = context, list[int]()

    def shared(self, path: Path) -> int:
        """How many leading tokens of the path it need not read again; the last one always is, for its logits."""
        limit, count = min(len(path) - 1, len(self.held)), 0
        while count < limit and self.held[count] == path[count]:
            count += 1
        return count

    def read(self, path: Path) -> Logits:
        """The logits after the path, shape (vocabulary,)."""
        kept = self.shared(path)
        self.context.rewind(kept)
        self.held = self.held[:kept]
        rows = self.context.extend(path[kept:], 1)
        self.held = list(path)
        row: Logits = rows[0]
        return row


class SharedModel(WrappedModel):
    """Another model, and what it said since the last `forget`. Closing it closes the other one."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._readers: list[_Reader] = []
        self._rows: dict[Path, Logits] = {}
        self.passes = 0
        """Those that were really made."""

    def open(self) -> "SharedContext":
        """An empty context."""
        return SharedContext(self, ())

    def close(self) -> None:
        """Free the model."""
        self.forget()
        super().close()

    def forget(self) -> None:
        """Before another question: what is known is of no use any more, and every context begins anew."""
        for reader in self._readers:
            reader.context.close()
        self._readers.clear()
        self._rows.clear()

    def row(self, path: Path) -> Logits:
        """The logits after these tokens, shape (vocabulary,); the array is not the caller's to change."""
        if path not in self._rows:
            self._rows[path] = self._reader(path).read(path)
            self.passes += 1
        return self._rows[path]

    def _reader(self, path: Path) -> _Reader:
        """The real context that has the least to read; a new one, while there may be more, rather than to lose most of one."""
        best = max(self._readers, key=lambda reader: reader.shared(path), default=None)
        fits = best is not None and 2 * best.shared(path) >= len(path)
        if best is None or (not fits and len(self._readers) < READERS):
            best = _Reader(self._model.open())
            self._readers.append(best)
        elif not fits:
            best = self._readers[0]
        self._readers.remove(best)
        self._readers.append(best)  # the one that was used last comes last
        return best


class SharedContext:
    """The tokens that were read, as the caller knows it."""

    def __init__(self, model: SharedModel, tokens: Path) -> None:
        self._model, self._tokens = model, tokens
        self._tree: list[Path] = []  # the tokens from behind the context to each node of a pending tree

    @property
    def length(self) -> int:
        """Tokens read so far."""
        return len(self._tokens)

    def extend(self, tokens: Sequence[int], rows: int = 1, stop: Stop | None = None) -> Logits:
        """Read `tokens`; logits after each of the last `rows`."""
        require_settled(len(self._tree), "extend")
        read = (*self._tokens, *tokens)
        logits = self._rows([read[: len(read) - rows + 1 + row] for row in range(rows)])
        self._tokens = read
        return logits

    def grow(self, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        """Read a tree of tokens; logits after each."""
        require_tree(tokens, parents, len(self._tree))
        tree = list(self._tree)
        for token, parent in zip(tokens, parents, strict=True):
            tree.append((*(tree[parent] if parent >= 0 else ()), token))
        logits = self._rows([(*self._tokens, *path) for path in tree[len(self._tree) :]])
        self._tree = tree
        return logits

    def settle(self, node: int = -1) -> None:
        """Keep the path to `node`."""
        require_node(node, len(self._tree))
        self._tokens += self._tree[node] if node >= 0 else ()
        self._tree = []

    def rewind(self, length: int) -> None:
        """Drop a pending tree, and forget every token after the first `length`."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot rewind a context of {self.length} tokens to {length}")
        self._tokens, self._tree = self._tokens[:length], []

    def fork(self) -> "SharedContext":
        """A copy."""
        require_settled(len(self._tree), "fork")
        return SharedContext(self._model, self._tokens)

    def close(self) -> None:
        """There is nothing to give back."""

    def _rows(self, paths: Sequence[Path]) -> Logits:
        if not paths:
            return np.empty((0, len(self._model.vocabulary)), dtype=np.float32)
        return np.stack([self._model.row(path) for path in paths])

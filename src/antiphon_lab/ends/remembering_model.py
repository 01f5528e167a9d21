"""A model that reads no tokens twice: what it said after the same tokens before, it says again, whoever asks.

Virtual time does not care how long a pass really took, so an answer on another link, on other hardware or with another draft
length costs only the passes over tokens that were not read before; with a fixed length in lockstep, none. Methods that answer
one question mostly walk the same tokens, and both ends of a mixture can be one model.

So a context here is only a list of tokens. Logits are kept by all tokens before them, and what is not kept is read through a
few real contexts, each taken back to where it still fits; what the asking context had read before goes in passes of its own,
so that the pass after it is as wide as it was asked for. Where a backend's logits depend on how a pass is batched, those
passes count: a prompt is read again at once, and whole, what came behind it in parts so narrow that no logit depends on their
width. So with one real context (`readers`) an answer of narrow passes is, to the last bit, the one that the model itself gives,
whatever was kept and whatever was not; the logits of wider ones are those of the pass that came first.
"""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from antiphon.core.distributions import Logits
from antiphon.models.base import Context, Model, Stop, require_node, require_settled, require_tree
from antiphon_lab.ends.wrapped_model import WrappedModel

REMEMBERED_BYTES = 2**30
"""Logits kept at most, of one model; the oldest go first."""
READERS = 3
"""Real contexts at most: in a mixture the device's prompt, the cloud's, and one for both ends' passages together.

They share the cells of a model, and so a backend's logits can depend on how many there are.
"""
NARROW = 7
"""Tokens of a pass that no logit depends on (docs/speculative.md, *What moves logits*)."""

Path = tuple[int, ...]
"""Tokens from the beginning; of a pending tree, from behind the context to a node."""


class RememberingModel(WrappedModel):
    """Another model, and what it said since the last `forget`. Closing it closes the other one."""

    def __init__(self, model: Model, most_bytes: int = REMEMBERED_BYTES, readers: int = READERS) -> None:
        super().__init__(model)
        self._most_readers = readers
        self._most = max(1, most_bytes // (4 * len(model.vocabulary)))
        self._rows: OrderedDict[Path, Logits] = OrderedDict()
        self._readers: list[_Reader] = []  # the one that was used last comes last
        self.passes = 0
        """Those that were really made."""

    def open(self) -> "RememberingContext":
        """An empty context."""
        return RememberingContext(self, (), 0)

    def close(self) -> None:
        """Free the model, and forget."""
        self.forget()
        super().close()

    def forget(self) -> None:
        """Before another question: what is known is of no use any more, and every real context begins anew."""
        for reader in self._readers:
            reader.context.close()
        self._readers.clear()
        self._rows.clear()

    def row(self, path: Path) -> Logits:
        """The logits after these tokens, shape (vocabulary,)."""
        row: Logits = self.extend(path[:-1], path[-1:], 1)[0]
        return row

    def extend(self, before: Path, tokens: Path, rows: int, wide: int = 0) -> Logits:
        """The logits after each of the last `rows` of `tokens`, which follow those before, shape (rows, vocabulary).

        wide: so many of those before were read in wide passes.
        """
        read = before + tokens
        paths = [read[: len(read) - rows + 1 + row] for row in range(rows)]
        if (known := self._recall(paths)) is not None:
            return known
        return self._remember(paths, self._reader(read).extend(before, tokens, rows, wide))

    def grow(self, tokens: Path, tree: Sequence[Path], nodes: Sequence[tuple[int, int]], new: int, wide: int = 0) -> Logits:
        """The logits after the last `new` nodes of a tree behind `tokens`. tree: the paths to all; nodes: token and parent."""
        paths = [tokens + path for path in tree[-new:]]
        if (known := self._recall(paths)) is not None:
            return known
        return self._remember(paths, self._reader(tokens, len(tree)).grow(tokens, tree, nodes, wide)[-new:])

    def _recall(self, paths: Sequence[Path]) -> Logits | None:
        """The logits after each of these, if all are known."""
        if any(path not in self._rows for path in paths):
            return None
        for path in paths:
            self._rows.move_to_end(path)
        found = [self._rows[path] for path in paths]
        return np.stack(found) if found else np.empty((0, len(self.vocabulary)), dtype=np.float32)

    def _remember(self, paths: Sequence[Path], logits: Logits) -> Logits:
        self.passes += 1
        for path, row in zip(paths, logits, strict=True):
            self._rows[path] = row.copy()
        while len(self._rows) > self._most:
            self._rows.popitem(last=False)
        return logits

    def _reader(self, path: Path, more: int = 0) -> "_Reader":
        """The real context that has the least to read; a new one, while there may be more, rather than to lose most of one."""
        best = max(self._readers, key=lambda reader: reader.shared(path), default=None)
        fits = best is not None and 2 * best.shared(path) >= len(path)
        if best is None or (not fits and len(self._readers) < self._most_readers):
            best = _Reader(self._model.open())
        else:
            best = best if fits else self._readers[0]
            self._readers.remove(best)
        self._make_room(len(path) + more)
        self._readers.append(best)
        return best

    def _make_room(self, cells: int) -> None:
        """Contexts share the cells of a model: those that were used longest ago give theirs back."""
        while self._readers and sum(reader.cells for reader in self._readers) + cells > self.context_length:
            self._readers.pop(0).context.close()


class _Reader:
    """A real context, the tokens that it holds, and a tree that is pending behind them."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._held: Path = ()
        self._tree: list[Path] = []

    @property
    def cells(self) -> int:
        """Tokens and nodes in it."""
        return len(self._held) + len(self._tree)

    def shared(self, path: Path) -> int:
        """How many leading tokens of the path it need not read again."""
        count = _common(self._held, path)
        if count < len(self._held):
            return count
        return count + max((len(branch) for branch in self._tree if path[count : count + len(branch)] == branch), default=0)

    def extend(self, before: Path, tokens: Path, rows: int, wide: int) -> Logits:
        """The logits after the last `rows` of `tokens`, which are read again if need be."""
        read = before + tokens
        self._follow(read, len(read) - rows)
        self._catch_up(before, wide)
        return self._read(read[len(self._held) :], rows)

    def grow(self, tokens: Path, tree: Sequence[Path], nodes: Sequence[tuple[int, int]], wide: int) -> Logits:
        """The logits after the nodes that are not pending yet."""
        if self._held != tokens or self._tree != tree[: len(self._tree)]:
            self._follow(tokens, len(tokens))
            self._catch_up(tokens, wide)
        logits = self.context.grow(*zip(*nodes[len(self._tree) :], strict=True))
        self._tree = list(tree)
        return logits

    def _follow(self, path: Path, most: int) -> None:
        """Hold nothing but leading tokens of the path, as many as are there, `most` at most."""
        ahead = path[len(self._held) :] if path[: len(self._held)] == self._held else ()
        branches = [(len(branch), node) for node, branch in enumerate(self._tree) if ahead[: len(branch)] == branch]
        _, node = max(branches, default=(0, -1))
        self.context.settle(node)
        self._held += self._tree[node] if node >= 0 else ()
        self._tree = []
        kept = min(_common(self._held, path), most)
        self.context.rewind(kept)
        self._held = self._held[:kept]

    def _catch_up(self, path: Path, wide: int) -> None:
        """Hold the path, read as it was read first."""
        if len(self._held) < wide:
            self.context.rewind(0)
            self._held = ()
            self._read(path[:wide], 0)
        for start in range(len(self._held), len(path), NARROW):
            self._read(path[start : start + NARROW], 0)

    def _read(self, tokens: Path, rows: int) -> Logits:
        logits = self.context.extend(tokens, rows)
        self._held += tokens
        return logits


def _common(one: Path, other: Path) -> int:
    """How many leading tokens they share."""
    limit = min(len(one), len(other))
    return next((place for place in range(limit) if one[place] != other[place]), limit)


class RememberingContext:
    """The tokens that were read, as the caller knows it."""

    def __init__(self, model: RememberingModel, tokens: Path, wide: int) -> None:
        self._model, self._tokens = model, tokens
        self._wide = wide  # leading tokens that were read in wide passes, as a prompt is
        self._tree: list[Path] = []  # the tokens from behind the context to each node of a pending tree
        self._nodes: list[tuple[int, int]] = []  # token and parent of each of them

    @property
    def length(self) -> int:
        """Tokens read so far."""
        return len(self._tokens)

    def extend(self, tokens: Sequence[int], rows: int = 1, stop: Stop | None = None) -> Logits:
        """Read `tokens`; logits after each of the last `rows`."""
        require_settled(len(self._tree), "extend")
        logits = self._model.extend(self._tokens, tuple(tokens), rows, self._wide)
        self._tokens += tuple(tokens)
        if rows == 0 and len(tokens) > NARROW:
            self._wide = len(self._tokens)
        return logits

    def grow(self, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        """Read a tree of tokens; logits after each."""
        require_tree(tokens, parents, len(self._tree))
        tree, new = list(self._tree), list(zip(tokens, parents, strict=True))
        for token, parent in new:
            tree.append((*(tree[parent] if parent >= 0 else ()), token))
        nodes = [*self._nodes, *new]
        logits = self._model.grow(self._tokens, tree, nodes, len(new), self._wide)
        self._tree, self._nodes = tree, nodes
        return logits

    def settle(self, node: int = -1) -> None:
        """Keep the path to `node`."""
        require_node(node, len(self._tree))
        self._tokens += self._tree[node] if node >= 0 else ()
        self._tree, self._nodes = [], []

    def rewind(self, length: int) -> None:
        """Drop a pending tree, and forget every token after the first `length`."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot rewind a context of {self.length} tokens to {length}")
        self._tokens, self._tree, self._nodes = self._tokens[:length], [], []
        self._wide = min(self._wide, length)

    def fork(self) -> "RememberingContext":
        """A copy."""
        require_settled(len(self._tree), "fork")
        return RememberingContext(self._model, self._tokens, self._wide)

    def close(self) -> None:
        """There is nothing to give back."""

"""A context as sequences over one cache of cells that many contexts share.

A context has two sequences, both of which hold each of its tokens: a cell that lies behind a sliding window and is held by
one sequence only, llama.cpp gives to any other that needs one, `swa_full` or not; after a rollback it would be missed,
silently. The leaves of a pending tree have a sequence each (see `branches`), and these hold the context's tokens too; the
two of the context hold nothing of the tree until it is settled. Then the path that is kept moves to the lowest free cells: a
sum runs over the cells in their order, so tokens that later came to lie in gaps of the tree, before earlier ones, would move
every logit (measured: by up to .9). A gap by itself moves none.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np

from antiphon.core.distributions import Logits
from antiphon.errors import CapacityError, ModelError
from antiphon.models.base import Preempted, Stop, require_node, require_settled, require_tree
from antiphon.models.llamacpp.branches import Branch, Growth, Tree
from antiphon.vocabulary import Vocabulary

BATCH = 512
ROWS = 64
"""Rows of logits of one pass at most."""
NARROW = 7
"""Tokens of a pass on a CPU at most, where logits are wanted of up to ROWS: no logit depends on the width of so few."""


class Cells(Protocol):
    """The cache, and the model that fills it. A range of positions is [start, end)."""

    name: str
    vocabulary: Vocabulary
    context_length: int
    narrow: int
    """Tokens of a pass at most whose logits a method wants."""

    def require_open(self) -> None:
        """Raises ValueError after the model was closed."""
        ...

    def take_context(self) -> tuple[int, int]:
        """Two free sequences for a context. Raises CapacityError."""
        ...

    def take_branches(self, count: int) -> list[int]:
        """Free sequences for leaves. Raises CapacityError."""
        ...

    def give_context(self, holders: tuple[int, int]) -> None:
        """Forget what a context's sequences hold, and let another have them. Harmless after the model was closed."""
        ...

    def give_branches(self, sequences: Iterable[int]) -> None:
        """Forget what these hold, and let others have them. Harmless after the model was closed."""
        ...

    def copy(self, source: int, target: int, start: int, end: int) -> None:
        """Let `target` hold what `source` holds in that range."""
        ...

    def lift(self, sequence: int, start: int, end: int) -> list[bytes]:
        """What the cells hold that `sequence` has in that range, one by one."""
        ...

    def lay(self, cells: Sequence[bytes], holders: Sequence[int], start: int) -> None:
        """Put what was lifted into the lowest free cells, from the position `start` on, for `holders`. Raises ModelError."""
        ...

    def forget(self, sequence: int, start: int) -> None:
        """Let a sequence hold nothing from `start` on. Raises ModelError."""
        ...

    def first(self, sequence: int) -> int:
        """The first position from which a sequence holds every one in every layer, -1 if it is empty."""
        ...

    def needed_from(self, length: int) -> int:
        """The first position that the token after `length` others looks at in every layer that looks back at all."""
        ...

    def decode(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        holders: Sequence[Sequence[int]],
        rows: int,
        stop: Stop | None = None,
    ) -> Logits:
        """One forward pass of at most BATCH tokens; logits of the last `rows`, at most ROWS.

        holders: the sequences that hold each token. Raises CapacityError, ModelError, and Preempted if `stop` is set in time.
        """
        ...


class SequenceContext:
    """Tokens in a shared cache."""

    def __init__(self, model: Cells, holders: tuple[int, int], length: int) -> None:
        self._model, self._holders, self._length = model, holders, length
        self._tree = Tree()
        self._open = True

    @property
    def length(self) -> int:
        """Tokens read so far."""
        return self._length

    def extend(self, tokens: Sequence[int], rows: int = 1, stop: Stop | None = None) -> Logits:
        """Read `tokens`; logits after each of the last `rows`, shape (rows, vocabulary)."""
        self._require_open()
        require_settled(len(self._tree), "extend")
        if not 0 <= rows <= len(tokens):
            raise ValueError(f"{rows} rows of logits were asked of a pass of {len(tokens)} tokens")
        self._check(tokens)
        before, found = self._length, [_no_rows(self._model)]
        try:
            for chunk, wanted in chunks(tokens, rows, self._model.narrow):
                end = self._length + len(chunk)
                found.append(self._model.decode(chunk, range(self._length, end), [self._holders] * len(chunk), wanted, stop))
                self._length = end
        # Whatever parts were read before the one that failed: to the caller nothing was.
        except (CapacityError, ModelError, Preempted):
            self.rewind(before)
            raise
        return _joined(found)

    def grow(self, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        """Read a tree of tokens; logits after each, shape (len(tokens), vocabulary)."""
        self._require_open()
        require_tree(tokens, parents, len(self._tree))
        self._check(tokens)
        growth = self._tree.grown(parents, self._holders[0], self._model.take_branches)
        try:
            logits = self._read(tokens, growth)
        except Exception:
            self._take_back(growth.branches)
            raise
        self._tree = growth.tree
        return logits

    def settle(self, node: int = -1) -> None:
        """Keep the path to `node`, and drop the rest of the tree."""
        self._require_open()
        require_node(node, len(self._tree))
        # No tree is pending from here on, even if what follows fails: its sequences are given back once.
        tree, self._tree = self._tree, Tree()
        try:
            kept = self._lifted(tree, node)
        finally:
            self._model.give_branches(tree.tips.values())
        # The path moves to the lowest free cells, as if it had been read plainly: gaps between cells change the order of a sum,
        # and with it later logits (docs/speculative.md#what-moves-logits).
        self._model.lay(kept, self._holders, self._length)
        self._length += len(kept)

    def rewind(self, length: int) -> None:
        """Drop a pending tree, and forget every token after the first `length`."""
        self._require_open()
        if not 0 <= length <= self._length:
            raise ValueError(f"cannot rewind a context of {self._length} tokens to {length}")
        self.settle()
        for holder in self._holders:
            self._model.forget(holder, length)  # also what a failed pass may have left beyond our length
        self._require_held(self._holders[0], self._model.needed_from(length))
        self._length = length

    def fork(self) -> "SequenceContext":
        """A context over the same cells."""
        self._require_open()
        require_settled(len(self._tree), "fork")
        holders = self._model.take_context()
        for own, other in zip(self._holders, holders, strict=True):
            self._model.copy(own, other, 0, self._length)
        return SequenceContext(self._model, holders, self._length)

    def close(self) -> None:
        """Give the cells and the sequences back."""
        if self._open:
            self._open = False
            self._model.give_branches(self._tree.tips.values())
            self._model.give_context(self._holders)

    def _read(self, tokens: Sequence[int], growth: Growth) -> Logits:
        for branch in growth.branches:
            if branch.is_new:
                self._require_held(branch.source, 0)
                self._model.copy(branch.source, branch.sequence, 0, self._length + branch.depth)
        positions, found = [self._length + depth - 1 for depth in growth.depths], []
        for part in parts(len(tokens), self._model.narrow if len(tokens) <= ROWS else ROWS):
            chunk = tokens[part]
            found.append(self._model.decode(chunk, positions[part], growth.below[part], len(chunk)))
        return _joined(found)

    def _take_back(self, branches: Sequence[Branch]) -> None:
        self._model.give_branches([branch.sequence for branch in branches if branch.is_new])
        for branch in branches:
            if not branch.is_new:
                self._model.forget(branch.sequence, self._length + branch.depth)

    def _lifted(self, tree: Tree, node: int) -> list[bytes]:
        """What a leaf's sequence holds of the path to `node`."""
        if node < 0:
            return []
        self._require_held(tree.holders[node], 0)
        return self._model.lift(tree.holders[node], self._length, self._length + tree.depths[node])

    def _require_held(self, sequence: int, start: int) -> None:
        # The nodes of a tree deeper than a sliding window, llama.cpp may give away, as they may have one holder only.
        if self._model.first(sequence) > start:
            raise ModelError(f"{self._model.name} lost tokens that it needs again: start the answer anew")

    def _require_open(self) -> None:
        self._model.require_open()
        if not self._open:
            raise ValueError("the context is closed: its sequence may be another's by now")

    def _check(self, tokens: Sequence[int]) -> None:
        size = len(self._model.vocabulary)
        if not all(0 <= token < size for token in tokens):
            raise ModelError(f"an id is no token of {self._model.name}: it has {size}")
        # llama.cpp itself would notice only in the middle of a pass that is read in several parts.
        if self._length + len(self._tree) + len(tokens) > self._model.context_length:
            raise full(self._model)


def full(model: Cells) -> CapacityError:
    """What to raise when the cells do not suffice."""
    return CapacityError(f"the context of {model.name} is full at {model.context_length} tokens")


def chunks(tokens: Sequence[int], rows: int, narrow: int) -> list[tuple[Sequence[int], int]]:
    """Passes of at most BATCH tokens without logits, then of at most ROWS tokens with; each with its wanted rows.

    Where no more than ROWS are wanted, the latter have at most `narrow` tokens.
    """
    silent = len(tokens) if rows == 0 else 0 if len(tokens) <= ROWS else len(tokens) - rows
    starts = list(range(0, silent, BATCH))
    found = [(tokens[start : min(start + BATCH, silent)], 0) for start in starts]
    for part in parts(len(tokens) - silent, narrow if rows <= ROWS else ROWS):
        chunk = tokens[silent + part.start : silent + part.stop]
        found.append((chunk, min(len(chunk), max(0, silent + part.stop - (len(tokens) - rows)))))
    return found


def parts(count: int, most: int) -> list[slice]:
    """Cuts of at most `most`; the last is none of 1 behind others, which several threads would read otherwise."""
    ends = [*range(most, count, most), count] if count else []
    if len(ends) > 1 and most > 2 and ends[-1] - ends[-2] == 1:
        ends[-2] -= 1
    return [slice(start, end) for start, end in pairwise([0, *ends])]


def _joined(found: Sequence[Logits]) -> Logits:
    """The rows of several passes; those of the last pass as they are if no other has any."""
    return found[-1] if len(found) == 1 or not any(map(len, found[:-1])) else np.concatenate(found)


def _no_rows(model: Cells) -> Logits:
    return np.empty((0, len(model.vocabulary)), dtype=np.float32)

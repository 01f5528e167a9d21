"""What a model's context holds, against what it should hold: each pass reads only what is new."""

from collections.abc import Sequence

from antiphon.core.tree import ROOT
from antiphon.methods.effects import Step
from antiphon.models.base import Context


class CachedContext:
    """Makes the passes of one context. The last token is always read again, for the logits after it."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._read: Sequence[int] = ()  # what the context holds, once `_node` is settled
        self._same = 0  # how many leading tokens it is known to share with those of the next pass
        self._node: int | None = -1
        self._held = 0  # tokens that the last `extend` did not read again
        self._before = 0  # tokens of the last tree's pass that stood before its nodes

    def altered(self, length: int) -> None:
        """Tokens after the first `length` may differ from those of the pass before."""
        self._same = min(self._same, length)

    def given_up(self) -> None:
        """The last pass, an `extend`, was given up: of its tokens only those that were held before it are sure."""
        self._read = self._read[: self._held]
        self._same = min(self._same, self._held)

    def held(self, tokens: Sequence[int]) -> int:
        """How many leading ones of these need not be read."""
        return self._kept(tokens, 0)

    def prefill(self, tokens: Sequence[int]) -> Step:
        """Read tokens without asking for logits."""
        self._read = tokens
        return Step(self.context, 0, tokens, 0)

    def extend(self, tokens: Sequence[int], rows: int) -> Step:
        """Read what is new of `tokens`; the logits after the last `rows` of them, which are always read again."""
        keep = self._held = self._kept(tokens, rows)
        self._read, self._before = tokens, 0
        return Step(self.context, keep, tokens[keep:], rows, node=self._settled())

    def tree(self, tokens: Sequence[int], nodes: Sequence[int], parents: Sequence[int]) -> Step:
        """Read what is new of `tokens` and a tree behind them; the logits after the last of `tokens` and every node.

        The first of the rows that come are those of `tokens`: the tree's are the last len(nodes) + 1.
        """
        keep = self._kept(tokens, 1)
        self._before = len(tokens) - keep
        behind = [self._before - 1 if parent == ROOT else self._before + parent for parent in parents]
        # Of the rest nothing is sure until `keep` says which path was accepted.
        self._read = tokens[:keep]
        everything = [*tokens[keep:], *nodes]
        # Tokens in front of the tree are a tree of one branch: one pass for both.
        chain = list(range(-1, self._before - 1))
        return Step(self.context, keep, everything, len(everything), [*chain, *behind], self._settled())

    def grow(self, nodes: Sequence[int], parents: Sequence[int]) -> Step:
        """Read another layer of a tree behind the tokens of the last `extend`; the logits after each node."""
        return Step(self.context, len(self._read), nodes, len(nodes), parents, None)

    def keep(self, tokens: Sequence[int], node: int) -> None:
        """Of the last tree, keep the path to `node` (ROOT: nothing but what it grew from), which makes `tokens` in all."""
        self._node = self._before + node if node != ROOT else self._before - 1
        self._read = tokens

    def _settled(self) -> int | None:
        node, self._node = self._node, -1
        return node

    def _kept(self, tokens: Sequence[int], rows: int) -> int:
        # What was found to agree stays agreed until something is altered: each pass compares only what is new, and not the
        # whole answer.
        limit = min(len(self._read), len(tokens) - rows)
        while self._same < limit and self._read[self._same] == tokens[self._same]:
            self._same += 1
        return min(self._same, limit)

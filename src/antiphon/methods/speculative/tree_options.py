"""The options that trees share: their shape."""

import operator
from itertools import accumulate
from typing import Any

from antiphon.options import option, require

MAX_TREE_NODES = 63
"""Nodes of a token tree at most: with the token before it, one pass of a model's batch of logits."""


def expansion_option() -> Any:
    """The field `expansion` of a tree."""
    return option("2,2,2", f"Children of each node by depth, at most {MAX_TREE_NODES} nodes in all.")


class WithTree:
    """What the options of every tree method have besides their fields: the shape that `expansion` names."""

    __slots__ = ()
    expansion: str

    @property
    def widths(self) -> tuple[int, ...]:
        """Children of a node at each depth."""
        parts = self.expansion.split(",")
        fits = all(part.strip().isascii() and part.strip().isdigit() and int(part) > 0 for part in parts)
        sentence = f"expansion must be numbers from 1 on with commas between, not {self.expansion!r}"
        require(fits and len(parts) <= 16, sentence)
        return tuple(int(part) for part in parts)

    @property
    def max_drafts(self) -> int:
        """Nodes of a full tree."""
        return sum(accumulate(self.widths, operator.mul))

    def require_fit(self) -> None:
        """Raise UsageError if it is no tree, or too large a one."""
        fits = self.max_drafts <= MAX_TREE_NODES
        require(fits, f"a tree may have at most {MAX_TREE_NODES} nodes, but {self.expansion} has {self.max_drafts}")

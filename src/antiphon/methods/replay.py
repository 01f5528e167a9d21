"""The passes of an answer, made again: the very shapes, widths, trees and rollbacks, on another context.

What decided a token is found by following the passes on paper, as lists of tokens: the first one that read the prompt, the
answer up to there and nothing else before it, and gave logits for what follows. A pass that read anything else is not found.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from antiphon.core.distributions import Logits
from antiphon.methods.effects import Now, Step
from antiphon.models.base import Context


@dataclass(frozen=True, slots=True)
class Deciding:
    """The pass that scored what follows some tokens: how many passes come before it, and which of its rows it is."""

    before: int
    row: int


def deciding(passes: Sequence[Step], tokens: Sequence[int]) -> Deciding | None:
    """The first of `passes` that scored what follows `tokens`; None if there is none."""
    paper = _Paper()
    for before, step in enumerate(passes):
        if (row := paper.read(step, list(tokens))) is not None:
            return Deciding(before, row)
    return None


def replayed(passes: Sequence[Step], found: Deciding, context: Context) -> Generator[Any, Any, Logits]:
    """Make the passes again in `context`, up to the deciding one: its row, float32, shape (tokens,)."""
    for step in passes[: found.before]:
        yield replace(step, context=context, gives_way=None)
        yield Now()  # let others have the model in between
    logits = yield replace(passes[found.before], context=context, gives_way=None)
    row: Logits = logits[found.row]
    return row


class _Paper:
    """What a context holds, as tokens: those that stand, and a pending tree."""

    def __init__(self) -> None:
        self._held: list[int] = []
        self._paths: list[list[int]] = []

    def read(self, step: Step, tokens: list[int]) -> int | None:
        """Follow a pass; its row for what follows `tokens`, if it has one."""
        if step.node is not None:
            self._held = [*self._held, *(self._paths[step.node] if step.node >= 0 else [])][: step.keep]
            self._paths = []
        if step.parents is None:
            return self._extended(step, tokens)
        return self._grown(step.tokens, step.parents, tokens)

    def _extended(self, step: Step, tokens: list[int]) -> int | None:
        self._held += step.tokens
        row = len(tokens) - 1 - (len(self._held) - step.rows)
        return row if 0 <= row < step.rows and self._held[: len(tokens)] == tokens else None

    def _grown(self, nodes: Sequence[int], parents: Sequence[int], tokens: list[int]) -> int | None:
        first, below = len(self._paths), tokens[len(self._held) :]
        for node, parent in zip(nodes, parents, strict=True):
            self._paths.append([*(self._paths[parent] if parent >= 0 else []), node])
        if self._held != tokens[: len(self._held)]:
            return None
        return next((row for row, path in enumerate(self._paths[first:]) if path == below), None)

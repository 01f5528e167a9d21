"""Models that remember what they read and count what they are asked to read."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.core.distributions import Logits, Probs, process
from antiphon.models.base import Context
from antiphon.models.toy import ToyModel
from antiphon.vocabulary import CommonVocabulary

CLOUD = [b"ab", b"a", b"", b"c", b"b", b"cab"]


SAMPLING = SamplingParams(temperature=1.0, repetition_penalty=1.3)


SEEDS = st.integers(0, 100_000)


class Remembering(ToyModel):
    """A toy whose scores hang on every token before: one wrong token anywhere in a context is seen for ever."""

    def logits(self, tokens: Sequence[int]) -> Logits:
        digest = hashlib.sha256(bytes([self._seed % 256, *tokens])).digest()
        random = np.random.default_rng(int.from_bytes(digest[:8], "little"))
        return random.standard_normal(len(self.vocabulary)).astype(np.float32)


@dataclass
class Counting:
    """A context that writes down what it holds, and how many tokens each pass reads."""

    inner: Context
    held: list[int] = field(default_factory=list)
    passes: list[int] = field(default_factory=list)
    nodes: list[tuple[int, int]] = field(default_factory=list)

    @property
    def length(self) -> int:
        return self.inner.length

    def extend(self, tokens: Sequence[int], rows: int = 1) -> Logits:
        logits = self.inner.extend(tokens, rows)
        self.held += tokens
        self.passes.append(len(tokens))
        return logits

    def grow(self, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        logits = self.inner.grow(tokens, parents)
        self.nodes += zip(tokens, parents, strict=True)
        self.passes.append(len(tokens))
        return logits

    def settle(self, node: int = -1) -> None:
        self.inner.settle(node)
        self.held += self.path(node)
        self.nodes = []

    def rewind(self, length: int) -> None:
        self.inner.rewind(length)
        self.nodes = []
        del self.held[length:]

    def path(self, node: int) -> list[int]:
        """The tokens on the path to a node of the pending tree."""
        found: list[int] = []
        while node >= 0:
            token, node = self.nodes[node]
            found.append(token)
        return found[::-1]

    def fork(self) -> Context:
        raise NotImplementedError

    def close(self) -> None:
        self.inner.close()


def shared(first: Sequence[int], second: Sequence[int]) -> int:
    """How many leading tokens are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def needed(held: Sequence[int], wanted: Sequence[int], rows: int) -> int:
    """Tokens that a pass must read for the logits after the last `rows` of `wanted`."""
    return len(wanted) - min(shared(held, wanted), len(wanted) - rows)


def wanted(model: ToyModel, tokens: Sequence[int], shared_ones: CommonVocabulary) -> Probs:
    """The target distribution after these tokens, by definition."""
    return process(model.logits(tokens), SAMPLING, tokens)[shared_ones.cloud_ids]

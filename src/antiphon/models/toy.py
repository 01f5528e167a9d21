"""Table models: tests, docs and `antiphon-lab bench overhead` need no download.

A toy's next-token scores are a fixed random function of the last two tokens' bytes and of the candidate's bytes, plus noise
of its own. So two toys with different tokenizers agree in part, as a small and a large model do, and their output distributions
can be enumerated.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from antiphon.core.distributions import Logits
from antiphon.errors import CapacityError, ModelError
from antiphon.models.base import InUse, Preempted, Stop, require_node, require_settled, require_tree
from antiphon.models.needs import EVERYTHING, Need
from antiphon.vocabulary import TokenKind, Vocabulary

END = b""
"""The piece of a toy's end-of-sequence token."""

MERGES = (
    b"th",
    b"he",
    b"in",
    b"an",
    b"er",
    b" a",
    b" t",
    b"the",
    b" the",
    b"ing",
    b"on",
    b"re",
    b"ed",
    b" of",
    b"\xc3\xa9",
)


CONTEXTS = 64
"""Open contexts of a named toy at most, as many as of a real model."""


def toy_vocabulary(pieces: Sequence[bytes]) -> Vocabulary:
    """A vocabulary of these pieces; the empty piece is the end of an answer, and every piece differs."""
    end = pieces.index(END)
    kinds = np.full(len(pieces), TokenKind.NORMAL, dtype=np.uint8)
    kinds[end] = TokenKind.CONTROL
    canonical = np.arange(len(pieces)) != end
    return Vocabulary(tuple(pieces), kinds, canonical, end, (end,))


class ToyModel:
    """A table model over `pieces`.

    seed: of its own noise. noise: how much of it, 0 for the function that all toys share. sharpness: scales the scores.
    context_length: tokens that one context can hold. contexts: that can be open at once.
    """

    offers: frozenset[Need] = EVERYTHING
    begin: tuple[int, ...] = ()
    chat_template: str | None = None

    def __init__(
        self,
        pieces: Sequence[bytes],
        *,
        seed: int = 0,
        noise: float = 1.0,
        sharpness: float = 2.0,
        context_length: int = 4096,
        contexts: int = 2**20,
        name: str = "toy",
    ) -> None:
        self.name = name
        self._open, self._most_open = 0, contexts
        self.vocabulary = toy_vocabulary(pieces)
        self.context_length = context_length
        self._longest = max(map(len, pieces))
        self._ids = {piece: token for token, piece in enumerate(pieces) if piece}
        self._seed, self._noise, self._sharpness = seed, noise, sharpness
        self._shared = np.stack([_scores(piece) for piece in pieces])
        self._tables: dict[tuple[bytes, bytes], Logits] = {}

    @property
    def in_use(self) -> InUse:
        """Its open contexts; each keeps its tokens itself."""
        return InUse(self._open)

    def open(self) -> "ToyContext":
        """An empty context. Raises CapacityError if all are in use."""
        return ToyContext(self, [])

    def admit(self) -> None:
        """Count one context more. Raises CapacityError if all are in use."""
        if self._open == self._most_open:
            raise CapacityError(f"all {self._most_open} contexts of {self.name} are in use: try again when an answer is done")
        self._open += 1

    def dismiss(self) -> None:
        """Count one less."""
        self._open -= 1

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Greedy longest match. A byte that no piece spells is lost, as real tokenizers do (see `spell`)."""
        data, ids, place = text.encode(), list[int](), 0
        while place < len(data):
            ends = range(min(place + self._longest, len(data)), place, -1)
            end = next((end for end in ends if data[place:end] in self._ids), None)
            if end is not None:
                ids.append(self._ids[data[place:end]])
            place = end or place + 1
        return ids

    def token_text(self, token: int) -> str:
        """A toy's tokens have no names but their bytes."""
        return self.vocabulary.pieces[token].decode(errors="replace")

    def close(self) -> None:
        """Nothing to free."""

    def logits(self, tokens: Sequence[int]) -> Logits:
        """The scores of the token after `tokens`: float32, shape (vocabulary,)."""
        pieces = self.vocabulary.pieces
        before = b"".join(pieces[token] for token in tokens[-8:])[-2:]
        key = (before[-2:-1], before[-1:])
        if key not in self._tables:
            shared = self._shared @ _scores(b"after" + key[1])
            own = _generator(b"own%d" % self._seed + key[0] + b"|" + key[1]).standard_normal(len(pieces))
            self._tables[key] = (self._sharpness * (shared + self._noise * own)).astype(np.float32)
        return self._tables[key]


class ToyReader(ToyModel):
    """A toy that minds all that it has read, so its documents too; they move the scores of the table by `noise`."""

    def logits(self, tokens: Sequence[int]) -> Logits:
        """The scores of the token after `tokens`: float32, shape (vocabulary,)."""
        read = hashlib.sha256(np.asarray(tokens, dtype=np.int32).tobytes()).digest()
        own = _generator(b"read%d" % self._seed + read).standard_normal(len(self.vocabulary))
        scores: Logits = (super().logits(tokens) + self._sharpness * self._noise * own).astype(np.float32)
        return scores


class ToyContext:
    """The tokens that a toy has read."""

    def __init__(self, model: ToyModel, tokens: list[int]) -> None:
        self._model = model
        self._tokens = tokens
        self._paths: list[list[int]] = []
        """The tokens from behind the context to each node of a pending tree."""
        model.admit()
        self._open = True

    @property
    def length(self) -> int:
        """Tokens read so far."""
        return len(self._tokens)

    def extend(self, tokens: Sequence[int], rows: int = 1, stop: Stop | None = None) -> Logits:
        """Read `tokens`; logits after each of the last `rows`, shape (rows, vocabulary)."""
        require_settled(len(self._paths), "extend")
        self._check(tokens)
        if stop is not None and stop.is_set:
            raise Preempted
        self._tokens.extend(tokens)
        first = self.length - rows + 1
        found = [self._model.logits(self._tokens[:end]) for end in range(first, self.length + 1)]
        return np.stack(found) if found else np.empty((0, len(self._model.vocabulary)), dtype=np.float32)

    def grow(self, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        """Read a tree of tokens; logits after each, shape (len(tokens), vocabulary)."""
        first = len(self._paths)
        require_tree(tokens, parents, first)
        self._check(tokens)
        for token, parent in zip(tokens, parents, strict=True):
            self._paths.append([*(self._paths[parent] if parent >= 0 else []), token])
        return np.stack([self._model.logits(self._tokens + path) for path in self._paths[first:]])

    def settle(self, node: int = -1) -> None:
        """Keep the path to `node`, and drop the rest of the tree."""
        require_node(node, len(self._paths))
        if node >= 0:
            self._tokens += self._paths[node]
        self._paths.clear()

    def rewind(self, length: int) -> None:
        """Drop a pending tree, and forget every token after the first `length`."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot rewind a context of {self.length} tokens to {length}")
        self._paths.clear()
        del self._tokens[length:]

    def fork(self) -> "ToyContext":
        """A copy."""
        require_settled(len(self._paths), "fork")
        return ToyContext(self._model, list(self._tokens))

    def close(self) -> None:
        """Forget everything."""
        self._tokens.clear()
        self._paths.clear()
        if self._open:
            self._open = False
            self._model.dismiss()

    def _check(self, tokens: Sequence[int]) -> None:
        size = len(self._model.vocabulary)
        if not all(0 <= token < size for token in tokens):
            raise ModelError(f"an id is no token of {self._model.name}: it has {size}")
        if self.length + len(self._paths) + len(tokens) > self._model.context_length:
            raise CapacityError(f"the context of {self._model.name} is full at {self._model.context_length} tokens")


def toy_pieces(*, merges: Sequence[bytes] = MERGES, order: int = 0) -> tuple[bytes, ...]:
    """All single bytes, `merges` and the end, shuffled by `order`: a toy tokenizer that spells any text."""
    pieces = [bytes([value]) for value in range(256)] + list(merges) + [END]
    np.random.Generator(np.random.PCG64(order)).shuffle(pieces)
    return tuple(pieces)


def named_toy(name: str) -> ToyModel:
    """`toy-cloud` and `toy-device`: different tokenizers, each with merges that the other lacks. Raises ModelError.

    `toy-reader` is for both ends of a mixture of documents.
    """
    if name == "toy-cloud":
        return ToyModel(toy_pieces(order=1), seed=1, noise=0.5, sharpness=3.0, contexts=CONTEXTS, name=name)
    if name == "toy-device":
        return ToyModel(toy_pieces(merges=MERGES[::2], order=2), seed=2, noise=0.5, sharpness=3.0, contexts=CONTEXTS, name=name)
    if name == "toy-reader":
        return ToyReader(toy_pieces(order=1), noise=0.5, sharpness=3.0, contexts=CONTEXTS, name=name)
    raise ModelError(f"there is no toy model {name!r}: use toy-cloud, toy-device or toy-reader")


def _generator(label: bytes) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(label).digest()[:8], "little")))


def _scores(label: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return _generator(b"shared" + label).standard_normal(16) / 2.0

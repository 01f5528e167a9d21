"""One narrow interface for every model: open a context, extend, rewind, fork; logits out.

`Context.length` is the only truth about a cache, and `rewind(length)` the only rollback. Compute is synchronous: a caller
that must not block runs it in one worker thread, and all calls on one model come from one thread at a time.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from antiphon.core.distributions import Logits
from antiphon.models.needs import Need
from antiphon.vocabulary import Vocabulary


class Preempted(Exception):  # noqa: N818 - it is no error
    """A pass was given up because its `Stop` was set; nothing of it was read."""


class Stop:
    """Tells a pass to give up, from another thread."""

    def __init__(self) -> None:
        self.flag = bytearray(b"0\0")
        """What a backend looks at: the digit 1 as a C string, once it is set."""

    @property
    def is_set(self) -> bool:
        """Whether to give up."""
        return self.flag[0] == ord("1")

    def set(self) -> None:
        """Give up, as soon as that can be."""
        self.flag[0] = ord("1")


class Context(Protocol):
    """The tokens that a model has read, and its cache of them."""

    @property
    def length(self) -> int:
        """Tokens read so far."""
        ...

    def extend(self, tokens: Sequence[int], rows: int = 1, stop: Stop | None = None) -> Logits:
        """Read `tokens`; return the logits after each of the last `rows` of them, float32, shape (rows, vocabulary).

        The array is the caller's own. Raises CapacityError, with nothing read, if the context is full,
        ModelError for an id that is no token, and ValueError while a tree is pending. Where `stop` is set before the pass is
        over, it may raise Preempted, with nothing read.
        """
        ...

    def grow(self, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        """Read a tree of tokens behind the context: node i follows node `parents[i]`, or the context's last token for -1.

        Nodes are numbered from 0 over all calls since the last `settle`, so a tree can be grown layer by layer; a parent's
        number is smaller than its child's. `length` does not change. One forward pass, split only where the backend's
        bounds on a pass demand it.

        Returns the logits after every node of this call, float32, shape (len(tokens), vocabulary); the array is the
        caller's own. Raises CapacityError, with nothing read and earlier nodes intact, if cells or sequences do not suffice,
        ModelError for an id that is no token, and ValueError for parents that do not fit and for no tokens.
        """
        ...

    def settle(self, node: int = -1) -> None:
        """Keep the path to `node` as the context's newest tokens and drop every other node of the tree; -1 keeps none.

        `length` grows by the node's depth, which is 1 for a child of the context's last token. Without a tree, settle(-1)
        does nothing. Raises ValueError, with the tree intact, if there is no such node.
        """
        ...

    def rewind(self, length: int) -> None:
        """Drop a pending tree, and forget every token after the first `length`. Raises ValueError if there are fewer."""
        ...

    def fork(self) -> "Context":
        """Another context over the same tokens; it shares what they cost.

        Raises CapacityError if none is left, and ValueError while a tree is pending.
        """
        ...

    def close(self) -> None:
        """Give the cache back, a pending tree's too. Closing twice is harmless."""
        ...


@dataclass(frozen=True, slots=True)
class InUse:
    """What open contexts take of a model that counts it: their number, leaves of their pending trees, cells of its cache."""

    contexts: int = 0
    leaves: int = 0
    cells: int = 0


class Model(Protocol):
    """A language model and its tokenizer."""

    @property
    def name(self) -> str:
        """What a person calls it."""
        ...

    @property
    def vocabulary(self) -> Vocabulary:
        """The bytes of every token, and which ones end an answer."""
        ...

    @property
    def context_length(self) -> int:
        """Tokens that one context can hold, and all open ones together."""
        ...

    @property
    def offers(self) -> frozenset[Need]:
        """What it gives to methods: `EVERYTHING` where a context answers logits."""
        ...

    @property
    def begin(self) -> tuple[int, ...]:
        """What stands before every prompt: the beginning-of-sequence token, or nothing."""
        ...

    @property
    def chat_template(self) -> str | None:
        """The Jinja2 source of the chat template, or None for a base model."""
        ...

    def open(self) -> Context:
        """An empty context. Raises CapacityError if all are in use."""
        ...

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """The tokenizer's own ids of `text`; with `special`, control tokens written out in it are recognised.

        What comes out may spell other bytes than `text` (see `spell`).
        """
        ...

    def token_text(self, token: int) -> str:
        """The written name of a token, such as `<bos>`: what chat templates put for it."""
        ...

    def close(self) -> None:
        """Free the model. Closing twice is harmless."""
        ...


def public_name(model: Model) -> str:
    """What the other end is told that a model is called: of a path only the file's name, for the rest is nobody's business."""
    return os.path.basename(model.name)


def require_tree(tokens: Sequence[int], parents: Sequence[int], first: int) -> None:
    """Raises ValueError unless `parents` fit nodes that are numbered from `first` (see `Context.grow`)."""
    if not len(tokens):
        raise ValueError("a tree needs at least one token")
    if len(parents) != len(tokens):
        raise ValueError(f"{len(tokens)} tokens need as many parents, not {len(parents)}")
    for node, parent in enumerate(parents, first):
        if not -1 <= parent < node:
            raise ValueError(f"node {node} cannot follow node {parent}: a parent is -1 or an earlier node")


def require_node(node: int, count: int) -> None:
    """Raises ValueError unless `node` is -1 or one of a tree's `count` nodes (see `Context.settle`)."""
    if not -1 <= node < count:
        raise ValueError(f"there is no node {node} in a tree of {count}: give the number of one, or -1 to keep none")


def require_settled(count: int, verb: str) -> None:
    """Raises ValueError while a tree of `count` nodes is pending; `verb` is what was asked for."""
    if count:
        raise ValueError(f"cannot {verb} while a tree of {count} nodes is pending: call settle first, with -1 to keep none")


REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_STRETCH = re.compile("[\udc80-\udcff]+|[^\udc80-\udcff]+")
"""Well-formed text, or bytes that are not (as `surrogateescape` shows them)."""


def spell(model: Model, data: bytes) -> list[int]:
    """Ids that spell `data`: byte for byte, as far as the tokenizer can (METHODS 1).

    Where the tokenizer's own ids spell something else, that stretch is spelled by single-byte tokens; a byte that has no
    token becomes a replacement character. Never fails, whatever the bytes.
    """
    ids: list[int] = []
    for stretch in _STRETCH.findall(data.decode(errors="surrogateescape")):
        if "\udc80" <= stretch[0] <= "\udcff":
            ids += _spell_bytes(model, stretch.encode(errors="surrogateescape"))
        else:
            ids += _spell_text(model, stretch)
    return ids


def _spell_text(model: Model, text: str) -> list[int]:
    ids = model.tokenize(text)
    if _spells(model, ids, text):
        return ids
    # Which characters are to blame is found one by one, so that the rest keeps the tokens of whole words.
    lost = {character for character in set(text) if not _spells(model, model.tokenize(character), character)}
    ids = []
    for is_lost, run in groupby(text, lost.__contains__):
        stretch = "".join(run)
        ids += _spell_bytes(model, stretch.encode()) if is_lost else _spell_run(model, stretch)
    return ids


def _spell_run(model: Model, text: str) -> list[int]:
    """Text of which each character alone can be spelled, if not every stretch together."""
    ids = model.tokenize(text)
    if len(text) == 1 or _spells(model, ids, text):
        return ids
    middle = len(text) // 2
    return _spell_run(model, text[:middle]) + _spell_run(model, text[middle:])


def _spells(model: Model, ids: Sequence[int], text: str) -> bool:
    return model.vocabulary.join(ids) == text.encode()


def _spell_bytes(model: Model, data: bytes) -> list[int]:
    single = model.vocabulary.single_bytes
    unknown = model.tokenize(REPLACEMENT) if any(byte not in single for byte in data) else []
    return [token for byte in data for token in ([single[byte]] if byte in single else unknown)]

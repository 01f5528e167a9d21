"""Of several tokens that spell the same bytes, the one that counts (METHODS 1)."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from antiphon.vocabulary import TokenKind

Tokenize = Callable[[str], list[int]]
"""A tokenizer's own ids of a text."""


def canonical_tokens(pieces: Sequence[bytes], kinds: NDArray[np.uint8], tokenize: Tokenize) -> NDArray[np.bool_]:
    """Which token stands for its bytes: what the tokenizer emits, else a normal one, else the lowest id.

    pieces, kinds: of every token. Returns shape (vocabulary,); control and unused tokens never count.
    """
    owners: dict[bytes, list[int]] = {}
    for token in np.flatnonzero(kinds <= TokenKind.BYTE).tolist():
        owners.setdefault(pieces[token], []).append(token)
    canonical = np.zeros(len(pieces), dtype=bool)
    for piece, tokens in owners.items():
        chosen = tokens[0] if len(tokens) == 1 else _chosen(piece, tokens, kinds, tokenize)
        canonical[chosen] = True
    return canonical


def _chosen(piece: bytes, tokens: list[int], kinds: NDArray[np.uint8], tokenize: Tokenize) -> int:
    try:
        emitted = tokenize(piece.decode())
    except UnicodeDecodeError:
        emitted = []
    # What the tokenizer writes is what the model saw in training; its twin it hardly ever did.
    if len(emitted) == 1 and emitted[0] in tokens:
        return emitted[0]
    return min(tokens, key=lambda token: (kinds[token] == TokenKind.BYTE, token))

"""llama.cpp's tokenizer: ids of text, and the vocabulary with the bytes of every token."""

import ctypes
import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from antiphon.cache import read_cached, write_cached
from antiphon.errors import ModelError, ProtocolError, UsageError
from antiphon.models.canonical import canonical_tokens
from antiphon.models.llamacpp.library import lib
from antiphon.vocabulary import TokenKind, Vocabulary

MARK = "\n"
"""What a tokenizer that puts a space before text gets to put it before, in place of the text."""


def added_space(vocab: Any, vocabulary: Vocabulary) -> list[int]:
    """The ids of MARK where the tokenizer puts a space before it (Llama 2 and its kin), else none."""
    ids = tokenize(vocab, MARK, False)
    return ids if vocabulary.join(ids) == b" " + MARK.encode() else []


def tokenize(vocab: Any, text: str, special: bool) -> list[int]:
    """The ids of a text. Raises UsageError for text that is not valid Unicode."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise UsageError("the text is not valid Unicode: it has half of a surrogate pair") from error
    # More ids than bytes are rare (a token in front, a space); then the first call tells how many, as a negative number.
    room = len(data) + 8
    ids = (ctypes.c_int32 * room)()
    count = lib.llama_tokenize(vocab, data, len(data), ids, room, False, special)
    if count < 0:
        ids = (ctypes.c_int32 * -count)()
        count = lib.llama_tokenize(vocab, data, len(data), ids, -count, False, special)
    return list(ids[:count])


def cached_vocabulary(vocab: Any, path: Path, name: str) -> Vocabulary:
    """The vocabulary of a file, read once for each state of it. Raises ModelError."""
    stat = path.stat()
    # Of a file as it is now and of this llama.cpp: a later one may spell pieces otherwise.
    source = f"{path.resolve()}-{stat.st_size}-{stat.st_mtime_ns}-{lib.__version__}"
    key = f"tokens-{hashlib.sha256(os.fsencode(source)).hexdigest()}"  # a path itself may be too long for a file name
    packed = read_cached(key)
    if packed is not None:
        try:
            vocabulary = Vocabulary.unpack(packed)
            if len(vocabulary) == lib.llama_vocab_n_tokens(vocab):
                return vocabulary
        except ProtocolError:
            pass  # a damaged file is made again
    vocabulary = _read_vocabulary(vocab, name)
    write_cached(key, vocabulary.pack())
    return vocabulary


def _read_vocabulary(vocab: Any, name: str) -> Vocabulary:
    tokens = range(lib.llama_vocab_n_tokens(vocab))
    ends = tuple(token for token in tokens if lib.llama_vocab_is_eog(vocab, token))
    named = [token for token in (lib.llama_vocab_eos(vocab), lib.llama_vocab_eot(vocab), *ends) if token >= 0]
    if not named:
        raise ModelError(f"{name} has no end-of-sequence token, so its answers would never end: choose another model")
    pieces = tuple(_piece(vocab, token) for token in tokens)
    kinds = np.fromiter((_kind(vocab, token, pieces[token]) for token in tokens), np.uint8, len(tokens))
    canonical = canonical_tokens(pieces, kinds, lambda text: tokenize(vocab, text, False))
    return Vocabulary(pieces, kinds, canonical, named[0], tuple(sorted({named[0], *ends})))


def _piece(vocab: Any, token: int) -> bytes:
    room = ctypes.create_string_buffer(64)
    size = lib.llama_token_to_piece(vocab, token, room, 64, 0, False)
    if size < 0:
        room = ctypes.create_string_buffer(-size)
        size = lib.llama_token_to_piece(vocab, token, room, -size, 0, False)
    return room.raw[:size]


def _kind(vocab: Any, token: int, piece: bytes) -> TokenKind:
    attributes = lib.llama_vocab_get_attr(vocab, token)
    if attributes & lib.LLAMA_TOKEN_ATTR_CONTROL:
        return TokenKind.CONTROL
    if not piece or attributes & lib.LLAMA_TOKEN_ATTR_UNUSED:
        return TokenKind.UNUSED
    return TokenKind.BYTE if attributes & lib.LLAMA_TOKEN_ATTR_BYTE else TokenKind.NORMAL

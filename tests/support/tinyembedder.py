"""A sentence transformer of a few words, for onnxruntime and tokenizers to load: its states are rows of a table."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MEANINGS = (("doctor", "physician"), ("medicine", "pills"), ("mill", "mills"), ("fire", "burned"), ("stocks", "shares"))
"""Words of one line mean the same."""
_FLOAT, _INT64 = 1, 7


def make_embedder(folder: Path, meanings: Sequence[Sequence[str]] = MEANINGS) -> Path:
    """A folder with `model.onnx` and `tokenizer.json`; words that it does not know have a vector of their own."""
    words = ["[UNK]", *(word for line in meanings for word in line)]
    table = np.zeros((len(words), len(meanings) + 1), np.float32)
    table[0, 0] = 0.1
    for place, line in enumerate(meanings, 1):
        table[[words.index(word) for word in line], place] = 1.0
    folder.mkdir(exist_ok=True)
    (folder / "model.onnx").write_bytes(_model(table))
    (folder / "tokenizer.json").write_text(json.dumps(_tokenizer(words)))
    return folder


def _tokenizer(words: Sequence[str]) -> dict[str, object]:
    model = {"type": "WordLevel", "vocab": {word: number for number, word in enumerate(words)}, "unk_token": "[UNK]"}
    parts = {"normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"}, "model": model}
    empty = dict.fromkeys(("truncation", "padding", "post_processor", "decoder"))
    return {"version": "1.0", "added_tokens": [], **empty, **parts}


# The fields of ONNX's protocol buffers that a table needs, by number (onnx.proto).


def _model(table: NDArray[np.float32]) -> bytes:
    node = _text(1, "table") + _text(1, "input_ids") + _text(2, "states") + _text(4, "Gather")
    sizes = b"".join(_number(1, size) for size in table.shape)
    weights = sizes + _number(2, _FLOAT) + _text(8, "table") + _bytes(9, table.tobytes())
    given = [_value("input_ids", _INT64, "texts", "tokens"), _value("attention_mask", _INT64, "texts", "tokens")]
    found = _value("states", _FLOAT, "texts", "tokens", table.shape[1])
    inputs = b"".join(_bytes(11, value) for value in given)
    graph = _bytes(1, node) + _text(2, "table") + _bytes(5, weights) + inputs + _bytes(12, found)
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _number(2, 13))


def _value(name: str, kind: int, *sizes: str | int) -> bytes:
    shape = b"".join(_bytes(1, _number(1, size) if isinstance(size, int) else _text(2, size)) for size in sizes)
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, shape)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    return bytes([*data, value])

"""Sentence embeddings, by onnxruntime: a folder with `model.onnx` and `tokenizer.json`, as sentence transformers have."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from antiphon.errors import ModelError, UsageError
from antiphon.retrieval.documents import first_line

_MAX_TOKENS = 256
_TEXTS_A_PASS = 16
_MODELS = ("model.onnx", "onnx/model.onnx")


class Embedder(Protocol):
    """Texts to vectors."""

    @property
    def identity(self) -> str:
        """Equal for two embedders only if they give the same vectors."""
        ...

    @property
    def width(self) -> int:
        """Numbers of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of unit length a text, shape (texts, width)."""
        ...


def passage_text(title: str, text: str) -> str:
    """What is embedded of a passage."""
    return f"{title}. {text}"


class _Pooling(msgspec.Struct):
    pooling_mode_cls_token: bool = False


class _Limits(msgspec.Struct):
    max_seq_length: int = _MAX_TOKENS


class OnnxEmbedder:
    """A sentence transformer: the mean of its last states, or the first where `1_Pooling/config.json` says so.

    An int8 model rounds activations over the whole pass, so a vector differs in its third digit with the texts beside it.
    """

    def __init__(self, folder: Path, threads: int = 0) -> None:
        """Threads of a pass: 0 is one a core. Raises UsageError without the extra `[dense]`, ModelError for an unfit folder."""
        model = next((folder / name for name in _MODELS if (folder / name).is_file()), None)
        if model is None or not (folder / "tokenizer.json").is_file():
            raise ModelError(f"{folder} holds no embedder: a folder with model.onnx and tokenizer.json is needed")
        self._first = _settings(folder / "1_Pooling" / "config.json", _Pooling).pooling_mode_cls_token
        limit = max(8, _settings(folder / "sentence_bert_config.json", _Limits).max_seq_length)
        self._tokenizer = _tokenizer(folder / "tokenizer.json", limit)
        self._session = _session(model, threads)
        self._inputs = {value.name for value in self._session.get_inputs()}
        self.width = self._pass([self._tokenizer.encode("").ids]).shape[1]
        self.identity = f"{_digest(model, folder / 'tokenizer.json')} {'first' if self._first else 'mean'} {limit}x{self.width}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of unit length a text, in passes of a few texts of like length."""
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(tokens)), key=lambda at: len(tokens[at]))
        vectors = np.empty((len(tokens), self.width), np.float32)
        for start in range(0, len(order), _TEXTS_A_PASS):
            chosen = order[start : start + _TEXTS_A_PASS]
            vectors[chosen] = self._pass([tokens[at] for at in chosen])
        return vectors

    def _pass(self, tokens: list[list[int]]) -> NDArray[np.float32]:
        ids = np.zeros((len(tokens), max(1, *map(len, tokens))), np.int64)
        for row, found in zip(ids, tokens, strict=True):
            row[: len(found)] = found
        mask = np.arange(ids.shape[1]) < np.array([[len(found)] for found in tokens])
        vectors = self._pooled(ids, mask)
        return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9), np.float32)

    def _pooled(self, ids: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        given = {"input_ids": ids, "attention_mask": mask.astype(np.int64), "token_type_ids": np.zeros_like(ids)}
        states: NDArray[np.float32] = self._session.run(None, {name: given[name] for name in self._inputs})[0]
        if states.ndim == 2:
            return states
        if self._first:
            return states[:, 0]
        return np.asarray(np.einsum("btw,bt->bw", states, mask) / np.maximum(mask.sum(axis=1, keepdims=True), 1), np.float32)


def _settings(file: Path, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except FileNotFoundError:
        return kind()
    except (OSError, msgspec.DecodeError) as error:
        raise ModelError(f"{file} cannot be read ({first_line(error)}): get the embedder again") from error


def _tokenizer(file: Path, limit: int) -> Any:
    try:
        import tokenizers
    except ImportError as error:
        raise _missing(error) from error
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:
        if type(error) is not Exception:  # the library raises the bare class for a file that it cannot read
            raise
        raise ModelError(f"{file} is no tokenizer ({first_line(error)}): get the embedder again") from error
    tokenizer.enable_truncation(limit)
    tokenizer.no_padding()
    return tokenizer


def _session(file: Path, threads: int) -> Any:
    try:
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as errors
    except ImportError as error:
        raise _missing(error) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # the language model wants the cores
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except (errors.Fail, errors.InvalidProtobuf, errors.InvalidGraph, errors.InvalidArgument, errors.NotImplemented) as error:
        raise ModelError(f"{file} is no model for onnxruntime ({first_line(error)}): get the embedder again") from error


def _missing(error: ImportError) -> UsageError:
    return UsageError(f"dense retrieval needs {error.name}: run pip install 'antiphon[dense]'")


def _digest(*files: Path) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()[:16]

"""GGUF files of a few kilobytes with random weights: llama.cpp's rules can be tested without a download."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from antiphon.config import ModelConfig
from antiphon.models import load
from antiphon.models.base import Model

WIDTH = 32
WORDS = ("▁", "a", "b", "c", "▁a", "ab", "▁ab", "h", "e", "l", "o", "he", "▁he", "▁hel", "hel", "lo", "\n\n")
"""The normal pieces. Single letters are doubled by byte tokens; llama.cpp aborts where a text itself stands twice."""
TOKENS = ("<unk>", "<s>", "</s>", *(f"<0x{value:02X}>" for value in range(256)), *WORDS)
FIRST_WORD = 259

Value = bool | int | float | str | Sequence[str] | Sequence[float]
Tensors = Mapping[str, tuple[int, ...]]


def load_tiny(folder: Path, *, context: int = 1024, **changes: Value) -> Model:
    """A tiny transformer, with its file and its cache in `folder`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANTIPHON_CACHE", str(folder / "cache"))
        return load(ModelConfig(str(write_llama(folder / "tiny.gguf", **changes)), context=context, threads=1))


def write_llama(path: Path, **changes: Value) -> Path:
    """A transformer of one layer; `changes` are metadata by name, with `__` for a dot."""
    layer: Tensors = {
        "attn_norm.weight": (WIDTH,),
        **{f"attn_{name}.weight": (WIDTH, WIDTH) for name in ("q", "k", "v", "output")},
        "ffn_norm.weight": (WIDTH,),
        "ffn_gate.weight": (WIDTH, 64),
        "ffn_up.weight": (WIDTH, 64),
        "ffn_down.weight": (64, WIDTH),
    }
    own: dict[str, Value] = {"feed_forward_length": 64, "attention.head_count": 2, "rope.dimension_count": 16}
    return _write(path, "llama", own, layer, changes)


def write_mamba(path: Path) -> Path:
    """A recurrent model of one layer."""
    layer: Tensors = {
        "attn_norm.weight": (WIDTH,),
        "ssm_in.weight": (WIDTH, 128),
        "ssm_conv1d.weight": (4, 64),
        "ssm_conv1d.bias": (64,),
        "ssm_x.weight": (64, 2 + 2 * 4),
        "ssm_dt.weight": (2, 64),
        "ssm_dt.bias": (64,),
        "ssm_a": (4, 64),
        "ssm_d": (64,),
        "ssm_out.weight": (64, WIDTH),
    }
    own: dict[str, Value] = {"ssm.conv_kernel": 4, "ssm.inner_size": 64, "ssm.state_size": 4, "ssm.time_step_rank": 2}
    return _write(path, "mamba", own, layer, {})


def _write(path: Path, architecture: str, own: Mapping[str, Value], layer: Tensors, changes: Mapping[str, Value]) -> Path:
    shared = {"context_length": 512, "embedding_length": WIDTH, "block_count": 1, "attention.layer_norm_rms_epsilon": 1e-5}
    meta: dict[str, Value] = {"general.architecture": architecture}
    meta |= {f"{architecture}.{name}": value for name, value in {**shared, **own}.items()}
    meta |= {f"tokenizer.ggml.{name}": value for name, value in _tokenizer().items()}
    meta |= {name.replace("__", "."): value for name, value in changes.items()}
    tensors = {"token_embd.weight": (WIDTH, len(TOKENS)), "output_norm.weight": (WIDTH,)}
    tensors |= {f"blk.0.{name}": shape for name, shape in layer.items()}
    path.write_bytes(_file(meta, tensors))
    return path


def _tokenizer() -> dict[str, Value]:
    kinds = [2, 3, 3, *[6] * 256, *[1] * len(WORDS)]
    scores = [0.0] * FIRST_WORD + [float(len(word)) for word in WORDS]
    ids = {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0}
    return {"model": "llama", "tokens": TOKENS, "scores": scores, "token_type": kinds, **ids, "add_bos_token": True}


def _file(meta: Mapping[str, Value], tensors: Tensors) -> bytes:
    random = np.random.Generator(np.random.PCG64(0))
    infos, data = b"", b""
    for name, shape in tensors.items():
        infos += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data))
        data += _padded(_weights(random, shape).tobytes())
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta))
    return _padded(head + b"".join(_text(name) + _value(value) for name, value in meta.items()) + infos) + data


def _weights(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    return (random.standard_normal(shape[::-1]) * 0.3 + (len(shape) == 1)).astype(np.float32)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 32)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value: Value) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    return _array(value)


def _array(values: Sequence[str] | Sequence[float]) -> bytes:
    if isinstance(values[0], str):
        return struct.pack("<IIQ", 9, 8, len(values)) + b"".join(_text(str(value)) for value in values)
    code, form = (6, "f") if isinstance(values[0], float) else (5, "i")
    return struct.pack(f"<IIQ{len(values)}{form}", 9, code, len(values), *values)

"""Models that llama.cpp runs: GGUF files, on its low-level API. The only file that imports `llama_cpp`.

One llama.cpp context serves many sequences from one pool of cells. What is known to abort the process is checked before the
call: more tokens or rows of logits than a batch holds, ids and text that are ill-formed. Settings are chosen so that logits do
not depend on the width of a pass of up to 7 tokens (FACTS: `use_extra_bufts` off), and rolling back past a sliding window is
right (`swa_full` on).
"""

import ctypes
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Before llama.cpp starts its threads: two processes on few cores stall each other if idle threads spin, and an abort must
# not start a debugger.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GGML_NO_BACKTRACE", "1")

import llama_cpp as lib

from antiphon.cache import read_cached, write_cached
from antiphon.core.distributions import Logits
from antiphon.errors import CapacityError, ModelError, ProtocolError, UsageError
from antiphon.vocabulary import TokenKind, Vocabulary

SEQUENCES = 64
BATCH = 512
ROWS = 64
"""Rows of logits of one pass at most; more would need more memory in every context."""

_RECURRENT = (
    "keeps a recurrent state instead of a cache that can be rolled back, so rejected drafts could not be taken back: "
    "choose a transformer model"
)
_MARK = "\n"
"""What a tokenizer that puts a space before text gets to put it before, in place of the text."""
_log: list[str] = []


@lib.llama_log_callback  # type: ignore[untyped-decorator]
def _keep_errors(level: int, text: bytes, data: object) -> None:
    if level >= 3 and (line := text.decode(errors="replace").strip()):
        _log.append(line)
        del _log[:-8]


class LlamaModel:
    """A GGUF model. `context` cells are shared by all open contexts."""

    def __init__(self, path: Path, *, name: str, context: int, threads: int) -> None:
        self.name = name
        self._model = self._context = None
        lib.llama_log_set(_keep_errors, ctypes.c_void_p(0))
        self._model = _load(path, name)
        self._vocab = lib.llama_model_get_vocab(self._model)
        try:
            _refuse_unfit(self._model, self._vocab, name)
            self._context = _create_context(self._model, name, context, threads)
            _refuse_embedder(self._context, name)
            self.vocabulary = _cached_vocabulary(self._vocab, path, name)
        except Exception:
            self.close()
            raise
        self.memory = lib.llama_get_memory(self._context)
        self.context_length = int(lib.llama_n_ctx(self._context))
        self.begin = (lib.llama_vocab_bos(self._vocab),) if lib.llama_vocab_get_add_bos(self._vocab) else ()
        template = lib.llama_model_chat_template(self._model, None)
        self.chat_template: str | None = template.decode(errors="replace") if template else None
        self.free_sequences = list(range(SEQUENCES - 1, -1, -1))
        self._batch = _Batch()
        self._window = int(lib.llama_model_n_swa(self._model))
        self._lead = _added_space(self._vocab, self.vocabulary)

    def open(self) -> "LlamaContext":
        """An empty context. Raises CapacityError if all sequences are in use."""
        return LlamaContext(self, self.take_sequence(), 0)

    def take_sequence(self) -> int:
        """The id of a free sequence."""
        self.require_open()
        if not self.free_sequences:
            raise CapacityError(f"all {SEQUENCES} contexts of {self.name} are in use: try again when an answer is done")
        return self.free_sequences.pop()

    def give_sequence(self, sequence: int) -> None:
        """Forget what a sequence holds, and let another context have it."""
        if self._model is not None:
            for holder in _holders(sequence):
                lib.llama_memory_seq_rm(self.memory, holder, -1, -1)
            self.free_sequences.append(sequence)

    def require_open(self) -> None:
        """Raises ValueError after `close`: llama.cpp would read freed memory."""
        if self._model is None:
            raise ValueError(f"the model {self.name} is closed")

    def needed_from(self, length: int) -> int:
        """The first position that the token after `length` others looks at in every layer that looks back at all."""
        return max(0, length - self._window + 1) if self._window else 0

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """The tokenizer's own ids. Raises UsageError for text that is not valid Unicode.

        A space that the tokenizer would put before plain text is left out, so that the ids spell `text`.
        """
        self.require_open()
        if self._lead and not special:
            ids = _tokenize(self._vocab, _MARK + text, special)
            if ids[: len(self._lead)] == self._lead:
                return ids[len(self._lead) :]
        return _tokenize(self._vocab, text, special)

    def token_text(self, token: int) -> str:
        """The written name of a token."""
        self.require_open()
        text: bytes = lib.llama_vocab_get_text(self._vocab, token)
        return text.decode(errors="replace")

    def decode(self, tokens: Sequence[int], position: int, sequence: int, rows: int) -> Logits:
        """One forward pass of at most BATCH tokens and ROWS rows; what `LlamaContext.extend` is made of."""
        code = lib.llama_decode(self._context, self._batch.fill(tokens, position, sequence, rows))
        if code == 1:
            raise self.full()
        if code != 0:
            raise ModelError(f"{self.name} could not evaluate a pass (llama.cpp code {code})")
        size = len(self.vocabulary)
        logits = np.empty((rows, size), dtype=np.float32)
        for row in range(rows):
            pointer = lib.llama_get_logits_ith(self._context, len(tokens) - rows + row)
            logits[row] = np.ctypeslib.as_array(pointer, shape=(size,))
        return logits

    def full(self) -> CapacityError:
        """What to raise when the cells do not suffice."""
        return CapacityError(f"the context of {self.name} is full at {self.context_length} tokens")

    def close(self) -> None:
        """Free the context and the model."""
        if self._context is not None:
            lib.llama_free(self._context)
        if self._model is not None:
            lib.llama_model_free(self._model)
        self._context = self._model = None


class LlamaContext:
    """One sequence of a model's context."""

    def __init__(self, model: LlamaModel, sequence: int, length: int) -> None:
        self._model, self._sequence, self._length = model, sequence, length
        self._open = True

    @property
    def length(self) -> int:
        """Tokens read so far."""
        return self._length

    def extend(self, tokens: Sequence[int], rows: int = 1) -> Logits:
        """Read `tokens`; logits after each of the last `rows`, shape (rows, vocabulary)."""
        self._check(tokens, rows)
        before, found = self._length, []
        try:
            for chunk, wanted in _chunks(tokens, rows):
                found.append(self._model.decode(chunk, self._length, self._sequence, wanted))
                self._length += len(chunk)
        except (CapacityError, ModelError):
            self.rewind(before)
            raise
        return found[0] if len(found) == 1 else np.concatenate([_no_rows(self._model), *found])

    def rewind(self, length: int) -> None:
        """Forget every token after the first `length`."""
        self._require_open()
        if not 0 <= length <= self._length:
            raise ValueError(f"cannot rewind a context of {self._length} tokens to {length}")
        for holder in _holders(self._sequence):
            # Also what a failed pass may have left beyond our length goes.
            if not lib.llama_memory_seq_rm(self._model.memory, holder, length, -1):
                raise ModelError(f"{self._model.name} cannot forget part of what it read")
        if lib.llama_memory_seq_pos_min(self._model.memory, self._sequence) > self._model.needed_from(length):
            raise ModelError(f"{self._model.name} lost tokens that it needs again: start the answer anew")
        self._length = length

    def fork(self) -> "LlamaContext":
        """A context over the same cells."""
        self._require_open()
        sequence = self._model.take_sequence()
        for own, other in zip(_holders(self._sequence), _holders(sequence), strict=True):
            lib.llama_memory_seq_cp(self._model.memory, own, other, 0, self._length)
        return LlamaContext(self._model, sequence, self._length)

    def close(self) -> None:
        """Give the cells and the sequence back."""
        if self._open:
            self._open = False
            self._model.give_sequence(self._sequence)

    def _require_open(self) -> None:
        self._model.require_open()
        if not self._open:
            raise ValueError("the context is closed: its sequence may be another's by now")

    def _check(self, tokens: Sequence[int], rows: int) -> None:
        self._require_open()
        size = len(self._model.vocabulary)
        if not 0 <= rows <= len(tokens):
            raise ValueError(f"{rows} rows of logits were asked of a pass of {len(tokens)} tokens")
        if not all(0 <= token < size for token in tokens):
            raise ModelError(f"an id is no token of {self._model.name}: it has {size}")
        if self._length + len(tokens) > self._model.context_length:
            raise self._model.full()


class _Batch:
    """A llama_batch over arrays that numpy owns."""

    def __init__(self) -> None:
        self._tokens = np.zeros(BATCH, np.int32)
        self._positions = np.zeros(BATCH, np.int32)
        self._counts = np.full(BATCH, 2, np.int32)
        self._holders = np.zeros(2, np.int32)
        self._rows = np.full(BATCH, self._holders.ctypes.data, np.uint64)  # every token is of the same two sequences
        self._wanted = np.zeros(BATCH, np.int8)
        self._struct = lib.llama_batch(
            0,
            _pointer(self._tokens, ctypes.c_int32),
            None,
            _pointer(self._positions, ctypes.c_int32),
            _pointer(self._counts, ctypes.c_int32),
            _pointer(self._rows, ctypes.POINTER(ctypes.c_int32)),
            _pointer(self._wanted, ctypes.c_int8),
        )

    def fill(self, tokens: Sequence[int], position: int, sequence: int, rows: int) -> Any:
        """The batch of these tokens; logits are wanted of the last `rows`."""
        count = len(tokens)
        self._tokens[:count] = tokens
        self._positions[:count] = np.arange(position, position + count)
        self._holders[:] = _holders(sequence)
        self._wanted[:count] = 0
        self._wanted[count - rows : count] = 1
        self._struct.n_tokens = count
        return self._struct


def _holders(sequence: int) -> tuple[int, int]:
    """The two sequences that hold a context's cells: its own, and a shadow of it.

    A cell that lies behind a sliding window and is held by one sequence only, llama.cpp gives to any other that needs one,
    `swa_full` or not; after a rollback it would be missed, silently.
    """
    return sequence, SEQUENCES + sequence


def _pointer(array: NDArray[Any], kind: Any) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(kind))


def _chunks(tokens: Sequence[int], rows: int) -> list[tuple[Sequence[int], int]]:
    """Passes of at most BATCH tokens without logits, then of at most ROWS tokens with; each with its wanted rows."""
    silent = len(tokens) if rows == 0 else 0 if len(tokens) <= ROWS else len(tokens) - rows
    starts = list(range(0, silent, BATCH))
    chunks = [(tokens[start : min(start + BATCH, silent)], 0) for start in starts]
    for start in range(silent, len(tokens), ROWS):
        chunk = tokens[start : start + ROWS]
        chunks.append((chunk, min(len(chunk), max(0, start + len(chunk) - (len(tokens) - rows)))))
    return chunks


def _no_rows(model: LlamaModel) -> Logits:
    return np.empty((0, len(model.vocabulary)), dtype=np.float32)


def _load(path: Path, name: str) -> Any:
    _log.clear()
    lib.llama_backend_init()
    params = lib.llama_model_default_params()
    params.use_extra_bufts = False
    model = lib.llama_model_load_from_file(os.fsencode(path), params)
    if not model:
        raise ModelError(f"{name} is no model that llama.cpp can load ({_reason()}): get the file again, whole")
    return model


def _reason() -> str:
    """The most telling line of llama.cpp's log."""
    lines = [line for line in _log if "failed to load model" not in line] or _log or ["no reason given"]
    return lines[-1].split("error loading model: ")[-1]


def _refuse_unfit(model: Any, vocab: Any, name: str) -> None:
    if lib.llama_model_is_recurrent(model) or lib.llama_model_is_hybrid(model):
        raise ModelError(f"{name} {_RECURRENT}")
    if lib.llama_model_has_encoder(model) or not lib.llama_model_has_decoder(model):
        raise ModelError(f"{name} is no plain decoder, so it cannot continue a text: choose a text-generation model")
    if lib.llama_vocab_n_tokens(vocab) == 0 or lib.llama_vocab_type(vocab) == 0:
        raise ModelError(f"{name} carries no tokenizer: get a GGUF file that does")


def _create_context(model: Any, name: str, cells: int, threads: int) -> Any:
    params = lib.llama_context_default_params()
    # llama.cpp shrinks the batch to a smaller context without a word, and aborts at a pass of BATCH tokens.
    params.n_ctx, params.n_batch, params.n_ubatch = max(cells, BATCH), BATCH, BATCH
    params.n_seq_max = 2 * SEQUENCES
    params.n_outputs_max = max(ROWS, params.n_seq_max)  # fewer abort the process
    params.kv_unified = params.swa_full = True
    params.n_threads = params.n_threads_batch = threads or _cores()
    context = lib.llama_init_from_model(model, params)
    if not context:
        raise ModelError(f"no context of {cells} tokens could be made for {name} ({_reason()}): give a smaller --context")
    return context


def _refuse_embedder(context: Any, name: str) -> None:
    reads_ahead = not lib.llama_get_causal_attn(context)
    if reads_ahead or lib.llama_pooling_type(context) > 0 or not lib.llama_get_memory(context):
        raise ModelError(f"{name} is an embedding model, so it cannot continue a text: choose a text-generation model")


def _cores() -> int:
    # macOS and Windows do not say which cores are ours.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _added_space(vocab: Any, vocabulary: Vocabulary) -> list[int]:
    """The ids of _MARK where the tokenizer puts a space before it (Llama 2 and its kin), else none."""
    ids = _tokenize(vocab, _MARK, False)
    return ids if vocabulary.join(ids) == b" " + _MARK.encode() else []


def _tokenize(vocab: Any, text: str, special: bool) -> list[int]:
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise UsageError("the text is not valid Unicode: it has half of a surrogate pair") from error
    room = len(data) + 8
    ids = (ctypes.c_int32 * room)()
    count = lib.llama_tokenize(vocab, data, len(data), ids, room, False, special)
    if count < 0:
        ids = (ctypes.c_int32 * -count)()
        count = lib.llama_tokenize(vocab, data, len(data), ids, -count, False, special)
    return list(ids[:count])


def _cached_vocabulary(vocab: Any, path: Path, name: str) -> Vocabulary:
    stat = path.stat()
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
    return Vocabulary(pieces, kinds, _canonical(vocab, pieces, kinds), named[0], tuple(sorted({named[0], *ends})))


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


def _canonical(vocab: Any, pieces: Sequence[bytes], kinds: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """The one token of each byte string: what the tokenizer emits, else a normal one, else the lowest id (METHODS 1)."""
    owners: dict[bytes, list[int]] = {}
    for token in np.flatnonzero(kinds <= TokenKind.BYTE).tolist():
        owners.setdefault(pieces[token], []).append(token)
    canonical = np.zeros(len(pieces), dtype=bool)
    for piece, tokens in owners.items():
        chosen = tokens[0] if len(tokens) == 1 else _chosen(vocab, piece, tokens, kinds)
        canonical[chosen] = True
    return canonical


def _chosen(vocab: Any, piece: bytes, tokens: list[int], kinds: NDArray[np.uint8]) -> int:
    try:
        emitted = _tokenize(vocab, piece.decode(), False)
    except UnicodeDecodeError:
        emitted = []
    if len(emitted) == 1 and emitted[0] in tokens:
        return emitted[0]
    return min(tokens, key=lambda token: (kinds[token] == TokenKind.BYTE, token))

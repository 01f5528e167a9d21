"""Models that llama.cpp runs: GGUF files, on its low-level API. The only file that imports `llama_cpp`.

One llama.cpp context serves many sequences from one pool of cells; which ones a context and its token tree have, is
bookkeeping of its own (`sequences`, `branches`). What is known to abort the process is checked before the call: more tokens
or rows of logits than a batch holds, ids and text that are ill-formed. Settings are chosen so that logits do not depend on
the width of a pass of up to 7 tokens (`use_extra_bufts` off; with several threads and more than about 256 cells, a token
read alone still differs: docs/speculative.md#what-moves-logits), and rolling back past a sliding window is right (`swa_full`
on). On a CPU a wider pass is read in parts of 7; a tree of 14 nodes then takes 1.2 to 1.4 times as long. On a GPU it is read at
once, and its logits are its own.
"""

import ctypes
import hashlib
import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate, chain
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
from antiphon.models.base import InUse, Preempted, Stop
from antiphon.models.canonical import canonical_tokens
from antiphon.models.cutting import MOST, Cuts
from antiphon.models.llamacpp.branches import Pool
from antiphon.models.llamacpp.sequences import BATCH, NARROW, ROWS, SequenceContext, full
from antiphon.vocabulary import TokenKind, Vocabulary

SEQUENCES = 192
"""For contexts, two each, and for the leaves of their trees, one each. llama.cpp reserves a row of logits for every one (1 MiB
with Gemma's vocabulary), and has 256 at most."""
_SCRATCH = SEQUENCES
"""One more, for a moment: the cell of a settled path that moves."""
CONTEXTS = 64
"""Open contexts at most; so at least 64 sequences are left for leaves, and 8 contexts can have trees of 16 leaves."""

_RECURRENT = (
    "keeps a recurrent state instead of a cache that can be rolled back, so rejected drafts could not be taken back: "
    "choose a transformer model"
)
_IS_SET = ctypes.cast(ctypes.CDLL("msvcrt" if os.name == "nt" else None).atoi, lib.ggml_abort_callback)
"""What llama.cpp asks between the operations of a pass, with the address of a `Stop`'s flag: in C, for it must not wait for
Python's lock, which the event loop holds just then."""
_NEVER = lib.ggml_abort_callback()
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
        self._memory = lib.llama_get_memory(self._context)
        self.context_length = int(lib.llama_n_ctx(self._context))
        self.begin = (lib.llama_vocab_bos(self._vocab),) if lib.llama_vocab_get_add_bos(self._vocab) else ()
        template = lib.llama_model_chat_template(self._model, None)
        self.chat_template: str | None = template.decode(errors="replace") if template else None
        self.narrow = ROWS if lib.llama_supports_gpu_offload() else NARROW
        self._pool = Pool(SEQUENCES)
        self._contexts = 0
        self._batch = _Batch()
        self._window = int(lib.llama_model_n_swa(self._model))
        self._lead = _added_space(self._vocab, self.vocabulary)

    @property
    def in_use(self) -> InUse:
        """What its open contexts take: sequences are counted here, cells as far as llama.cpp knows of any."""
        held = [sequence for sequence in range(SEQUENCES) if self._model is not None]
        cells = sum(1 + int(lib.llama_memory_seq_pos_max(self._memory, sequence)) for sequence in held)
        return InUse(self._contexts, SEQUENCES - self._pool.free - 2 * self._contexts, cells)

    def open(self) -> SequenceContext:
        """An empty context. Raises CapacityError if all sequences are in use."""
        return SequenceContext(self, self.take_context(), 0)

    def take_context(self) -> tuple[int, int]:
        """Two free sequences."""
        self.require_open()
        if self._contexts == CONTEXTS or self._pool.free < 2:
            raise CapacityError(f"all {CONTEXTS} contexts of {self.name} are in use: try again when an answer is done")
        self._contexts += 1
        first, second = self._pool.take(2)
        return first, second

    def take_branches(self, count: int) -> list[int]:
        """Free sequences for leaves."""
        if count > self._pool.free:
            raise CapacityError(f"{self.name} has no room for {count} more branches: grow a smaller tree, or try again later")
        return self._pool.take(count)

    def give_context(self, holders: tuple[int, int]) -> None:
        """Let another context have these."""
        self._contexts -= 1
        self.give_branches(holders)

    def give_branches(self, sequences: Iterable[int]) -> None:
        """Forget what these hold, and let others have them."""
        for sequence in sequences:
            if self._model is not None:
                lib.llama_memory_seq_rm(self._memory, sequence, -1, -1)
            self._pool.give(sequence)

    def copy(self, source: int, target: int, start: int, end: int) -> None:
        """Let `target` hold what `source` holds in that range: the same cells, nothing is computed."""
        lib.llama_memory_seq_cp(self._memory, source, target, start, end)

    def lift(self, sequence: int, start: int, end: int) -> list[bytes]:
        """What the cells hold that `sequence` has in that range, one by one."""
        cells = []
        for position in range(start, end):
            self.copy(sequence, _SCRATCH, position, position + 1)
            room = (ctypes.c_uint8 * lib.llama_state_seq_get_size(self._context, _SCRATCH))()
            size = lib.llama_state_seq_get_data(self._context, room, len(room), _SCRATCH)
            cells.append(bytes(room[:size]))
            self.forget(_SCRATCH, 0)
        return cells

    def lay(self, cells: Sequence[bytes], holders: Sequence[int], start: int) -> None:
        """Put what was lifted into the lowest free cells, from the position `start` on; `holders` hold it.

        One by one: of several at once llama.cpp would look for free cells that lie side by side. Raises ModelError.
        """
        for position, cell in enumerate(cells, start):
            data = (ctypes.c_uint8 * len(cell)).from_buffer_copy(cell)
            if lib.llama_state_seq_set_data(self._context, data, len(cell), _SCRATCH) != len(cell):
                raise ModelError(f"{self.name} lost tokens that it needs again: start the answer anew")
            for holder in holders:
                self.copy(_SCRATCH, holder, position, position + 1)
            self.forget(_SCRATCH, 0)

    def forget(self, sequence: int, start: int) -> None:
        """Let a sequence hold nothing from `start` on."""
        if not lib.llama_memory_seq_rm(self._memory, sequence, start, -1):
            raise ModelError(f"{self.name} cannot forget part of what it read")

    def first(self, sequence: int) -> int:
        """The first position from which a sequence holds every one, or -1."""
        return int(lib.llama_memory_seq_pos_min(self._memory, sequence))

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
        first, *others = self._cuts.cut(text) if len(text) > MOST else (text,)
        ids = _tokenize(self._vocab, first, special) if special else self._continued(first, special)
        for piece in others:
            ids += self._continued(piece, special)
        return ids

    @cached_property
    def _cuts(self) -> Cuts:
        control = np.flatnonzero(self.vocabulary.kinds == TokenKind.CONTROL).tolist()
        return Cuts(self.vocabulary.pieces, map(self.token_text, control))

    def _continued(self, text: str, special: bool) -> list[int]:
        """The ids of text that nothing is put before."""
        if self._lead:
            ids = _tokenize(self._vocab, _MARK + text, special)
            if ids[: len(self._lead)] == self._lead:
                return ids[len(self._lead) :]
        return _tokenize(self._vocab, text, special)

    def token_text(self, token: int) -> str:
        """The written name of a token."""
        self.require_open()
        text: bytes = lib.llama_vocab_get_text(self._vocab, token)
        return text.decode(errors="replace")

    def decode(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        holders: Sequence[Sequence[int]],
        rows: int,
        stop: Stop | None = None,
    ) -> Logits:
        """One forward pass of at most BATCH tokens and ROWS rows."""
        batch = self._batch.fill(tokens, positions, holders, rows)
        code = lib.llama_decode(self._context, batch) if stop is None else self._decode_unless(stop, batch)
        if code == 1:
            raise full(self)
        if code == 2 and stop is not None:
            raise Preempted
        if code != 0:
            raise ModelError(f"{self.name} could not evaluate a pass (llama.cpp code {code})")
        size = len(self.vocabulary)
        logits = np.empty((rows, size), dtype=np.float32)
        for row in range(rows):
            pointer = lib.llama_get_logits_ith(self._context, len(tokens) - rows + row)
            logits[row] = np.ctypeslib.as_array(pointer, shape=(size,))
        return logits

    def _decode_unless(self, stop: Stop, batch: Any) -> int:
        flag = (ctypes.c_char * len(stop.flag)).from_buffer(stop.flag)
        lib.llama_set_abort_callback(self._context, _IS_SET, ctypes.addressof(flag))
        try:
            code: int = lib.llama_decode(self._context, batch)
            return code
        finally:
            lib.llama_set_abort_callback(self._context, _NEVER, None)

    def close(self) -> None:
        """Free the context and the model."""
        if self._context is not None:
            lib.llama_free(self._context)
        if self._model is not None:
            lib.llama_model_free(self._model)
        self._context = self._model = None


class _Batch:
    """A llama_batch over arrays that numpy owns."""

    def __init__(self) -> None:
        self._tokens = np.zeros(BATCH, np.int32)
        self._positions = np.zeros(BATCH, np.int32)
        self._counts = np.zeros(BATCH, np.int32)
        self._holders = np.zeros(max(2 * BATCH, ROWS * SEQUENCES), np.int32)  # those of every token, one after the other
        self._rows = np.zeros(BATCH, np.uint64)  # the address of each token's first one
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

    def fill(self, tokens: Sequence[int], positions: Sequence[int], holders: Sequence[Sequence[int]], rows: int) -> Any:
        """The batch of these tokens; logits are wanted of the last `rows`."""
        count, sizes = len(tokens), [len(sequences) for sequences in holders]
        starts = np.fromiter(accumulate(sizes[:-1], initial=0), np.uint64, count)
        self._tokens[:count] = tokens
        self._positions[:count] = positions
        self._counts[:count] = sizes
        self._holders[: sum(sizes)] = list(chain.from_iterable(holders))
        self._rows[:count] = np.uint64(self._holders.ctypes.data) + starts * np.uint64(self._holders.itemsize)
        self._wanted[:count] = 0
        self._wanted[count - rows : count] = 1
        self._struct.n_tokens = count
        return self._struct


def _pointer(array: NDArray[Any], kind: Any) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(kind))


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
    params.n_seq_max = SEQUENCES + 1
    params.n_outputs_max = max(ROWS, SEQUENCES + 1)  # fewer abort the process
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
    canonical = canonical_tokens(pieces, kinds, lambda text: _tokenize(vocab, text, False))
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

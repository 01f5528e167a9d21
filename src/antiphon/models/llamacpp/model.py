"""Models that llama.cpp runs: GGUF files, on its low-level API.

One llama.cpp context serves many sequences from one pool of cells; which ones a context and its token tree have, is
bookkeeping of its own (`sequences`, `branches`). What is known to abort the process is checked before the call: more tokens
or rows of logits than a batch holds, ids and text that are ill-formed. Settings are chosen so that logits do not depend on
the width of a pass of up to 7 tokens (`use_extra_bufts` off; with several threads and more than about 256 cells, a token
read alone still differs: docs/speculative.md#what-moves-logits), and rolling back past a sliding window is right (`swa_full`
on). On a CPU a wider pass is read in parts of 7; a tree of 14 nodes then takes 1.2 to 1.4 times as long. On a GPU it is read at
once, and its logits are its own.
"""

import ctypes
import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from antiphon.core.distributions import Logits
from antiphon.errors import CapacityError, ModelError
from antiphon.models.base import InUse, Preempted, Stop
from antiphon.models.cutting import MOST, Cuts
from antiphon.models.llamacpp.batch import SEQUENCES, Batch
from antiphon.models.llamacpp.branches import Pool
from antiphon.models.llamacpp.library import keep_errors, lib
from antiphon.models.llamacpp.loading import create_context, load_model, refuse_embedder, refuse_unfit
from antiphon.models.llamacpp.sequences import NARROW, ROWS, SequenceContext, full
from antiphon.models.llamacpp.tokenizer import MARK, added_space, cached_vocabulary, tokenize
from antiphon.models.needs import EVERYTHING, Need
from antiphon.vocabulary import TokenKind

_SCRATCH = SEQUENCES
"""One more, for a moment: the cell of a settled path that moves."""
CONTEXTS = 64
"""Open contexts at most; so at least 64 sequences are left for leaves, and 8 contexts can have trees of 16 leaves."""

_IS_SET = ctypes.cast(ctypes.CDLL("msvcrt" if os.name == "nt" else None).atoi, lib.ggml_abort_callback)
"""What llama.cpp asks between the operations of a pass, with the address of a `Stop`'s flag: in C, for it must not wait for
Python's lock, which the event loop holds just then."""
_NEVER = lib.ggml_abort_callback()


class LlamaModel:
    """A GGUF model. `context` cells are shared by all open contexts."""

    offers: frozenset[Need] = EVERYTHING

    def __init__(self, path: Path, *, name: str, context: int, threads: int) -> None:
        self.name = name
        self._model = self._context = None
        keep_errors()
        self._model = load_model(path, name)
        self._vocab = lib.llama_model_get_vocab(self._model)
        try:
            refuse_unfit(self._model, self._vocab, name)
            self._context = create_context(self._model, name, context, threads)
            refuse_embedder(self._context, name)
            self.vocabulary = cached_vocabulary(self._vocab, path, name)
        except Exception:
            self.close()
            raise
        self._memory = lib.llama_get_memory(self._context)
        self.context_length = int(lib.llama_n_ctx(self._context))
        self.begin = (lib.llama_vocab_bos(self._vocab),) if lib.llama_vocab_get_add_bos(self._vocab) else ()
        template = lib.llama_model_chat_template(self._model, None)
        self.chat_template: str | None = template.decode(errors="replace") if template else None
        # On a GPU narrow parts would cost a launch each, and its kernels promise no equal bits anyway.
        self.narrow = ROWS if lib.llama_supports_gpu_offload() else NARROW
        self._pool = Pool(SEQUENCES)
        self._contexts = 0
        self._batch = Batch()
        self._window = int(lib.llama_model_n_swa(self._model))
        self._lead = added_space(self._vocab, self.vocabulary)

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
            # A context may be closed after its model: its sequences are counted back, the freed cache is left alone.
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
            # llama.cpp lifts whole sequences only, so each cell gets one for a moment.
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
        ids = tokenize(self._vocab, first, special) if special else self._continued(first, special)
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
            ids = tokenize(self._vocab, MARK + text, special)
            if ids[: len(self._lead)] == self._lead:
                return ids[len(self._lead) :]
        return tokenize(self._vocab, text, special)

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
        # 2 is the abort that `stop` asked for. The tokens of the pass may be in the cache in part: whoever gave up rewinds.
        if code == 2 and stop is not None:
            raise Preempted
        if code != 0:
            raise ModelError(f"{self.name} could not evaluate a pass (llama.cpp code {code})")
        size = len(self.vocabulary)
        logits = np.empty((rows, size), dtype=np.float32)
        for row in range(rows):
            pointer = lib.llama_get_logits_ith(self._context, len(tokens) - rows + row)
            # Copied out: the memory is llama.cpp's, and the next pass writes over it.
            logits[row] = np.ctypeslib.as_array(pointer, shape=(size,))
        return logits

    def _decode_unless(self, stop: Stop, batch: Any) -> int:
        flag = (ctypes.c_char * len(stop.flag)).from_buffer(stop.flag)
        lib.llama_set_abort_callback(self._context, _IS_SET, ctypes.addressof(flag))
        try:
            code: int = lib.llama_decode(self._context, batch)
            return code
        finally:
            # Before the flag is given back: llama.cpp would go on looking at freed memory.
            lib.llama_set_abort_callback(self._context, _NEVER, None)

    def close(self) -> None:
        """Free the context and the model."""
        # The context first: it refers to the model.
        if self._context is not None:
            lib.llama_free(self._context)
        if self._model is not None:
            lib.llama_model_free(self._model)
        self._context = self._model = None

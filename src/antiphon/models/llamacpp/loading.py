"""A GGUF file as a model and a context of llama.cpp's; what cannot be used is refused with the reason."""

import os
from pathlib import Path
from typing import Any

from antiphon.errors import ModelError
from antiphon.models.llamacpp.batch import SEQUENCES
from antiphon.models.llamacpp.library import errors, lib
from antiphon.models.llamacpp.sequences import BATCH, ROWS

_RECURRENT = (
    "keeps a recurrent state instead of a cache that can be rolled back, so rejected drafts could not be taken back: "
    "choose a transformer model"
)


def load_model(path: Path, name: str) -> Any:
    """The model of a file; its layout is the one that passes of any width agree in. Raises ModelError."""
    errors.clear()
    lib.llama_backend_init()
    params = lib.llama_model_default_params()
    # With its repacked weights llama.cpp computes passes of 1 to 3 tokens by other kernels than wider ones, and their logits
    # differ by up to 3.6 with Gemma: a text at temperature 0 would hang on how many drafts a pass has. Without, 1 to 7 agree to
    # the last bit, at the same speed.
    params.use_extra_bufts = False
    model = lib.llama_model_load_from_file(os.fsencode(path), params)
    if not model:
        raise ModelError(f"{name} is no model that llama.cpp can load ({reason()}): get the file again, whole")
    return model


def reason() -> str:
    """The most telling line of llama.cpp's log."""
    lines = [line for line in errors if "failed to load model" not in line] or errors or ["no reason given"]
    return lines[-1].split("error loading model: ")[-1]


def refuse_unfit(model: Any, vocab: Any, name: str) -> None:
    """Raise ModelError for a model that cannot continue a text, or cannot take a draft back."""
    if lib.llama_model_is_recurrent(model) or lib.llama_model_is_hybrid(model):
        raise ModelError(f"{name} {_RECURRENT}")
    if lib.llama_model_has_encoder(model) or not lib.llama_model_has_decoder(model):
        raise ModelError(f"{name} is no plain decoder, so it cannot continue a text: choose a text-generation model")
    if lib.llama_vocab_n_tokens(vocab) == 0 or lib.llama_vocab_type(vocab) == 0:
        raise ModelError(f"{name} carries no tokenizer: get a GGUF file that does")


def create_context(model: Any, name: str, cells: int, threads: int) -> Any:
    """A context of so many cells for SEQUENCES sequences; threads 0 is one a core. Raises ModelError."""
    params = lib.llama_context_default_params()
    # llama.cpp shrinks the batch to a smaller context without a word, and aborts at a pass of BATCH tokens.
    params.n_ctx, params.n_batch, params.n_ubatch = max(cells, BATCH), BATCH, BATCH
    params.n_seq_max = SEQUENCES + 1
    params.n_outputs_max = max(ROWS, SEQUENCES + 1)  # fewer abort the process
    # One pool of cells for all sequences: otherwise a partial copy of a sequence aborts the process, and a shared prefix costs
    # its cells again. The whole of every layer with a sliding window: rolled back past the window its cache would be wrong in
    # silence.
    params.kv_unified = params.swa_full = True
    params.n_threads = params.n_threads_batch = threads or _cores()
    context = lib.llama_init_from_model(model, params)
    if not context:
        raise ModelError(f"no context of {cells} tokens could be made for {name} ({reason()}): give a smaller --context")
    return context


def refuse_embedder(context: Any, name: str) -> None:
    """Raise ModelError for a model that makes embeddings."""
    reads_ahead = not lib.llama_get_causal_attn(context)
    if reads_ahead or lib.llama_pooling_type(context) > 0 or not lib.llama_get_memory(context):
        raise ModelError(f"{name} is an embedding model, so it cannot continue a text: choose a text-generation model")


def _cores() -> int:
    # macOS and Windows do not say which cores are ours.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

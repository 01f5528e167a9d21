"""Logits to probabilities, and distances between distributions (METHODS 0).

One function, `process`, serves every caller on both ends, so that what is sampled and what is tested are the same thing.
Greedy decoding is sampling from a one-hot distribution: there is no other path.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from antiphon.config import SamplingParams
from antiphon.errors import ModelError

Probs = NDArray[np.float64]
"""Probabilities: float64, shape (tokens,), sum 1."""
Logits = NDArray[np.float32]
"""Logits of one or several positions: float32, shape (tokens,) or (rows, tokens)."""
Ids = NDArray[np.int32]
"""Ids of tokens: int32."""


def process(logits: Logits, params: SamplingParams, history: Sequence[int] = ()) -> Probs:
    """The distribution of the next token under `params`: shape (tokens,) in, shape (tokens,) out.

    `history` are the ids before this position (prompt, committed tokens, drafts), seen by the penalties only. Fixed
    order: penalties, logit bias, temperature, top-k, top-p, min-p, renormalise. Source: METHODS 0.
    Raises ModelError if a logit is NaN or +inf, or if none is finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # absurd parameters overflow: to -inf harmlessly, else seen below
        scores = _adjusted(logits, params, history)
        # arg-max stops at a NaN as at the largest: whatever is not finite among the scores shows here, and -inf only if all
        # are.
        best = int(np.argmax(scores))
        if not np.isfinite(scores[best]):
            raise ModelError("the model gave logits that are not finite: it is damaged, or too large for its number format")
        if params.temperature == 0:
            return one_hot(best, len(scores))
        probs = _softmax((scores - scores[best]) / params.temperature)
    return _truncate(probs, params)


def truncated(probs: Probs, top_k: int = 0, top_p: float = 1.0) -> Probs:
    """Only the `top_k` likeliest tokens, or the fewest whose mass is at least `top_p`, renormalised; shape as given.

    The same as truncating the logits before the softmax (METHODS 2, TSLT; TSLT 3).
    """
    return _truncate(probs, SamplingParams(top_k=top_k, top_p=top_p))


def one_hot(index: int, size: int) -> Probs:
    """The point mass at `index`, shape (size,)."""
    probs = np.zeros(size)
    probs[index] = 1.0
    return probs


def total_variation(first: Probs, second: Probs) -> float:
    """Half the sum of absolute differences, in [0, 1]. The shorter one counts as 0 beyond its end."""
    if len(first) < len(second):
        first, second = second, first
    common = len(second)
    return float(np.abs(first[:common] - second).sum() + np.abs(first[common:]).sum()) / 2


def _adjusted(logits: Logits, params: SamplingParams, history: Sequence[int]) -> NDArray[np.float64]:
    # A copy: the logits are the model's, and what follows changes them in place.
    scores = logits.astype(np.float64)
    if params.has_penalties and len(history):
        _penalise(scores, params, history)
    for token, bias in params.logit_bias:
        scores[token] += bias
    return scores


def _softmax(scores: NDArray[np.float64]) -> Probs:
    probs: Probs = np.exp(scores)
    probs /= probs.sum()
    return probs


def _penalise(scores: NDArray[np.float64], params: SamplingParams, history: Sequence[int]) -> None:
    seen, counts = np.unique(np.asarray(history, dtype=np.int64), return_counts=True)
    values = scores[seen]
    # Towards less in both cases: dividing a logit below 0 would raise it.
    scaled = np.where(values > 0, values / params.repetition_penalty, values * params.repetition_penalty)
    scores[seen] = scaled - params.presence_penalty - params.frequency_penalty * counts


def _truncate(probs: Probs, params: SamplingParams) -> Probs:
    if 0 < params.top_k < len(probs):
        probs = _keep(probs, _largest(probs, params.top_k))
    if params.top_p < 1:
        # Stable, so that of equals the lowest ids stay, as in top-k and at temperature 0.
        order = np.argsort(-probs, kind="stable")
        # The first place where the mass is reached. Where roundings keep the whole sum below it the slice takes all there are.
        count = int(np.searchsorted(np.cumsum(probs[order]), params.top_p)) + 1
        probs = _keep(probs, order[:count])
    if params.min_p > 0:
        probs = _keep(probs, np.flatnonzero(probs >= params.min_p * probs.max()))
    return probs


def _keep(probs: Probs, indices: NDArray[np.intp]) -> Probs:
    kept = np.zeros_like(probs)
    kept[indices] = probs[indices]
    kept /= kept.sum()
    return kept


def _largest(values: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """The indices of the `count` largest values; of equal ones at the border, the lowest indices."""
    if count == 0:
        return np.empty(0, dtype=np.intp)
    # A partition finds the border in a tenth of the time of a sort, at the size of a whole vocabulary.
    border = np.partition(values, len(values) - count)[len(values) - count]
    above = np.flatnonzero(values > border)
    ties = np.flatnonzero(values == border)[: count - len(above)]
    return np.concatenate([above, ties])

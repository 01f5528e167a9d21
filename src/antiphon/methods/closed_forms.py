"""The closed forms of METHODS 2: the bits that a method's messages come to, to stand beside the bits that really crossed.

They leave out framing, the accepted count, padding to whole bytes, and every saving (sparse distributions, candidates drawn
twice). Below, L is the bits of a token of the cloud, Lc those of a common token, b those of a probability.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from antiphon.methods.effects import Exchanged
from antiphon.vocabulary import CommonVocabulary


@dataclass(frozen=True, slots=True)
class Work:
    """What an answer came to: tokens by where they came from, and what crossed for them."""

    streamed: int
    corrections: int
    bonuses: int
    local: int
    exchanged: Exchanged

    @property
    def tested(self) -> int:
        """Drafts that were sent."""
        return self.exchanged.drafted - self.local


@dataclass(frozen=True, slots=True)
class Bits:
    """Bits of an answer, each way."""

    up: int
    down: int


ClosedForm: TypeAlias = Callable[[Work, CommonVocabulary, Any], Bits]
"""The bits of an answer, from its work, the common vocabulary and the method's options."""


def streamed(work: Work, common: CommonVocabulary, options: Any) -> Bits:
    """`cloud`: a token each."""
    return Bits(0, work.streamed * common.target_bits)


def dense_drafts(work: Work, common: CommonVocabulary, options: Any) -> Bits:
    """`dsd`: N (Lc + b |C|) up, L down. `u-hlm`: the same for what was sent, and Lc for every token committed alone."""
    up = work.tested * (common.common_bits + options.draft_precision * common.size) + work.local * common.common_bits
    return Bits(up, _token_each(work, common))


def kept_drafts(work: Work, common: CommonVocabulary, options: Any) -> Bits:
    """`cu-hlm`: as `u-hlm` with k (Lc + b) for a draft distribution."""
    distribution = options.top_k * (common.common_bits + options.draft_precision)
    up = work.tested * (common.common_bits + distribution) + work.local * common.common_bits
    return Bits(up, _token_each(work, common))


def sparse_drafts(work: Work, common: CommonVocabulary, options: Any) -> Bits:
    """`tslt`: N (Lc + K (Lc + b)) up, ids and probabilities in full, L down. `tslt-tree`: the same for every node."""
    entries = work.exchanged.entries * (common.common_bits + options.draft_precision)
    return Bits(work.tested * common.common_bits + entries, _token_each(work, common))


def ids_only(work: Work, common: CommonVocabulary, options: Any) -> Bits:
    """`coupled`, `coupled-tree`: N Lc up, L down."""
    # Not those of `work.tested`: what was written while the link was lost, and kept, was no draft.
    up = work.exchanged.drafted * common.common_bits
    return Bits(up, _token_each(work, common) + work.streamed * common.target_bits)


def scalar_drafts(work: Work, common: CommonVocabulary, options: Any) -> Bits:
    """`gr`, `tr`: N (Lc + b) up, L down."""
    return Bits(_scalars(work, common, options), _token_each(work, common))


def whole_targets(work: Work, common: CommonVocabulary, options: Any) -> Bits:
    """`dssd`: N (Lc + b) up, b V down, or L where all are accepted; the resampled token goes up with L."""
    down = work.corrections * options.precision * common.target_size + work.bonuses * common.target_bits
    return Bits(_resampled(work, common, options), down)


def common_targets(work: Work, common: CommonVocabulary, options: Any) -> Bits:
    """`xcosd`: as `dssd`, with b |C| + b + L down."""
    down = work.corrections * _hybrid(common, options) + work.bonuses * common.target_bits
    return Bits(_resampled(work, common, options), down)


def candidates(work: Work, common: CommonVocabulary, options: Any) -> Bits:
    """`xcosd-e`: as `dssd`, with r K (L + b) down after r messages, and a whole distribution where it came to that."""
    each = common.target_bits + options.draft_precision
    down = work.exchanged.candidates * each + work.exchanged.distributions * _hybrid(common, options)
    return Bits(_resampled(work, common, options), down + work.bonuses * common.target_bits)


def _scalars(work: Work, common: CommonVocabulary, options: Any) -> int:
    return work.tested * (common.common_bits + int(options.draft_precision))


def _resampled(work: Work, common: CommonVocabulary, options: Any) -> int:
    return _scalars(work, common, options) + work.corrections * common.target_bits


def _hybrid(common: CommonVocabulary, options: Any) -> int:
    return int(options.precision) * (common.size + 1) + common.target_bits


def _token_each(work: Work, common: CommonVocabulary) -> int:
    return (work.corrections + work.bonuses) * common.target_bits

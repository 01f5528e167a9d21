"""`tslt`: truncated sparse logits transmission, single candidate (METHODS 2; TSLT 3, "sparsify then sample").

Up: ids and truncated draft distributions. A distribution is truncated and rounded before the draft is drawn from it, so what
the cloud tests and resamples with is the very distribution of the draft: only acceptance suffers from what was cut off, at most
by its mass. Down: as `dsd`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.core.distributions import Probs, truncated
from antiphon.core.rounding import quantise_ratios, ratios_of
from antiphon.errors import ProtocolError, UsageError
from antiphon.methods import closed_forms as accounting
from antiphon.methods.base import CloudSide, DeviceSide, Method
from antiphon.methods.drafter import Drafted
from antiphon.methods.effects import Exchanged
from antiphon.methods.speculative.chain import CHAIN_NEEDS, ChainDevice
from antiphon.methods.speculative.dsd import DenseProposed, DsdCloud
from antiphon.methods.speculative.options import (
    DsdOptions,
    Verification,
    WithDraftLength,
    draft_length_option,
    require_bits,
    require_verification,
)
from antiphon.options import option, option_of, require
from antiphon.vocabulary import CommonVocabulary
from antiphon.wire.packing import Reader, Writer
from antiphon.wire.sparse import SparseCodec


@dataclass(frozen=True, slots=True)
class Truncation:
    """Which part of the draft probs is kept: the `top_k` likeliest tokens, or the fewest with a mass of at least `top_p`."""

    top_k: int = 0
    top_p: float = 1.0

    @classmethod
    def parse(cls, text: str) -> "Truncation":
        """From `k=320` or `p=0.95`; `off` keeps everything. Raises UsageError."""
        name, _, value = text.partition("=")
        try:
            match name:
                case "off" if text == "off":
                    return cls()
                case "k" if int(value) >= 1:
                    return cls(top_k=int(value))
                case "p" if 0 < float(value) <= 1:
                    return cls(top_p=float(value))
        except ValueError:
            pass
        raise UsageError(f"truncate must be k=NUMBER from 1 on, p=SHARE above 0 and at most 1, or off, not {text!r}")


@dataclass(frozen=True, slots=True)
class SparseOptions:
    """What `tslt` and `tslt-tree` share: how draft distributions are truncated and packed. truncate: see `Truncation.parse`."""

    draft_precision: int = option(8, "Bits of a draft probability on the wire: 8 or 16 (logarithms), or 32 (float32).")
    truncate: str = option("k=320", "The part of a draft distribution that is kept: k=320, p=0.95 or off.")
    wire: str = option("delta", "How tokens and probabilities are packed: delta, plain or tight.")

    def __post_init__(self) -> None:
        Truncation.parse(self.truncate)
        require_bits("draft precision", self.draft_precision, 8, 16, 32)
        require(self.wire in ("delta", "plain", "tight"), f"wire must be delta, plain or tight, not {self.wire!r}")
        fits = self.wire != "tight" or self.draft_precision < 32
        require(fits, "wire tight needs a draft precision of 8 or 16 bits")


@dataclass(frozen=True, slots=True)
class TsltOptions(SparseOptions, WithDraftLength):
    """Options of `tslt`."""

    draft_length: int = draft_length_option(3)
    verification: Verification = option_of(DsdOptions, "verification")

    def __post_init__(self) -> None:
        SparseOptions.__post_init__(self)
        self.require_draft_length()
        require_verification(self.verification)


class Sparsifier:
    """Truncates and rounds draft distributions, and adds up the mass that it cut off and the tokens that it kept."""

    def __init__(self, options: SparseOptions) -> None:
        self._keep = Truncation.parse(options.truncate)
        self._round = quantise_ratios(ratios_of(options.draft_precision))
        self._cut = 0.0
        self._entries = 0

    def __call__(self, probs: Probs) -> Probs:
        """The distribution that is drawn from and sent."""
        distribution = self._round(truncated(probs, self._keep.top_k, self._keep.top_p))
        kept = distribution > 0
        # Of the probs before truncation, and of what is left after rounding: tokens that round to 0 are cut off too.
        self._cut += max(0.0, 1.0 - float(probs[kept].sum()))
        self._entries += int(kept.sum())
        return distribution

    def tell(self, exchanged: Exchanged, distributions: int) -> None:
        """Add what was kept and cut since the last time, for `distributions` distributions."""
        exchanged.draft_distributions += distributions
        exchanged.entries += self._entries
        exchanged.cut += self._cut
        self._cut, self._entries = 0.0, 0


def sparse_codec(common: CommonVocabulary, options: SparseOptions) -> SparseCodec:
    """How draft distributions cross the link."""
    return SparseCodec(common.size, ratios_of(options.draft_precision), options.wire)


class TsltDevice(ChainDevice):
    """Sends truncated distributions."""

    def __init__(self, side: DeviceSide, options: TsltOptions) -> None:
        super().__init__(side, options)
        self.sparsifier = Sparsifier(options)
        self.quantise = self.sparsifier
        self._codec = sparse_codec(side.common, options)

    def pack(self, writer: Writer, drafts: Sequence[Drafted]) -> None:
        """One distribution a draft."""
        self._codec.write(writer, [draft.probs for draft in drafts])

    def tell(self, exchanged: Exchanged, drafts: Sequence[Drafted]) -> None:
        """What was kept and cut of their distributions."""
        self.sparsifier.tell(exchanged, len(drafts))


class TsltCloud(DsdCloud):
    """Tests and resamples with truncated distributions."""

    def __init__(self, side: CloudSide, options: TsltOptions) -> None:
        super().__init__(side, options)
        self._codec = sparse_codec(side.common, options)

    def unpack(self, reader: Reader, numbers: Sequence[int]) -> list[DenseProposed]:
        """One distribution a draft."""
        distributions = self._codec.read(reader, len(numbers))
        return [
            _proposed(number, distribution, index + 1)
            for index, (number, distribution) in enumerate(zip(numbers, distributions, strict=True))
        ]


def _proposed(number: int, distribution: Probs, place: int) -> DenseProposed:
    if distribution[number] == 0:
        raise ProtocolError(f"draft {place} has probability 0, so it cannot have been drawn", "bad-probability")
    return DenseProposed(number, float(distribution[number]), distribution)


_SUMMARY = "truncated draft distributions up, one token down; the cloud resamples"
TSLT = Method(
    "tslt", _SUMMARY, True, TsltDevice, TsltCloud, options=TsltOptions, bits=accounting.sparse_drafts, needs=CHAIN_NEEDS
)

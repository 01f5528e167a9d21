"""`tslt`: truncated sparse logits transmission, single candidate (METHODS 2; TSLT section 3, "sparsify then sample").

Up: ids and truncated draft laws. A law is truncated and rounded before the draft is drawn from it, so what the cloud tests and
resamples with is the very law of the draft: only acceptance suffers from what was cut off, at most by its mass. Down: as `dsd`.
"""

from collections.abc import Sequence

from antiphon.config import SparseOptions, Truncation, TsltOptions
from antiphon.core.distributions import Probs, truncated
from antiphon.core.rounding import quantise_ratios, ratios_of
from antiphon.errors import ProtocolError
from antiphon.methods import closed_forms as accounting
from antiphon.methods.base import CloudSide, DeviceSide, Method
from antiphon.methods.drafter import Drafted
from antiphon.methods.effects import Exchanged
from antiphon.methods.speculative.chain import ChainDevice
from antiphon.methods.speculative.dsd import DenseProposed, DsdCloud
from antiphon.vocabulary import CommonVocabulary
from antiphon.wire.packing import Reader, Writer
from antiphon.wire.sparse import SparseCodec


class Sparsifier:
    """Truncates and rounds draft laws, and adds up the mass that it cut off and the tokens that it kept."""

    def __init__(self, options: SparseOptions) -> None:
        self._keep = Truncation.parse(options.truncate)
        self._round = quantise_ratios(ratios_of(options.draft_precision))
        self._cut = 0.0
        self._entries = 0

    def __call__(self, probs: Probs) -> Probs:
        """The law that is drawn from and sent."""
        law = self._round(truncated(probs, self._keep.top_k, self._keep.top_p))
        kept = law > 0
        self._cut += max(0.0, 1.0 - float(probs[kept].sum()))
        self._entries += int(kept.sum())
        return law

    def tell(self, exchanged: Exchanged, laws: int) -> None:
        """Add what was kept and cut since the last time, for `laws` laws."""
        exchanged.draft_laws += laws
        exchanged.entries += self._entries
        exchanged.cut += self._cut
        self._cut, self._entries = 0.0, 0


def sparse_codec(common: CommonVocabulary, options: SparseOptions) -> SparseCodec:
    """How draft laws cross the link."""
    return SparseCodec(common.size, ratios_of(options.draft_precision), options.wire)


class TsltDevice(ChainDevice):
    """Sends truncated laws."""

    def __init__(self, side: DeviceSide, options: TsltOptions) -> None:
        super().__init__(side, options)
        self.sparsifier = Sparsifier(options)
        self.quantise = self.sparsifier
        self._codec = sparse_codec(side.common, options)

    def pack(self, writer: Writer, drafts: Sequence[Drafted]) -> None:
        """One law a draft."""
        self._codec.write(writer, [draft.probs for draft in drafts])

    def tell(self, exchanged: Exchanged, drafts: Sequence[Drafted]) -> None:
        """What was kept and cut of their laws."""
        self.sparsifier.tell(exchanged, len(drafts))


class TsltCloud(DsdCloud):
    """Tests and resamples with truncated laws."""

    def __init__(self, side: CloudSide, options: TsltOptions) -> None:
        super().__init__(side, options)
        self._codec = sparse_codec(side.common, options)

    def unpack(self, reader: Reader, numbers: Sequence[int]) -> list[DenseProposed]:
        """One law a draft."""
        laws = self._codec.read(reader, len(numbers))
        return [_proposed(number, law, index + 1) for index, (number, law) in enumerate(zip(numbers, laws, strict=True))]


def _proposed(number: int, law: Probs, place: int) -> DenseProposed:
    if law[number] == 0:
        raise ProtocolError(f"draft {place} has probability 0, so it cannot have been drawn", "bad-probability")
    return DenseProposed(number, float(law[number]), law)


_SUMMARY = "truncated draft laws up, one token down; the cloud resamples"
TSLT = Method("tslt", _SUMMARY, True, TsltDevice, TsltCloud, options=TsltOptions, bits=accounting.sparse_drafts)

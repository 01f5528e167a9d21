"""The uplink of the methods that send one probability a draft: `dssd`, `xcosd`, `xcosd-e`, `gr`, `tr` (METHODS 2)."""

from collections.abc import Sequence

from antiphon.core.rounding import quantise_fixed
from antiphon.methods.base import CloudSide, DeviceSide
from antiphon.methods.drafter import Drafted
from antiphon.methods.speculative.chain import ChainCloud, ChainDevice, PrecisionOptions, Proposed
from antiphon.wire.packing import Reader, Writer


class ScalarDevice(ChainDevice):
    """Sends the probability with which each draft was drawn."""

    def __init__(self, side: DeviceSide, options: PrecisionOptions) -> None:
        super().__init__(side, options)
        self._precision = options.draft_precision
        self.quantise = quantise_fixed(self._precision)

    def pack(self, writer: Writer, drafts: Sequence[Drafted]) -> None:
        """One probability a draft."""
        for draft in drafts:
            writer.probability(draft.prob, self._precision)


class ScalarCloud(ChainCloud[Proposed]):
    """Tests with those probabilities."""

    def __init__(self, side: CloudSide, options: PrecisionOptions) -> None:
        super().__init__(side, options)
        self._precision = options.draft_precision

    def unpack(self, reader: Reader, numbers: Sequence[int]) -> list[Proposed]:
        """One probability a draft."""
        bits = self._precision
        named = ((number, f"the probability of draft {index + 1}") for index, number in enumerate(numbers))
        return [Proposed(number, reader.probability(bits, what)) for number, what in named]

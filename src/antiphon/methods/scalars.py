"""The uplink of the methods that send one probability a draft: `dssd`, `xcosd`, `xcosd-e`, `gr`, `tr` (METHODS 2)."""

from collections.abc import Sequence

from antiphon.methods.chain import ChainCloud, ChainDevice, Proposed
from antiphon.methods.drafter import Drafted
from antiphon.wire.packing import Reader, Writer


class ScalarDevice(ChainDevice):
    """Sends the probability with which each draft was drawn."""

    def pack(self, writer: Writer, drafts: Sequence[Drafted]) -> None:
        """One probability a draft."""
        for draft in drafts:
            writer.probability(draft.prob, self.options.draft_precision)


class ScalarCloud(ChainCloud[Proposed]):
    """Tests with those probabilities."""

    def unpack(self, reader: Reader, numbers: Sequence[int]) -> list[Proposed]:
        """One probability a draft."""
        bits = self.options.draft_precision
        named = ((number, f"the probability of draft {index + 1}") for index, number in enumerate(numbers))
        return [Proposed(number, reader.probability(bits, what)) for number, what in named]

"""`cu-hlm`: `u-hlm` with the draft probs compressed: its likeliest tokens, the rest of its mass spread evenly (METHODS 2).

Not exact, also where the cloud is asked: the draft was drawn from another distribution than the one that it is tested against.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from antiphon.core.distributions import Probs
from antiphon.core.rounding import fixed_point
from antiphon.errors import ProtocolError
from antiphon.methods import closed_forms as accounting
from antiphon.methods.base import CloudSide, DeviceSide, Method
from antiphon.methods.baselines.u_hlm import UncertaintyCloud, UncertaintyDevice, UncertaintyOptions
from antiphon.methods.drafter import Drafted
from antiphon.methods.speculative.chain import CHAIN_NEEDS
from antiphon.methods.speculative.dsd import DenseProposed
from antiphon.options import option, require
from antiphon.vocabulary import bits_for
from antiphon.wire.packing import Reader, Writer


@dataclass(frozen=True, slots=True)
class CompressedOptions(UncertaintyOptions):
    """Options of `cu-hlm`. top_k: the draft's likeliest tokens that are sent with their probabilities."""

    top_k: int = option(64, "Likeliest tokens of a draft distribution that are sent.")

    def __post_init__(self) -> None:
        UncertaintyOptions.__post_init__(self)
        require(1 <= self.top_k <= 4096, f"top-k must be 1 to 4096, not {self.top_k}")


class CuHlmDevice(UncertaintyDevice):
    """Sends the likeliest tokens of an uncertain draft's distribution."""

    def __init__(self, side: DeviceSide, options: CompressedOptions) -> None:
        super().__init__(side, options)
        self._top_k, self._precision = options.top_k, options.draft_precision

    def pack(self, writer: Writer, drafts: Sequence[Drafted]) -> None:
        """Count, then id and probability of each."""
        for draft in drafts:
            counts = fixed_point(draft.probs, self._precision)
            order = np.argsort(-counts, kind="stable")[: self._top_k]
            kept = [int(number) for number in order if counts[number] > 0]
            writer.number(len(kept), bits_for(self._top_k + 1))
            for number in kept:
                writer.number(number, self.side.common.common_bits)
                writer.number(int(counts[number]), self._precision)


class CuHlmCloud(UncertaintyCloud):
    """Tests and resamples with the compressed distribution."""

    def __init__(self, side: CloudSide, options: CompressedOptions) -> None:
        super().__init__(side, options)
        self._top_k, self._precision = options.top_k, options.draft_precision

    def unpack(self, reader: Reader, numbers: Sequence[int]) -> list[DenseProposed]:
        """The distribution of each draft."""
        return [self._tested(number, self._distribution(reader)) for number in numbers]

    def _distribution(self, reader: Reader) -> Probs:
        common, total = self.side.common, 2**self._precision - 1
        count = reader.number(bits_for(self._top_k + 1), self._top_k + 1, "the count of kept tokens")
        kept: dict[int, int] = {}
        for _ in range(count):
            number = reader.number(common.common_bits, common.size, "a kept token")
            kept[number] = reader.number(self._precision, total + 1, "the probability of a kept token")
        rest = total - sum(kept.values())
        if len(kept) < count or rest < 0 or (rest > 0 and count == common.size):
            raise ProtocolError("the kept tokens are no part of a distribution", "bad-probability")
        distribution: Probs = np.full(common.size, rest / max(1, common.size - count))
        distribution[list(kept)] = list(kept.values())
        distribution /= total
        return distribution

    def _tested(self, number: int, distribution: Probs) -> DenseProposed:
        if distribution[number] == 0:
            raise ProtocolError("the draft has probability 0, so it cannot have been drawn", "bad-probability")
        return DenseProposed(number, float(distribution[number]), distribution)


_SUMMARY = "certain drafts stand unseen; of others the likeliest part of the draft distribution up, one token down"
CU_HLM = Method(
    "cu-hlm",
    _SUMMARY,
    False,
    CuHlmDevice,
    CuHlmCloud,
    options=CompressedOptions,
    bits=accounting.kept_drafts,
    needs=CHAIN_NEEDS,
)

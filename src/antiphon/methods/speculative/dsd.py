"""`dsd`: distributed speculative decoding (METHODS 2; TSLT's baseline, X-CoSD's "UL").

Up: ids and the dense draft distributions over the common vocabulary. Down: one token; the cloud resamples. As it knows the
distributions whole, it can also test the drafts of a round together, as a block.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from antiphon.core.acceptance import residual
from antiphon.core.block import judged
from antiphon.core.chance import Place, Role
from antiphon.core.distributions import Probs
from antiphon.core.rounding import quantise_fixed
from antiphon.errors import ProtocolError
from antiphon.methods import closed_forms as accounting
from antiphon.methods.base import CloudSide, DeviceSide, Method
from antiphon.methods.drafter import Drafted
from antiphon.methods.speculative.chain import CHAIN_NEEDS, ChainCloud, ChainDevice, PrecisionOptions, Proposed
from antiphon.methods.speculative.options import DsdOptions, Verification
from antiphon.methods.verifier import Target, Targets
from antiphon.wire.packing import Reader, Writer


class DenseOptions(PrecisionOptions, Protocol):
    """What the options have of a method whose cloud knows the draft distributions."""

    @property
    def verification(self) -> Verification:
        """How drafts are tested."""
        ...


@dataclass(frozen=True, slots=True)
class DenseProposed(Proposed):
    """A draft with the whole distribution that it was drawn from."""

    probs: Probs


class DsdDevice(ChainDevice):
    """Sends whole distributions."""

    def __init__(self, side: DeviceSide, options: PrecisionOptions) -> None:
        super().__init__(side, options)
        self._precision = options.draft_precision
        self.quantise = quantise_fixed(self._precision)

    def pack(self, writer: Writer, drafts: Sequence[Drafted]) -> None:
        """One distribution a draft."""
        for draft in drafts:
            writer.probabilities(draft.probs, self._precision)


class DsdCloud(ChainCloud[DenseProposed]):
    """Tests and resamples with whole distributions."""

    def __init__(self, side: CloudSide, options: DenseOptions) -> None:
        super().__init__(side, options)
        self._precision = options.draft_precision
        self._as_block = options.verification == "block"
        self._reached = 1.0  # of the target a correction is drawn from so much, less the draft distribution

    def unpack(self, reader: Reader, numbers: Sequence[int]) -> list[DenseProposed]:
        """One distribution a draft."""
        return [self._proposed(reader, number, f"draft {index + 1}") for index, number in enumerate(numbers)]

    def test(self, drafts: Sequence[DenseProposed], targets: Targets) -> int:
        """One after the other, or together."""
        if not self._as_block:
            return super().test(drafts, targets)
        transcript, chance = self.side.transcript, self.side.chance
        numbers = transcript.until_end([draft.number for draft in drafts])
        block = judged(numbers, [draft.probs for draft in drafts[: len(numbers)]], lambda index: targets.at(index).probs)
        accepted = block.accepted(lambda index: chance.at(transcript.place(index), Role.ACCEPT))
        self._reached = block.reached[accepted]
        return accepted

    def correct(self, writer: Writer, target: Target, draft: DenseProposed, place: Place) -> Generator[Any, Any, int]:
        """Draw from the residual and send the token."""
        yield from ()
        share = target.probs if self._reached == 1.0 else self._reached * target.probs
        token = self.side.chance.at(place, Role.RESAMPLE).categorical(residual(share, draft.probs))
        writer.number(token, self.side.common.target_bits)
        return token

    def _proposed(self, reader: Reader, number: int, what: str) -> DenseProposed:
        probs = reader.probabilities(self.side.common.size, self._precision, f"the probabilities of {what}")
        # The test divides by it. No honest device drew such a draft.
        if probs[number] == 0:
            raise ProtocolError(f"{what} has probability 0, so it cannot have been drawn", "bad-probability")
        return DenseProposed(number, float(probs[number]), probs)


DSD = Method(
    "dsd",
    "the dense draft distributions up, one token down; the cloud resamples",
    True,
    DsdDevice,
    DsdCloud,
    options=DsdOptions,
    bits=accounting.dense_drafts,
    needs=CHAIN_NEEDS,
)

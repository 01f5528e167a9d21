"""`dssd`: distributed split speculative decoding (METHODS 2; DSSD, and X-CoSD's "Naive").

Up: ids and one probability a draft. Down after a rejection: the dense target distribution, from which the device draws
the token. It is float32 on the wire, so the target of this session is the decoded one (within 2^-24 of the model's own).
"""

from collections.abc import Generator, Sequence
from typing import Any

from antiphon.config import ChainOptions
from antiphon.core.acceptance import residual
from antiphon.core.chance import Role
from antiphon.core.distributions import Probs, quantise_float32
from antiphon.methods.base import CloudSide, Method
from antiphon.methods.chain import ChainCloud, ChainDevice, Proposed
from antiphon.methods.drafter import Drafted
from antiphon.wire.packing import Reader, Writer


class DssdDevice(ChainDevice):
    """Sends scalars; draws the token after a rejection."""

    def pack(self, writer: Writer, drafts: Sequence[Drafted]) -> None:
        """One probability a draft."""
        for draft in drafts:
            writer.probability(draft.prob, self.options.precision)

    def corrected(self, reader: Reader, drafts: Sequence[Drafted], accepted: int) -> Generator[Any, Any, int]:
        """Draw from the residual of the target that came and the law that the draft was drawn from."""
        yield from ()
        target = reader.float32_distribution(self.side.common.target_size, "the target probabilities")
        position = self.side.transcript.position + accepted
        law = residual(target, drafts[accepted].probs)
        self.owed = self.side.chance.at(position, Role.RESAMPLE).categorical(law)
        return self.owed


class DssdCloud(ChainCloud[Proposed]):
    """Sends the target distribution after a rejection."""

    device_resamples = True

    def __init__(self, side: CloudSide, options: ChainOptions) -> None:
        super().__init__(side, options)
        self.quantise = quantise_float32

    def unpack(self, reader: Reader, numbers: Sequence[int]) -> list[Proposed]:
        """One probability a draft."""
        bits = self.options.precision
        named = ((number, f"the probability of draft {index + 1}") for index, number in enumerate(numbers))
        return [Proposed(number, reader.probability(bits, what)) for number, what in named]

    def correct(self, writer: Writer, target: Probs, draft: Proposed, position: int) -> Generator[Any, Any, None]:
        """The device draws; it needs the target distribution."""
        yield from ()
        writer.float32_distribution(target)


DSSD = Method("dssd", "scalars up, the dense target down; the device resamples", True, DssdDevice, DssdCloud)

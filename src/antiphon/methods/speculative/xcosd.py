"""`xcosd`: hybrid resampling (METHODS 2; X-CoSD 3, HR).

Up: as `dssd`. Down after a rejection: the target on the common vocabulary, the mass outside it, and one spare token drawn
from outside, so that drawing "outside" costs no second trip. The target of such a session is the decoded one.
"""

from collections.abc import Generator, Sequence
from typing import Any

from antiphon.core.acceptance import residual
from antiphon.core.chance import Place, Role, Stream
from antiphon.core.distributions import Probs
from antiphon.core.resampling import lumped, quantise_lumped, spare_distribution
from antiphon.core.rounding import Ratios, ratios_of
from antiphon.errors import ProtocolError
from antiphon.methods import closed_forms as accounting
from antiphon.methods.base import CloudSide, DeviceSide, Method
from antiphon.methods.drafter import Drafted
from antiphon.methods.speculative.chain import CHAIN_NEEDS, Proposed
from antiphon.methods.speculative.options import SplitOptions
from antiphon.methods.speculative.scalar_drafts import ScalarCloud, ScalarDevice
from antiphon.methods.verifier import Target
from antiphon.vocabulary import CommonVocabulary
from antiphon.wire.packing import Reader, Writer, distribution_bits


class HybridCodec:
    """What hybrid resampling sends: a lumped target, and a spare token if there is mass outside the common vocabulary."""

    def __init__(self, common: CommonVocabulary, precision: int) -> None:
        self._common = common
        self.ratios: Ratios = ratios_of(precision)

    def write(self, writer: Writer, target: Probs, stream: Stream) -> None:
        """Append a target that was rounded lumped; the spare is drawn from `stream`."""
        distribution = lumped(target, self._common.size)
        writer.distribution(distribution, self.ratios)
        if distribution[-1] > 0:
            spare = self._common.size + stream.categorical(spare_distribution(target, self._common.size))
            writer.number(spare, self._common.target_bits)

    def draw(self, reader: Reader, draft_probs: Probs, stream: Stream) -> int:
        """Read what `write` wrote and draw the token after the rejection of a draft that was drawn from `draft_probs`."""
        size = self._common.size
        distribution = reader.distribution(size + 1, self.ratios, "the target probabilities")
        # The spare is there whenever it could be needed, and read whether or not it is: a second trip would cost more than a
        # token.
        spare = self._spare(reader) if distribution[-1] > 0 else None
        drawn = stream.categorical(residual(distribution, draft_probs))
        return drawn if spare is None or drawn < size else spare

    def bits(self, target: Probs) -> int:
        """Bits of a message at most."""
        return distribution_bits(lumped(target, self._common.size), self.ratios) + self._common.target_bits

    def _spare(self, reader: Reader) -> int:
        spare = reader.number(self._common.target_bits, self._common.target_size, "the spare token")
        if spare < self._common.size:
            raise ProtocolError("the spare token is in the common vocabulary", "out-of-range")
        return spare


class XcosdDevice(ScalarDevice):
    """Draws the token after a rejection, or takes the spare."""

    def __init__(self, side: DeviceSide, options: SplitOptions) -> None:
        super().__init__(side, options)
        self._hybrid = HybridCodec(side.common, options.precision)

    def corrected(self, reader: Reader, drafts: Sequence[Drafted], accepted: int) -> Generator[Any, Any, int]:
        """Draw from the residual of the lumped target."""
        yield from ()
        stream = self.side.chance.at(self.side.transcript.place(accepted), Role.RESAMPLE)
        token = self._hybrid.draw(reader, drafts[accepted].probs, stream)
        self.exchanged.distributions += 1
        self.owed = [token]
        return token


class XcosdCloud(ScalarCloud):
    """Sends the lumped target after a rejection."""

    device_resamples = True

    def __init__(self, side: CloudSide, options: SplitOptions) -> None:
        super().__init__(side, options)
        self._hybrid = HybridCodec(side.common, options.precision)
        self.quantise = quantise_lumped(side.common.size, self._hybrid.ratios)

    def correct(self, writer: Writer, target: Target, draft: Proposed, place: Place) -> Generator[Any, Any, None]:
        """The device draws; it needs the lumped target and a spare."""
        yield from ()
        self._hybrid.write(writer, target.probs, self.side.chance.at(place, Role.CANDIDATE))


_SUMMARY = "scalars up, the target on the common vocabulary down; the device resamples"
XCOSD = Method(
    "xcosd", _SUMMARY, True, XcosdDevice, XcosdCloud, options=SplitOptions, bits=accounting.common_targets, needs=CHAIN_NEEDS
)

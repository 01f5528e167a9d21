"""`dssd`: distributed split speculative decoding (METHODS 2; DSSD, and X-CoSD's "Naive").

Up: ids and one probability a draft. Down after a rejection: the target distribution over the whole vocabulary, from which the
device draws the token. It is rounded for the wire, so the target of such a session is the decoded one.
"""

from collections.abc import Generator, Sequence
from typing import Any

from antiphon.core.acceptance import residual
from antiphon.core.chance import Place, Role
from antiphon.core.rounding import quantise_ratios, ratios_of
from antiphon.methods import closed_forms as accounting
from antiphon.methods.base import CloudSide, DeviceSide, Method
from antiphon.methods.drafter import Drafted
from antiphon.methods.speculative.chain import CHAIN_NEEDS, Proposed
from antiphon.methods.speculative.options import SplitOptions
from antiphon.methods.speculative.scalar_drafts import ScalarCloud, ScalarDevice
from antiphon.methods.verifier import Target
from antiphon.wire.packing import Reader, Writer


class DssdDevice(ScalarDevice):
    """Draws the token after a rejection."""

    def __init__(self, side: DeviceSide, options: SplitOptions) -> None:
        super().__init__(side, options)
        self._ratios = ratios_of(options.precision)

    def corrected(self, reader: Reader, drafts: Sequence[Drafted], accepted: int) -> Generator[Any, Any, int]:
        """Draw from the residual of the target that came and the distribution that the draft was drawn from."""
        yield from ()
        target = reader.distribution(self.side.common.target_size, self._ratios, "the target probabilities")
        self.exchanged.distributions += 1
        stream = self.side.chance.at(self.side.transcript.place(accepted), Role.RESAMPLE)
        token = stream.categorical(residual(target, drafts[accepted].probs))
        self.owed = [token]
        return token


class DssdCloud(ScalarCloud):
    """Sends the target distribution after a rejection."""

    device_resamples = True

    def __init__(self, side: CloudSide, options: SplitOptions) -> None:
        super().__init__(side, options)
        self._ratios = ratios_of(options.precision)
        self.quantise = quantise_ratios(self._ratios)

    def correct(self, writer: Writer, target: Target, draft: Proposed, place: Place) -> Generator[Any, Any, None]:
        """The device draws; it needs the target distribution."""
        yield from ()
        writer.distribution(target.probs, self._ratios)


DSSD = Method(
    "dssd",
    "scalars up, the whole target down; the device resamples",
    True,
    DssdDevice,
    DssdCloud,
    options=SplitOptions,
    bits=accounting.whole_targets,
    needs=CHAIN_NEEDS,
)

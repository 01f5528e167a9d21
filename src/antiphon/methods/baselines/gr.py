"""`gr`: greedy resampling, a lossy baseline of X-CoSD (METHODS 2).

Up: as `dssd`. Down after a rejection: the target's likeliest token. Not exact: the token after a rejection is not drawn.
"""

from collections.abc import Generator
from typing import Any

from antiphon.core.chance import Place
from antiphon.methods import closed_forms as accounting
from antiphon.methods.base import Method
from antiphon.methods.speculative.chain import CHAIN_NEEDS, Proposed
from antiphon.methods.speculative.scalar_drafts import ScalarCloud, ScalarDevice
from antiphon.methods.verifier import Target
from antiphon.models.needs import Need
from antiphon.wire.packing import Writer


class GrCloud(ScalarCloud):
    """Takes the likeliest token after a rejection."""

    def correct(self, writer: Writer, target: Target, draft: Proposed, place: Place) -> Generator[Any, Any, int]:
        """The arg-max; the lowest number of a tie."""
        yield from ()
        token = target.likeliest()
        writer.number(token, self.side.common.target_bits)
        return token


GR = Method(
    "gr",
    "scalars up; after a rejection the target's likeliest token",
    False,
    ScalarDevice,
    GrCloud,
    bits=accounting.scalar_drafts,
    needs=CHAIN_NEEDS | {Need.WINNERS},
)

"""`tr`: target resampling, a lossy baseline of X-CoSD (METHODS 2).

Up: as `dssd`. Down after a rejection: a draw from the target. Not exact: it should come from the residual max(q - p, 0).
"""

from collections.abc import Generator
from typing import Any

from antiphon.core.chance import Place, Role
from antiphon.methods import closed_forms as accounting
from antiphon.methods.base import Method
from antiphon.methods.speculative.chain import CHAIN_NEEDS, Proposed
from antiphon.methods.speculative.scalar_drafts import ScalarCloud, ScalarDevice
from antiphon.methods.verifier import Target
from antiphon.wire.packing import Writer


class TrCloud(ScalarCloud):
    """Draws from the target after a rejection."""

    def correct(self, writer: Writer, target: Target, draft: Proposed, place: Place) -> Generator[Any, Any, int]:
        """A draw from the whole target."""
        yield from ()
        token = self.side.chance.at(place, Role.RESAMPLE).categorical(target.probs)
        writer.number(token, self.side.common.target_bits)
        return token


TR = Method(
    "tr",
    "scalars up; after a rejection a draw from the target",
    False,
    ScalarDevice,
    TrCloud,
    bits=accounting.scalar_drafts,
    needs=CHAIN_NEEDS,
)

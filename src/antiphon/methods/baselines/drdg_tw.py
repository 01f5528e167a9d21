"""`drdg-tw`: the dense mixture in lockstep (METHODS 4; CONCORD's baseline).

The cloud waits for every token before it scores the next, and sends all scores of it; the device decides. The tokens are those
of the mixture, at a round trip each.
"""

from antiphon.methods.base import Method, OnLoss
from antiphon.methods.mixture.cloud import MIXTURE_NEEDS, LockstepCloud
from antiphon.methods.mixture.device import MixtureDevice
from antiphon.methods.mixture.options import MixtureOptions


class TokenwiseDevice(MixtureDevice):
    """Waits for all scores of every step."""

    dense = True
    patient = True
    gates = False
    lockstep = True


DRDG_TW = Method(
    "drdg-tw",
    "all scores of every token down, in lockstep",
    True,
    TokenwiseDevice,
    LockstepCloud,
    options=MixtureOptions,
    needs=MIXTURE_NEEDS,
    on_loss=OnLoss.REJOIN,
)

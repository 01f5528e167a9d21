"""`concord`: device and cloud each read their own documents, and the token is the mixture's (METHODS 4; CONCORD).

The cloud streams sparse evidence ahead of the device. A certificate says whether it settles the token; if not, the device asks
for the few scores that could change it. Waiting costs debt: with too much of it the device commits its own token. Every token
that was decided with evidence is the one of the dense mixture on decoded scores.

`concord-nosystem` waits for the evidence of every step, `concord-nocomm` sends all scores: the paper's two ablations.
"""

from antiphon.methods.base import Method, OnLoss
from antiphon.methods.mixture.cloud import MIXTURE_NEEDS, DenseCloud, MixtureCloud
from antiphon.methods.mixture.device import MixtureDevice
from antiphon.methods.mixture.options import MixtureOptions


class PatientDevice(MixtureDevice):
    """Without waiting control."""

    patient = True


class DenseDevice(MixtureDevice):
    """Without communication control."""

    dense = True


_SUMMARY = "sparse evidence down, a certificate, few questions; waiting costs debt"
CONCORD = Method(
    "concord", _SUMMARY, False, MixtureDevice, MixtureCloud, options=MixtureOptions, needs=MIXTURE_NEEDS, on_loss=OnLoss.REJOIN
)
CONCORD_NOSYSTEM = Method(
    "concord-nosystem",
    "concord that always waits",
    True,
    PatientDevice,
    MixtureCloud,
    options=MixtureOptions,
    needs=MIXTURE_NEEDS,
    on_loss=OnLoss.REJOIN,
)
CONCORD_NOCOMM = Method(
    "concord-nocomm",
    "concord with all scores",
    False,
    DenseDevice,
    DenseCloud,
    options=MixtureOptions,
    needs=MIXTURE_NEEDS,
    on_loss=OnLoss.REJOIN,
)

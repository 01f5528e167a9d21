"""`dragon`: the dense mixture, token by token (METHODS 4; DRAGON).

Both ends draft ahead and all scores cross; the device decides, and an end whose draft is not the token rolls back. Sampled, the
token is one of the two drafts or drawn in its place, by DRAGON's rule. The option `packing=topp` sends scores of which the tail
was cut off: the distribution then is that of a mixture with what is left.
"""

from collections.abc import Generator
from typing import Any

from antiphon.core.chance import Role
from antiphon.core.distributions import Probs, truncated
from antiphon.core.mixture.aggregation import aggregated
from antiphon.core.mixture.certificate import Certificate
from antiphon.core.mixture.consult import Effort
from antiphon.core.mixture.scores import SCORES, Report, Values
from antiphon.core.mixture.weights import weights_of
from antiphon.methods.base import CloudSide, Method, OnLoss
from antiphon.methods.mixture.cloud import MIXTURE_NEEDS, DraftingCloud
from antiphon.methods.mixture.cloud_stream import Proof
from antiphon.methods.mixture.device import Lines, MixtureDevice
from antiphon.methods.mixture.options import MixtureOptions


class DragonDevice(MixtureDevice):
    """Waits for all scores of every step, and aggregates drafts when the answer is sampled."""

    dense = True
    patient = True
    gates = False
    _draft = 0
    """The step's own draft, of a sampled answer: drawn once."""

    @property
    def lossy(self) -> bool:
        """The tail of the cloud's distribution is cut off."""
        return _kept_mass(self.options) < 1.0

    def noise(self, position: int) -> Values | None:
        """None is shared."""
        return None

    def local(self, certificate: Certificate, distribution: Probs) -> int:
        """Greedy the likeliest, sampled a draft."""
        if not self.mixing.sampled:
            return certificate.local_token
        self._draft = self.side.chance.at(self.side.transcript.place(), Role.DRAFT).categorical(distribution)
        return self._draft

    def decide(
        self, certificate: Certificate, distribution: Probs, proofs: dict[int, Proof], lines: Lines
    ) -> Generator[Any, Any, tuple[int, Effort]]:
        """Greedy the dense token, sampled one of both drafts or a token in its place."""
        (proof,) = proofs.values()
        if not self.mixing.sampled or isinstance(proof.scores, Report):
            return (yield from super().decide(certificate, distribution, proofs, lines))
        decoded = SCORES.values(proof.scores)
        stream = self.side.chance.at(self.side.transcript.place(), Role.ACCEPT)
        own, other = weights_of([self.mixing.log_mass, lines[0].log_mass or 0.0])
        drafts, distributions = (self._draft, proof.draft), (distribution, decoded / decoded.sum())
        return aggregated(stream, drafts, distributions, (own, other)), Effort(everything=True)


def _kept_mass(options: MixtureOptions) -> float:
    return options.packing_top_p if options.packing == "topp" else 1.0


class DragonCloud(DraftingCloud):
    """May cut off the tail of its distribution."""

    def __init__(self, side: CloudSide, options: MixtureOptions) -> None:
        super().__init__(side, options)
        self._top_p = _kept_mass(options)

    def distribution(self, distribution: Probs) -> Probs:
        """The fewest tokens with enough mass."""
        return truncated(distribution, top_p=self._top_p) if self._top_p < 1.0 else distribution


DRAGON = Method(
    "dragon",
    "both ends draft ahead, all scores down",
    True,
    DragonDevice,
    DragonCloud,
    options=MixtureOptions,
    needs=MIXTURE_NEEDS,
    on_loss=OnLoss.REJOIN,
    one_cloud=True,
)

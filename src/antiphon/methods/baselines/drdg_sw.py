"""`drdg-sw`: two whole answers, mixed once, position by position (METHODS 4; CONCORD's baseline).

Each end writes its own answer behind its own documents; the cloud sends all scores of all steps of its line, and the device
mixes the two at every position, each behind its own tokens. An end whose answer is over goes on saying "end of sequence" with
certainty. This is not the mixture of METHODS 4: after the first difference the ends speak of different answers.
"""

from collections.abc import Generator
from typing import Any

import numpy as np

from antiphon.core.distributions import Probs
from antiphon.core.mixture.scores import SCORES
from antiphon.errors import LinkError
from antiphon.methods.base import CloudSide, Method, OnLoss
from antiphon.methods.effects import Consulted, Emit, Emitted, Half, Kind
from antiphon.methods.mixture.cloud import MIXTURE_NEEDS, DenseCloud
from antiphon.methods.mixture.cloud_stream import CloudStream, Proof
from antiphon.methods.mixture.device import MixtureDevice
from antiphon.methods.mixture.options import LONGEST_WAIT, MixtureOptions


class SequenceDevice(MixtureDevice):
    """Writes its own answer, then mixes."""

    dense = True
    patient = True
    gates = False

    def run(self) -> Half:
        """Write the answer."""
        transcript = self.side.transcript
        yield from self.meet()
        distributions = yield from self._own()
        while transcript.finish is None:
            yield from self._mix(distributions[min(transcript.position, len(distributions) - 1)])
        return transcript.finish

    def _own(self) -> Generator[Any, Any, list[Probs]]:
        """The probs of the device's own answer, as long as it may be, or up to its end; then the last are those of the end."""
        transcript, distributions, own = self.side.transcript, list[Probs](), list[int]()
        while len(distributions) < transcript.remaining:
            distributions.append((yield from self.scored(own)))
            own.append(self.certificate(distributions[-1], [], len(own)).local_token)
            if transcript.is_end(own[-1]):
                return [*distributions, _certain(own[-1], len(distributions[-1]))]
        return distributions

    def _mix(self, distribution: Probs) -> Generator[Any, Any, None]:
        position = self.side.transcript.position

        def heard(line: CloudStream) -> bool:
            return line.end_token is not None or line.proof(position) is not None

        yield from self.until(heard, self.partners(), LONGEST_WAIT)
        for line in self.partners():
            if not heard(line):
                line.lose(LinkError("the cloud is silent"))
        lines = self.partners()
        certificate = self.certificate(distribution, lines, position)
        token, kind, consulted = certificate.local_token, Kind.LOCAL, None
        if lines:
            proofs = {end: line.proof(position) or _over(line, len(distribution)) for end, line in enumerate(lines)}
            mixed, effort = yield from self.decide(certificate, distribution, proofs, lines)
            kind = Kind.CONFIRMED if mixed == token else Kind.CHANGED
            token, consulted = mixed, Consulted(0.0, effort, all(proof.draft == mixed for proof in proofs.values()))
        self.side.transcript.commit(token)
        yield Emit((Emitted(token, kind),), consulted=consulted)


def _over(line: CloudStream, size: int) -> Proof:
    """What a cloud says behind the end of its own answer: it sends nothing there."""
    assert line.end_token is not None
    return Proof(line.end_token, SCORES.codes(_certain(line.end_token, size)))


def _certain(token: int, size: int) -> Probs:
    """The distribution that knows no other token."""
    distribution = np.zeros(size)
    distribution[token] = 1.0
    return distribution


class SequenceCloud(DenseCloud):
    """Writes its own answer to the end."""

    def __init__(self, side: CloudSide, options: MixtureOptions) -> None:
        super().__init__(side, options)
        self._ahead = self._limit


DRDG_SW = Method(
    "drdg-sw",
    "two whole answers, mixed once",
    False,
    SequenceDevice,
    SequenceCloud,
    options=MixtureOptions,
    needs=MIXTURE_NEEDS,
    on_loss=OnLoss.DROP,
)

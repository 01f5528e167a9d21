"""`drdg-sw`: two whole answers, mixed once, position by position (METHODS 4; CONCORD's baseline).

Each end writes its own answer behind its own documents; the cloud sends all scores of all steps of its line, and the device
mixes the two at every position, each behind its own tokens. Not the mixture of METHODS 4: after the first difference the ends
speak of different answers.
"""

from collections.abc import Generator
from typing import Any

from antiphon.core.distributions import Probs
from antiphon.errors import LinkError
from antiphon.methods.base import CloudSide, Method
from antiphon.methods.effects import Consulted, Emit, Emitted, Finish, Half, Kind
from antiphon.methods.evidence import DenseCloud
from antiphon.methods.mixing import MixingDevice
from antiphon.methods.mixture_options import LONGEST_WAIT, MixtureOptions


class SequenceDevice(MixingDevice):
    """Writes its own answer, then mixes."""

    dense = True
    patient = True
    gates = False

    def run(self) -> Half:
        """Write the answer."""
        yield from self.meet()
        laws = yield from self._own()
        for position, law in enumerate(laws):
            if (finish := self.side.transcript.finish) is not None:
                return finish
            yield from self._mix(position, law)
        return self.side.transcript.finish or Finish.END  # the device's own answer ended there

    def _own(self) -> Generator[Any, Any, list[Probs]]:
        """The laws of the device's own answer, to its end."""
        transcript, laws, own = self.side.transcript, list[Probs](), list[int]()
        while len(laws) < transcript.remaining and not (own and transcript.is_end(own[-1])):
            if (found := (yield from self.drafter.law(own))) is None:
                break
            laws.append(found[1])
            own.append(self.certificate(found[1], [], len(own)).local_token)
        return laws

    def _mix(self, position: int, law: Probs) -> Generator[Any, Any, None]:
        yield from self.until(lambda line: line.ended or line.proof(position) is not None, self.partners(), LONGEST_WAIT)
        for line in self.partners():
            if not line.ended and line.proof(position) is None:
                line.lose(LinkError("the cloud is silent"))
        lines = [line for line in self.partners() if line.proof(position) is not None]
        certificate = self.certificate(law, lines, position)
        token, kind, consulted = certificate.local_token, Kind.LOCAL, None
        proofs = {end: proof for end, line in enumerate(lines) if (proof := line.proof(position)) is not None}
        if proofs:
            mixed, effort = yield from self.decide(certificate, law, proofs, lines)
            kind = Kind.CONFIRMED if mixed == token else Kind.CHANGED
            token, consulted = mixed, Consulted(0.0, effort, all(proof.draft == mixed for proof in proofs.values()))
        self.side.transcript.commit(token)
        yield Emit((Emitted(token, kind),), consulted=consulted)


class SequenceCloud(DenseCloud):
    """Writes its own answer to the end."""

    def __init__(self, side: CloudSide, options: MixtureOptions) -> None:
        super().__init__(side, options)
        self._ahead = self._limit


DRDG_SW = Method(
    "drdg-sw", "two whole answers, mixed once", False, SequenceDevice, SequenceCloud, options=MixtureOptions, mixes=True
)

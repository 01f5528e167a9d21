"""The device's half of every method that mixes documents of several ends step by step (METHODS 4).

A step: the device scores it behind its own documents; with the clouds' evidence of the step at hand it decides, else it waits
for it as long as the method has patience, and decides without those that are late: with none of them its own token is it.

A cloud that is lost, silent or wrong ends nothing: the device goes on without it, and alone its tokens are marked as its own.
One whose link was lost takes part again once it is back, in a new session that begins behind the committed tokens.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any

from antiphon.core.distributions import Probs
from antiphon.core.mixture.certificate import Certificate
from antiphon.core.mixture.consult import AskAll, Effort, Question, Questions, Replies, Settled, consult
from antiphon.core.mixture.scores import Codes, Report, Values
from antiphon.errors import AntiphonError, CapacityError, LinkError, ProtocolError, RemoteError
from antiphon.methods.base import DeviceSide
from antiphon.methods.effects import Consulted, Emit, Emitted, Half, Kind, Now, ReceiveAny, Rejoined, Send
from antiphon.methods.mixture.cloud_stream import CloudStream, Proof
from antiphon.methods.mixture.options import LONGEST_WAIT, MixtureOptions
from antiphon.wire.messages import Message
from antiphon.wire.scores import ScoreCodec

MOMENT = 1e-6
"""Seconds that are not worth waiting for: a clock need not see them pass."""

Lines = Sequence[CloudStream]


class MixtureDevice:
    """Decides step by step. Its variants differ in what crosses, and in how long they wait."""

    dense = False
    """Whether all scores cross."""
    patient = False
    """Whether every step waits for its evidence."""
    gates = True
    """Whether a token that no evidence could change is committed at once."""
    lockstep = False
    """Whether a cloud waits for every token."""

    def __init__(self, side: DeviceSide, options: MixtureOptions) -> None:
        if side.drafter is None or side.mixing is None:
            raise ValueError("this method needs a model and a library on the device")
        self.side, self.options, self.mixing, self.drafter = side, options, side.mixing, side.drafter
        if not side.mixing.sampled:
            self.drafter.warm(1.0)  # greedy decisions are made between distributions, not between point masses
        self._codec = ScoreCodec(side.common.target_size, side.common.target_bits)
        self.lines = [self._line(end) for end in range(side.mixing.clouds)]
        self._prepared: tuple[list[int], Probs] | None = None

    @property
    def lossy(self) -> bool:
        """Whether an option has the scores cross with something left out."""
        return False

    def run(self) -> Half:
        """Write the answer."""
        transcript = self.side.transcript
        yield from self._look_ahead([])  # while the clouds read
        yield from self.meet()
        while transcript.finish is None:
            yield from self._step()
        return transcript.finish

    def noise(self, position: int) -> Values | None:
        """The noise that decides when the answer is sampled."""
        return self.side.chance.race(position, self.side.common.cloud_ids).times() if self.mixing.sampled else None

    def local(self, certificate: Certificate, distribution: Probs) -> int:
        """The device's own token."""
        return certificate.local_token

    def decide(
        self, certificate: Certificate, distribution: Probs, proofs: dict[int, Proof], lines: Lines
    ) -> Generator[Any, Any, tuple[int, Effort]]:
        """The token of a step with evidence, and what it took. proofs: by end of the certificate. Raises ProtocolError."""
        if self.dense:
            codes = {end: proof.scores for end, proof in proofs.items() if not isinstance(proof.scores, Report)}
            return certificate.dense(codes), Effort(everything=True)
        for end, proof in proofs.items():
            certificate.absorb(end, _report(proof.scores))
        consultation = consult(certificate, self.options)
        try:
            questions = next(consultation)
            while True:
                replies = yield from self._replies(questions, lines)
                questions = consultation.send(replies)
        except StopIteration as stop:
            settled: Settled = stop.value
        return settled.token, settled.effort

    def meet(self) -> Generator[Any, Any, None]:
        """Hear what the clouds found."""
        yield from self.until(lambda line: line.log_mass is not None, self.lines, LONGEST_WAIT)
        for line in self.lines:
            if line.log_mass is None and line.lost is None:
                line.lose(LinkError("the cloud did not say what it found"))
        refused = next((line.lost for line in self.lines if isinstance(line.lost, RemoteError)), None)
        if refused is not None and not self.partners():
            raise refused

    def _line(self, end: int) -> CloudStream:
        """A cloud's stream of a session that begins behind the committed tokens."""
        # Half of what the cloud may be ahead: told when that is used up, it would wait for the message to arrive.
        interval = 1 if self.lockstep else max(1, self.options.ahead // 2)
        return CloudStream(end, self.side.transcript, self._codec, self.options, dense=self.dense, interval=interval)

    def partners(self) -> list[CloudStream]:
        """The clouds that take part."""
        return [line for line in self.lines if line.takes_part]

    def certificate(self, distribution: Probs, lines: Lines, position: int) -> Certificate:
        """What the device knows of a step; its ends are numbered as in `lines`."""
        masses = [line.log_mass for line in lines if line.log_mass is not None]
        known_only = self.options.certificate == "upper"
        return Certificate(distribution, [self.mixing.log_mass, *masses], self.noise(position), known_only=known_only)

    def _step(self) -> Generator[Any, Any, None]:
        position = self.side.transcript.position
        distribution = yield from self._distribution()
        # What has come already counts, who was lost among it: before it is settled who takes part in the step.
        yield from self._drain()
        lines = self.partners()
        certificate = self.certificate(distribution, lines, position)
        token, kind, consulted = yield from self.chosen(certificate, distribution, lines, position)
        self.side.transcript.commit(token)
        self.drafter.commit([token])
        yield Emit((Emitted(token, kind),), consulted=consulted, exact=self._exact(kind, consulted, lines))
        yield from self._follow(position, token)

    def _exact(self, kind: Kind, consulted: Consulted | None, lines: Lines) -> bool:
        """Whether a token is that of the mixture of all ends: none of them lost or late, nothing of their probs left out."""
        if self.lossy or kind is Kind.LOCAL:
            return False
        heard = len(lines) if consulted is None else consulted.ends
        return heard == len(self.lines) and (kind is not Kind.CERTAIN or self.options.gate >= 1)

    def chosen(
        self, certificate: Certificate, distribution: Probs, lines: Lines, position: int
    ) -> Generator[Any, Any, tuple[int, Kind, Consulted | None]]:
        """The token of a step, where it came from, and what it took."""
        local = self.local(certificate, distribution)
        if not lines:
            return local, Kind.LOCAL, None
        # Before any waiting: the evidence is not needed, whether or not it is here.
        if self.gates and (sure := certificate.certain_alone(self.options.gate)) is not None:
            return sure, Kind.CERTAIN, None
        waited = yield from self._wait(position, local, lines)
        proofs: dict[int, Proof] = {}
        for end, line in enumerate(lines):
            if (proof := line.proof(position)) is None:
                certificate.drop(end)
            else:
                proofs[end] = proof
        if not proofs:
            return local, Kind.LOCAL, Consulted(waited, None)
        token, effort = yield from self.decide(certificate, distribution, proofs, lines)
        present = [end for end in certificate.ends if lines[end].takes_part]  # the others were dropped on the way
        if not present:
            return local, Kind.LOCAL, Consulted(waited, None)
        kind = Kind.CONFIRMED if token == local else Kind.CHANGED
        if self._submits_own(token, local, [proofs[end].draft for end in present]):
            token, kind = local, Kind.LOCAL
        drafted = all(proofs[end].draft == token for end in present)
        # Before the token is committed: `committed` drops the proof that this looks at.
        for end in present:
            lines[end].decided(token, position)
        return token, kind, Consulted(waited, effort, drafted, len(present))

    def _submits_own(self, dense: int, local: int, drafts: Sequence[int]) -> bool:
        """Whether the device's own token is committed though the evidence led to another: CONCORD, algorithm 1.

        Without waiting control there is no such rule.
        """
        return self.options.undrafted == "local" and not self.patient and dense not in (local, *drafts)

    def _wait(self, position: int, local: int, lines: Lines) -> Generator[Any, Any, float]:
        """Until the evidence of the step is there or patience ends; meanwhile the next step is scored. How long it took."""
        started: float = yield Now()
        timeouts = {line.end: self._timeout(line) for line in lines}
        if any(line.proof(position) is None and timeouts[line.end] > 0 for line in lines):
            yield from self._look_ahead([local])
        # Each cloud is waited for as long as its own debt allows, all from one beginning: the shortest waits end first.
        for seconds in sorted(set(timeouts.values())):
            waiting = [line for line in lines if timeouts[line.end] == seconds]
            left = seconds - ((yield Now()) - started)
            yield from self.until(lambda line: line.proof(position) is not None, waiting, left)
        for line in lines:
            if line.proof(position) is None and line.takes_part:
                if self.patient:
                    line.lose(LinkError("the cloud is silent"))
                else:
                    line.timed_out()
        ended: float = yield Now()
        return ended - started

    def _timeout(self, line: CloudStream) -> float:
        return LONGEST_WAIT if self.patient else line.debt.timeout(line.response_time.timeout)

    def until(self, done: Callable[[CloudStream], bool], lines: Lines, seconds: float) -> Generator[Any, Any, None]:
        """Take messages until `done` of each of these clouds that is not lost, for so many seconds at most."""
        until = (yield Now()) + seconds
        # Messages of all clouds come through one inbox, so whatever comes is taken, also from those that nobody waits for.
        while any(line.lost is None and not done(line) for line in lines):
            left = until - (yield Now())
            # Once more with 0 after the time is over: what has come by then was in time.
            if not (yield from self._take_one(max(left, 0.0))) and left <= MOMENT:
                return

    def _drain(self) -> Generator[Any, Any, None]:
        while not all(line.is_gone for line in self.lines) and (yield from self._take_one(0.0)):
            pass

    def _take_one(self, within: float) -> Generator[Any, Any, bool]:
        """Take a message if one comes in time."""
        if (arrived := (yield ReceiveAny(within))) is None:
            return False
        line, message = self.lines[arrived.end], arrived.message
        if not isinstance(message, Rejoined):
            yield from self._take(line, message)
        elif not line.is_gone:
            self.lines[line.end] = self._line(line.end).resume(line)
        return True

    def _take(self, line: CloudStream, message: Message | AntiphonError) -> Generator[Any, Any, None]:
        if line.lost is not None:
            return
        try:
            if isinstance(message, AntiphonError):
                raise message
            line.take(message, (yield Now()))
        except (LinkError, ProtocolError, RemoteError) as error:
            line.lose(error)
        if line.strays:
            yield from self._tell(line, line.realign((yield Now())))
        elif (progress := line.progress()) is not None:
            yield from self._tell(line, progress)  # also where the next step waits for evidence: else the cloud waits too

    def _replies(self, questions: Questions, lines: Lines) -> Generator[Any, Any, Replies]:
        """Ask, and wait for the answers; a cloud that is late, falls silent, or is wrong, gives none."""
        position = self.side.transcript.position
        started: float = yield Now()
        for end, question in questions.items():
            yield from self._tell(lines[end], lines[end].ask(position, self._codec.question(question)))
        for end in questions:
            left = started + self._reply_patience(lines[end]) - (yield Now())
            yield from self.until(lambda line: line.supplement is not None, [lines[end]], left)
        replies: dict[int, Report | Codes] = {}
        for end, question in questions.items():
            try:
                if (reply := self._reply(lines[end], question)) is not None:
                    replies[end] = reply
            except ProtocolError as error:
                lines[end].lose(error)
        return replies

    def _reply_patience(self, line: CloudStream) -> float:
        return LONGEST_WAIT if self.patient else line.response_time.usual

    def _reply(self, line: CloudStream, question: Question) -> Report | Codes | None:
        reply = line.supplement
        if line.lost is not None or reply is None:
            if self.patient:
                line.lose(LinkError("the cloud is silent"))
            elif line.lost is None:
                line.timed_out()
            return None
        if isinstance(question, AskAll):
            return self._codec.read_everything(reply.payload)[0]
        return self._codec.read_report(reply.payload)

    def _follow(self, position: int, token: int) -> Generator[Any, Any, None]:
        """Keep the clouds' lines the device's: say where they are not, and now and then how far it is."""
        for line in self.partners():
            line.committed(token, position)
            if self.side.transcript.finish is not None:
                continue
            if line.strays:
                yield from self._tell(line, line.realign((yield Now())))
            elif (progress := line.progress()) is not None:
                yield from self._tell(line, progress)

    def _tell(self, line: CloudStream, message: Message) -> Generator[Any, Any, None]:
        try:
            yield Send(message, line.end)
        except (LinkError, ProtocolError) as error:
            line.lose(error)

    def _distribution(self) -> Generator[Any, Any, Probs]:
        """The device's own distribution of the next step."""
        prepared, self._prepared = self._prepared, None
        # Scored ahead as if the device's own token were right; of use only if it was.
        if prepared is not None and prepared[0] == self.side.transcript.numbers:
            return prepared[1]
        return (yield from self.scored([]))

    def scored(self, numbers: list[int]) -> Generator[Any, Any, Probs]:
        """The device's own distribution after the committed tokens and these. Raises CapacityError."""
        if (found := (yield from self.drafter.distribution(numbers))) is None:
            raise CapacityError("the device's context is full: ask for fewer tokens or passages, or give --context more")
        return found[1]

    def _look_ahead(self, numbers: list[int]) -> Generator[Any, Any, None]:
        """Score a step before it is due: the first one, or the one after this as if the device's own token were right."""
        if (
            self.side.transcript.remaining > len(numbers)
            and (found := (yield from self.drafter.distribution(numbers))) is not None
        ):
            self._prepared = [*self.side.transcript.numbers, *numbers], found[1]


def _report(scores: Report | Codes) -> Report:
    if not isinstance(scores, Report):
        raise ProtocolError("all scores came where some were due", "out-of-turn")
    return scores

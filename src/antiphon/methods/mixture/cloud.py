"""The cloud's half of every method that mixes documents of both ends: a stream of evidence, ahead of the device (METHODS 4).

The cloud scores step after step on its own drafts, at most `ahead` steps beyond what it knows of the answer, and sends what it
found. Where the device commits another token it says so (`Realign`), under a new epoch: the cloud takes its tokens back to
there and goes on behind the device's; what it sent before under the old epoch is dropped on arrival.
"""

from collections.abc import Generator
from typing import Any

from antiphon.core.chance import Place, Role
from antiphon.core.distributions import Probs
from antiphon.core.mixture.consult import AskAll, AskChunk, AskScores
from antiphon.core.mixture.scores import SCORES, StepScores, Values
from antiphon.errors import ProtocolError
from antiphon.methods.base import CloudMixing, CloudSide
from antiphon.methods.effects import Receive, Send, ServingHalf
from antiphon.methods.mixture.options import MixtureOptions
from antiphon.models.needs import Need
from antiphon.wire.messages import Ask, Evidence, Message, Progress, Realign, Supplement
from antiphon.wire.scores import ScoreCodec

KEPT = 8
"""Steps behind the device's progress whose scores are kept: a question for one may be on its way."""

STEP_BYTES = 10
"""Of a token in the scores of a step (`StepScores`): its code, and its strength."""


def kept_bytes(half: object, options: MixtureOptions, tokens: int, size: int) -> int:
    """Bytes of the scores that a cloud half keeps at most, for answers of so many tokens over a vocabulary of `size`."""
    if not (isinstance(half, type) and issubclass(half, MixtureCloud)) or half.dense:
        return 0
    return (min(options.ahead, tokens) + KEPT + 1) * size * STEP_BYTES


def mixing_of(side: CloudSide) -> CloudMixing:
    """What the cloud found. Raises ValueError without it."""
    if side.mixing is None:
        raise ValueError("a method that mixes documents needs a library")
    return side.mixing


MIXTURE_NEEDS = frozenset({Need.DISTRIBUTIONS, Need.DOCUMENTS})
"""Of a cloud that tells its scores: all of them, behind its own documents."""


class MixtureCloud:
    """Streams evidence until the device has enough: its `Cancel` ends the session."""

    dense = False
    """Whether all scores cross, with the cloud's own draft in front."""

    def __init__(self, side: CloudSide, options: MixtureOptions) -> None:
        self._side, self._options, self._mixing = side, options, mixing_of(side)
        if not self._mixing.sampled:
            side.verifier.warm(1.0)  # greedy decisions are made between distributions, not between point masses
        self._codec = ScoreCodec(side.common.target_size, side.common.target_bits)
        self._epoch = 0
        self._line = list(side.transcript.numbers)  # the answer as the cloud takes it to be
        self._first = len(self._line)  # where it goes on by itself, since the epoch began
        self._known = len(self._line)  # how much of it the device is known to have
        self._limit = side.transcript.position + side.transcript.remaining
        self._scores: dict[int, StepScores] = {}
        self._ahead = options.ahead
        self._began = False  # the prompt was read: it is never given up

    def run(self) -> ServingHalf:
        """Work ahead, answer, follow."""
        yield Send(self._mixing.retrieved())  # the prompt is read with the first step
        while True:
            # Messages before passes: a pass behind a token that the device has changed would be thrown away.
            message = yield Receive(0.0 if self._may_step() else None)
            if message is None:
                yield from self._step()
            else:
                yield from self._handle(message)

    def draft(self, distribution: Probs, scores: StepScores, step: int) -> int:
        """The cloud's own token of a step."""
        return scores.draft

    def distribution(self, distribution: Probs) -> Probs:
        """What the cloud's distribution is taken to be, before it is rounded to what the wire can carry."""
        return distribution

    def noise(self, step: int) -> Values | None:
        """The noise that decides when the answer is sampled."""
        return self._side.chance.race(step, self._side.common.cloud_ids).times() if self._mixing.sampled else None

    def _may_step(self) -> bool:
        ended = bool(self._line) and self._side.transcript.is_end(self._line[-1])
        return len(self._line) < min(self._known + self._ahead, self._limit) and not ended

    def _step(self) -> Generator[Any, Any, None]:
        step, verifier = len(self._line), self._side.verifier
        # Only `Realign` makes the pass useless; a question or word of progress can wait for its end.
        targets = yield from verifier.score_next(Realign if self._began else None)
        if targets is None:
            return  # the device has another token: nothing of this line is of use any more
        self._began = True
        distribution = self.distribution(targets.at(0).probs)
        scores = StepScores(distribution, self.noise(step), self._options.bound)
        if not self.dense:  # else everything crosses at once, and nothing is asked for
            self._scores[step] = scores
        draft = self.draft(distribution, scores, step)
        yield Send(Evidence(self._epoch, step, self._evidence(scores, draft)))
        self._line.append(draft)
        verifier.commit([draft])

    def _evidence(self, scores: StepScores, draft: int) -> bytes:
        if self.dense:
            return self._codec.everything(scores.codes, draft)
        return self._codec.report(scores.strongest(self._options.first, self._options.min_share))

    def _handle(self, message: Message) -> Generator[Any, Any, None]:
        match message:
            case Progress(step):
                self._require(step <= len(self._line), f"progress to token {step} of {len(self._line)}")
                self._know(step)
            case Realign():
                self._realign(message)
            case Ask():
                yield from self._answer(message)
            case _:
                raise ProtocolError(f"{type(message).__name__} came in a stream of evidence", "out-of-turn")

    def _realign(self, message: Realign) -> None:
        self._require(message.epoch == self._epoch + 1, f"epoch {message.epoch} came after {self._epoch}")
        fits = message.step <= len(self._line) and message.step + message.count <= self._limit
        self._require(fits, f"{message.count} tokens came for step {message.step} of {len(self._line)}")
        tokens = self._codec.read_tokens(message.payload, message.count)
        self._epoch = message.epoch
        # First back, then forward: the cache is rewound to what both lines share, and no further.
        if dropped := len(self._line) - message.step:
            self._side.verifier.take_back(dropped)
        self._side.verifier.commit(tokens)
        self._line[message.step :] = tokens
        self._first = len(self._line)
        # From that step on they are scores behind other tokens.
        self._scores = {step: scores for step, scores in self._scores.items() if step < message.step}
        self._know(len(self._line))

    def _know(self, step: int) -> None:
        self._known = max(self._known, step)
        # A step's scores are megabytes with a real vocabulary: what the device is past is not kept, but for a question on its
        # way.
        self._scores = {place: scores for place, scores in self._scores.items() if place >= self._known - KEPT}

    def _answer(self, ask: Ask) -> Generator[Any, Any, None]:
        if ask.epoch != self._epoch:
            return  # the device has moved on, or will see that the answer is of another line
        scores = self._scores.get(ask.step)
        if scores is None:
            raise ProtocolError(f"scores of step {ask.step} were asked for, which are not kept", "out-of-range")
        match self._codec.read_question(ask.payload):
            case AskScores(tokens):
                payload = self._codec.report(scores.of(tokens))
            case AskChunk(count):
                payload = self._codec.report(scores.chunk(count))
            case AskAll():
                payload = self._codec.everything(scores.codes)
        yield Send(Supplement(ask.epoch, ask.step, payload))

    def _require(self, condition: bool, sentence: str) -> None:
        if not condition:
            raise ProtocolError(sentence, "out-of-turn")


class DenseCloud(MixtureCloud):
    """Sends all scores of every step."""

    dense = True


class LockstepCloud(DenseCloud):
    """Waits for the device's token before every step."""

    def __init__(self, side: CloudSide, options: MixtureOptions) -> None:
        super().__init__(side, options)
        self._ahead = 1


class DraftingCloud(DenseCloud):
    """Draws its drafts when the answer is sampled, from a distribution that may be truncated (DRAGON)."""

    def noise(self, step: int) -> Values | None:
        """None is shared."""
        return None

    def draft(self, distribution: Probs, scores: StepScores, step: int) -> int:
        """Greedy the strongest; sampled a draw from the decoded distribution."""
        if not self._mixing.sampled:
            return scores.draft
        decoded = SCORES.values(scores.codes)
        place = Place(self._first, step - self._first)
        return self._side.chance.at(place, Role.TARGET).categorical(decoded / decoded.sum())

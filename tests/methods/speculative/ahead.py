"""Answers drafted ahead, and verifiers that see in which order things come."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.core.distributions import Logits
from antiphon.core.stream import LOCKSTEP
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.base import CloudSide, Transcript
from antiphon.methods.drafter import Guess
from antiphon.methods.effects import Came, Effect, Half, Now, Receive, Send, Step
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.methods.speculative.stream.cloud import CoupledCloud
from antiphon.methods.speculative.stream.pace import Pace
from antiphon.methods.verifier import Verifier
from antiphon.models.toy import ToyModel
from antiphon.options import NoOptions
from antiphon.testing.distributions import SHARED, Pair
from antiphon.vocabulary import identity
from antiphon.wire.messages import Draft, Message, Progress, Verdict
from antiphon.wire.packing import Writer

PLAIN = SamplingParams(temperature=1.0)


def reference(pair: Pair, sampling: SamplingParams, chance: PhiloxChance, tokens: int) -> list[int]:
    """The numbers that `cloud` commits."""
    _, side = pair.sides(tokens, sampling, chance)
    half: Any = WITHOUT_DOCUMENTS["cloud"].cloud
    steps = half(side, NoOptions()).run()
    answer: Any = None
    while side.transcript.finish is None:
        effect = steps.send(answer)
        answer = effect.run() if isinstance(effect, Step) else None
    return side.transcript.numbers


class Running:
    """A half under way, as far as it gets without a message."""

    def __init__(self, half: Half, inbox: deque[Message], outbox: deque[Message]) -> None:
        self._half, self._inbox, self._outbox = half, inbox, outbox
        self._effect: Effect | None = half.send(None)
        self._time = 0.0

    @property
    def over(self) -> bool:
        return self._effect is None

    @property
    def able(self) -> bool:
        """Whether it could go on now."""
        blocked = isinstance(self._effect, Receive) and self._effect.within is None and not self._inbox
        return not self.over and not blocked

    def go_on(self, late: bool) -> None:
        """One effect; if it need not have a message yet and they are `late`, it gets none."""
        answer: Any = None
        match self._effect:
            case Step():
                answer = self._effect.run()
            case Send(message):
                self._outbox.append(message)
            case Receive(within) if self._inbox and not (within is not None and late):
                answer = self._inbox.popleft()
            case Now() | Came():
                answer = self._time = self._time + 1.0
        try:
            self._effect = self._half.send(answer)
        except StopIteration:
            self._effect = None

    def as_far_as_it_gets(self) -> None:
        """Until it must have a message that is not there, or is over."""
        while self.able:
            self.go_on(late=False)


class Eager(Pace):
    """Drafts as far as there is room, and sends each draft at once, whatever it has learned."""

    def pays(self, line: Sequence[Guess], now: float, next: Guess | None) -> bool:
        return True

    def must_leave(self, drafts: int, now: float) -> bool:
        return True


class Alike(ToyModel):
    """Says the same token nearly always, so that drafts made for another place are seldom wrong by themselves."""

    def logits(self, tokens: Sequence[int]) -> Logits:
        plain = super().logits(tokens)
        return (plain + np.array([3.0, 0.0, -4.0])).astype(np.float32)


def alike() -> Pair:
    pair = Pair(SHARED, SHARED)
    pair.device, pair.cloud = Alike(SHARED, seed=1, sharpness=1.0), Alike(SHARED, seed=2, sharpness=1.0)
    return pair


class Script(ToyModel):
    """Says one text, whatever stands before; the prompt has one token."""

    def __init__(self, text: str) -> None:
        super().__init__(SHARED)
        self._text = text

    def logits(self, tokens: Sequence[int]) -> Logits:
        row = np.zeros(len(SHARED), dtype=np.float32)
        row["ab.".index((self._text + "." * len(tokens))[len(tokens) - 1])] = 50.0
        return row


GREEDY = SamplingParams(temperature=0.0)


class Fed:
    """A cloud half, and what it says to what it is sent."""

    def __init__(self, side: CloudSide, options: CoupledOptions) -> None:
        self.side = side
        self.unwanted = 0  # times that it said so of drafts
        self.verdicts: list[Verdict] = []
        self.finished = self.waits = False
        self.within: float | None = None
        """What it would wait for a message now, in seconds."""
        self.time = 0.0
        self._half = CoupledCloud(side, options).run()
        self._run(None)

    @classmethod
    def of(
        cls, text: str, draft_length: int = 3, ahead: int = 3, tokens: int = 12, patience: float = LOCKSTEP, **more: Any
    ) -> "Fed":
        """One whose answer is `text`: `a`, `b`, and `.` for the end. more: of its side."""
        model = Script(text)
        common = identity(model.vocabulary)
        verifier = Verifier(model.open(), [0], common, GREEDY)
        side = CloudSide(common, Transcript(common.ends, tokens), PhiloxChance(1), verifier, **more)
        return cls(side, CoupledOptions(draft_length, ahead, patience))

    def send(self, epoch: int, text: str) -> None:
        """Drafts, alone: the half then gets nothing more until it waits."""
        self.give(self.draft(epoch, ["ab.".index(letter) for letter in text]))
        while not (self.waits or self.finished):
            self.give(None)

    def draft(self, epoch: int, numbers: Sequence[int]) -> Draft:
        writer = Writer()
        for number in numbers:
            writer.number(number, self.side.common.common_bits)
        return Draft(epoch, len(numbers), writer.finish())

    def give(self, message: Message | None) -> None:
        """Answer what it asks for: a message, or that none has come (only if it can do without)."""
        assert message is not None or not self.waits
        self._run(message)

    def _run(self, answer: Any) -> None:
        try:
            while not isinstance(effect := self._half.send(answer), Receive):
                answer = None
                match effect:
                    case Step():
                        answer = effect.run()
                    case Now() | Came():
                        answer = self.time
                    case Send(message):
                        if isinstance(message, Progress):
                            self.unwanted += 1
                            continue
                        assert isinstance(message, Verdict)
                        self.verdicts.append(message)
            self.within, self.waits = effect.within, effect.within is None
        except StopIteration:
            self.finished = True

    @property
    def text(self) -> str:
        return "".join("ab."[number] for number in self.side.transcript.numbers)

    @property
    def told(self) -> list[tuple[int, int]]:
        """How many messages were heard before each verdict, and how many drafts it accepts."""
        return [(verdict.round, verdict.accepted) for verdict in self.verdicts]

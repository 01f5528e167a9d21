"""Answers drafted ahead, and verifiers that see in which order things come."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.core.distributions import Logits
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.drafter import Guess
from antiphon.methods.effects import Came, Effect, Half, Now, Receive, Send, Step
from antiphon.methods.speculative.stream.pace import Pace
from antiphon.models.toy import ToyModel
from antiphon.options import NoOptions
from antiphon.testing.distributions import SHARED, Pair
from antiphon.wire.messages import Message

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

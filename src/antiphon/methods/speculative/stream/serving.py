"""The cloud's half of every coupled method: it takes what has come, answers, and goes on (METHODS 3, *Stream*).

A method says how it takes drafts, how many are there, and what a pass over them gives.
"""

from collections.abc import Generator
from typing import Any

from antiphon.core.stream import RUN_AHEAD
from antiphon.errors import ProtocolError
from antiphon.methods.base import CloudSide
from antiphon.methods.effects import Came, Now, Receive, Send, ServingHalf
from antiphon.methods.speculative.options import InStream
from antiphon.methods.speculative.stream.patience import Pacing
from antiphon.wire.messages import Draft, Message, Progress


class StreamCloud:
    """What is known of the device, and when to go on."""

    def __init__(self, side: CloudSide, options: InStream, pacing: Pacing) -> None:
        self.side = side
        self._pacing = pacing
        self._run_ahead = None if options.lockstep else RUN_AHEAD
        self._begins = [side.transcript.position]  # where an epoch begins that knows so many verdicts
        self._sent_at: list[float] = []  # when each verdict was sent
        self._known = side.transcript.position  # of the answer, as far as the device is known to have it
        self._heard = 0  # messages

    @property
    def there(self) -> int:
        """Drafts, or levels of a tree, that a pass could read now."""
        raise NotImplementedError

    def take_drafts(self, message: Draft, now: float) -> None:
        """Take drafts that came. Raises ProtocolError."""
        raise NotImplementedError

    def answer(self) -> Generator[Any, Any, None]:
        """Make a pass, and send its verdict."""
        raise NotImplementedError

    def run(self) -> ServingHalf:
        """Test what has come, answer, and go on."""
        yield from self.side.verifier.prefill()
        while (finish := self.side.transcript.finish) is None:
            # Everything that has come, and what it pays to wait for.
            while (message := (yield Receive(self._within((yield Now()))))) is not None:
                self._take(message, (yield Came()))
            yield from self.answer()
            self._sent_at.append((yield Now()))
            if self.side.transcript.finish is None and self._pacing.unwanted():
                yield Send(Progress(self.side.transcript.position))
        return finish

    def _within(self, now: float) -> float | None:
        if self._run_ahead is not None and self.side.transcript.position - self._known >= self._run_ahead:
            return None
        return self._pacing.within(self.there, self._sent_at[-1] if self._sent_at else now, now)

    def _take(self, message: Message, now: float) -> None:
        self._heard += 1
        match message:
            case Draft():
                self.take_drafts(message, now)
            case Progress(step):
                if step > self.side.transcript.position:
                    raise ProtocolError(f"the answer has {self.side.transcript.position} tokens, not {step}", "out-of-range")
                self._known = max(self._known, step)
            case _:
                raise ProtocolError(f"{type(message).__name__} came where drafts were due", "out-of-turn")

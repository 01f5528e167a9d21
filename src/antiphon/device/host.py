"""What carries out a device half: its model's thread, its sessions with clouds, and the answer that grows."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from antiphon.core.distributions import Logits
from antiphon.device.answer import Answer, Piece
from antiphon.device.session import DeviceSession, arriving, understood
from antiphon.engine.worker import Worker
from antiphon.errors import ProtocolError
from antiphon.methods.drive import drive
from antiphon.methods.effects import Arrived, Emit, Finish, Half, Step
from antiphon.transport.frames import next_within
from antiphon.wire.messages import Message

Result = TypeVar("Result")

Show = Callable[[Sequence[Piece]], None]
"""Called once a round with the text that it brought, perhaps none yet."""


class _StopString(Exception):  # noqa: N818 - it is no error
    """A stop string came: the answer is over, whatever the method still plans."""


class Host:
    """Carries out what a device half asks for."""

    def __init__(self, worker: Worker, answer: Answer, show: Show) -> None:
        self._worker = worker
        self._answer, self._show = answer, show
        self.begin()

    def begin(self) -> None:
        """Forget the sessions: new ones are opened."""
        self.sessions: list[DeviceSession] = []
        self.inbox = arriving()
        """Where messages of all sessions meet."""

    async def compute(self, call: Callable[[], Result]) -> Result:
        """Run a call in the model's thread."""
        return await self._worker.run(call)

    def step(self, step: Step) -> Logits:
        """Run a pass."""
        return self._worker.timed(step.run, len(step.tokens), step.keep + len(step.tokens))[0]

    async def send(self, message: Message, to: int) -> None:
        """Send to a cloud."""
        await self._linked(to).send(message)

    async def receive(self, within: float | None) -> Message | None:
        """The next message of the one cloud."""
        return await self._linked(0).receive(within)

    async def receive_any(self, within: float | None) -> Arrived | None:
        """The next message of any cloud; the sessions share `inbox` then."""
        item = await next_within(self.inbox, within)
        return None if item is None else Arrived(item[0], understood(item[1]))

    def now(self) -> float:
        """The time in seconds."""
        return now()

    async def emit(self, emit: Emit) -> None:
        """Add to the answer, and show it."""
        self._show(self._answer.take(emit, now()))
        if self._answer.stopped:
            raise _StopString

    def finish(self, finish: Finish) -> Finish:
        """Show what was held back. Why the answer ended: perhaps at a stop string that was found only now."""
        if pieces := self._answer.end():
            self._show(pieces)
        return Finish.STOP if self._answer.stopped else finish

    def _linked(self, end: int) -> DeviceSession:
        if end >= len(self.sessions):
            raise ProtocolError("a method without a cloud half sends and receives nothing")
        return self.sessions[end]


async def run_half(half: Half, host: Host) -> Finish:
    """Run a half to its end, or to a stop string."""
    try:
        finish = await drive(half, host)
    except _StopString:
        return Finish.STOP
    return host.finish(finish)


def now() -> float:
    """The running loop's time in seconds."""
    return asyncio.get_running_loop().time()

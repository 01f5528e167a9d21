"""One session of a connection in the cloud: what arrives for it, what its half asks for, and what it has cost."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from antiphon.cloud.records import Record, is_recorded
from antiphon.cloud.service import Answering
from antiphon.core.distributions import Logits
from antiphon.core.pass_costs import PassCosts
from antiphon.engine.worker import Worker
from antiphon.errors import ProtocolError
from antiphon.methods.effects import Step
from antiphon.models.base import Stop
from antiphon.transport.frames import Inbox, next_within
from antiphon.wire import messages as m
from antiphon.wire.session import Received

MESSAGES_IN_FLIGHT = 64
"""Messages of one session that may wait to be read, of the bytes of one frame together; a device in lockstep never has more
than two."""

Computed = TypeVar("Computed")


class Carrier(Protocol):
    """What a session needs of its connection."""

    idle_seconds: float
    frame_bytes: int

    @property
    def worker(self) -> Worker:
        """The model's thread."""
        ...

    @property
    def costs(self) -> PassCosts:
        """What its passes cost."""
        ...

    async def send(self, message: m.Message, session: int = 0) -> None:
        """Send a message of this end."""
        ...


class _Yielding:
    """A pass under way that gives way to a kind of message."""

    def __init__(self, to: type[m.Message] | None) -> None:
        self._to, self.stop, self.told = to, Stop(), asyncio.Event()

    def hear(self, message: m.Message) -> None:
        """Give up if it is for this message."""
        if self._to is not None and isinstance(message, self._to):
            self.give_up()

    def give_up(self) -> None:
        self.stop.set()
        self.told.set()


class SessionHost:
    """One session: its inbox, its costs, and what its cloud half asks for."""

    def __init__(self, connection: Carrier, session: int) -> None:
        self.session = session
        self.task: asyncio.Task[None] | None = None
        self.passes = 0
        self.compute_ms = 0.0
        self.record = Record()
        """Its passes, but for those that were given up."""
        self.answering: Answering | None = None
        self._yielding: _Yielding | None = None
        self._connection = connection
        self._inbox: Inbox[m.Message] = Inbox(MESSAGES_IN_FLIGHT, connection.frame_bytes)

    def last_word(self, reason: str) -> m.Closed:
        """What the device is told at the end."""
        answering = self.answering
        shared, rounding = (False, 0.0) if answering is None else (answering.shared, answering.verifier.rounding)
        # Sums and differences of floats may lie a last digit outside of what they can be.
        return m.Closed(reason, self.passes, max(0.0, self.compute_ms), shared, min(1.0, rounding))

    def deliver(self, received: Received) -> None:
        """Take a message of the device half. Raises ProtocolError if too many wait."""
        self._inbox.offer(received.message, received.size)
        if self._yielding is not None:
            # Before the half reads it: the half waits for the very pass that this ends.
            self._yielding.hear(received.message)

    async def compute(self, call: Callable[[], Computed]) -> Computed:
        """Run a call in the model's thread, when its turn has come."""
        return await self._connection.worker.run(call)

    def step(self, step: Step) -> Logits:
        """Run a pass; those that score something are counted."""
        return self._counted(step, step.run)

    async def preemptible(self, step: Step) -> Logits | None:
        """Run a pass when its turn has come, unless what it gives way to comes before it is over."""
        self._yielding = yielding = _Yielding(step.gives_way)

        def call() -> Logits | None:
            return self._counted(step, partial(step.run_unless, yielding.stop))

        try:
            logits, unspent = await self._connection.worker.preemptible(call, yielding.told)
        finally:
            yielding.give_up()  # where the session was cancelled, its pass need not go on
            self._yielding = None
        self.compute_ms -= 1000 * unspent
        return logits

    def _counted(self, step: Step, forward: Callable[[], Computed]) -> Computed:
        width = len(step.tokens)
        logits, seconds = self._connection.worker.timed(forward, width, step.keep + width)
        if step.rows > 0:
            self.passes += 1
            self._connection.costs.observe(width, seconds)
        self.compute_ms += 1000 * seconds
        if logits is not None and self.answering is not None and is_recorded(self.answering.method):
            self.record.add(step)
        return logits

    async def send(self, message: m.Message) -> None:
        """Send to the device half."""
        await self._connection.send(message, self.session)

    async def receive(self, within: float | None) -> m.Message | None:
        """The next message of the device half; None if none came in so many seconds.

        Raises ProtocolError if it is silent for too long: others wait for room.
        """
        seconds = self._connection.idle_seconds
        message = await next_within(self._inbox, seconds if within is None else within)
        if message is None and within is None:
            raise ProtocolError(f"the device was silent for {seconds:g} s, so its session is over", "timeout")
        return message

    def came(self) -> float:
        """When the message that was received last had arrived."""
        return self._inbox.came

    def now(self) -> float:
        """The time in seconds."""
        return asyncio.get_running_loop().time()

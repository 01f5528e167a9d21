"""Both halves of a method in one process, in lockstep, without a link: for tests, examples and exact enumeration."""

import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

from antiphon.core.distributions import Logits
from antiphon.errors import LinkError
from antiphon.methods.drive import drive, serve
from antiphon.methods.effects import Arrived, Emit, Emitted, Finish, Half, Provisional, ServingHalf, Step
from antiphon.wire.messages import Message

Result = TypeVar("Result")


class _Host:
    """Carries out at once what both halves may ask for; waiting for a message hands over to the other half."""

    def __init__(self, inbox: deque[Message], outbox: deque[Message]) -> None:
        self._inbox, self._outbox = inbox, outbox
        self.waits = False
        """Whether it waits for a message as long as it takes."""

    async def compute(self, call: Callable[[], Result]) -> Result:
        return call()

    def step(self, step: Step) -> Logits:
        return step.run()

    async def send(self, message: Message, to: int = 0) -> None:
        self._outbox.append(message)

    async def receive(self, within: float | None) -> Message | None:
        self.waits = within is None
        while not self._inbox:
            await _pause()
            # A look that finds nothing still hands over once, or two halves that only look would never let each other speak.
            if not self.waits:
                break
        return self._inbox.popleft() if self._inbox else None

    def now(self) -> float:
        return 0.0

    def came(self) -> float:
        return 0.0


class _DeviceHost(_Host):
    """Has the one cloud, and keeps what is shown."""

    def __init__(self, inbox: deque[Message], outbox: deque[Message]) -> None:
        super().__init__(inbox, outbox)
        self.emitted: list[Emitted] = []

    async def receive_any(self, within: float | None) -> Arrived | None:
        message = await self.receive(within)
        return None if message is None else Arrived(0, message)

    async def emit(self, emit: Emit) -> None:
        self.emitted += emit.tokens

    async def propose(self, provisional: Provisional) -> None:
        """Nobody reads along."""


class _CloudHost(_Host):
    """Has time for every pass."""

    async def preemptible(self, step: Step) -> Logits | None:
        return step.run()


@types.coroutine
def _pause() -> Generator[None, None, None]:
    yield


def run_pair(device: Half, cloud: ServingHalf | None) -> list[Emitted]:
    """The tokens that the two halves commit. Raises LinkError if they wait for each other for ever."""
    up: deque[Message] = deque()
    down: deque[Message] = deque()
    host = _DeviceHost(down, up)
    runs: list[tuple[_Host, Coroutine[Any, Any, Finish]]] = [(host, drive(device, host))]
    if cloud is not None:
        other = _CloudHost(up, down)
        runs.append((other, serve(cloud, other)))
    try:
        while runs:
            runs = [(one, run) for one, run in runs if _advance(run)]
            if not up and all(one.waits for one, _ in runs):
                if not any(one is host for one, _ in runs):
                    break  # a cloud half that a device ends by cancelling
                if not down:
                    raise LinkError("the halves wait for each other")
    finally:
        for _, run in runs:
            run.close()
    return host.emitted


def _advance(run: Coroutine[Any, Any, Finish]) -> bool:
    """Run until it waits (True) or ends (False)."""
    try:
        run.send(None)
    except StopIteration:
        return False
    return True

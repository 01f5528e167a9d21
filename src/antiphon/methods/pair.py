"""Both halves of a method in one process, in lockstep, without a link: for tests, examples and exact enumeration."""

import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from antiphon.core.distributions import Logits
from antiphon.errors import LinkError
from antiphon.methods.effects import Effect, Emit, Emitted, Finish, Half, Step, drive
from antiphon.wire.messages import Message


class _Host:
    """Carries out one half's effects at once; waiting for a message hands over to the other half."""

    def __init__(self, inbox: deque[Message], outbox: deque[Message]) -> None:
        self._inbox, self._outbox = inbox, outbox
        self.emitted: list[Emitted] = []

    async def compute(self, call: Callable[[], Effect | Finish]) -> Effect | Finish:
        return call()

    def step(self, step: Step) -> Logits:
        return step.run()

    async def send(self, message: Message) -> None:
        self._outbox.append(message)

    async def receive(self) -> Message:
        while not self._inbox:
            await _pause()
        return self._inbox.popleft()

    async def emit(self, emit: Emit) -> None:
        self.emitted += emit.tokens


@types.coroutine
def _pause() -> Generator[None, None, None]:
    yield


def run_pair(device: Half, cloud: Half | None) -> list[Emitted]:
    """The tokens that the two halves commit. Raises LinkError if they wait for each other for ever."""
    up: deque[Message] = deque()
    down: deque[Message] = deque()
    host = _Host(down, up)
    runs: list[Coroutine[Any, Any, Finish]] = [drive(device, host)]
    if cloud is not None:
        runs.append(drive(cloud, _Host(up, down)))
    try:
        while runs:
            runs = [run for run in runs if _advance(run)]
            if runs and not up and not down:
                raise LinkError("the halves wait for each other")
    finally:
        for run in runs:
            run.close()
    return host.emitted


def _advance(run: Coroutine[Any, Any, Finish]) -> bool:
    """Run until it waits (True) or ends (False)."""
    try:
        run.send(None)
    except StopIteration:
        return False
    return True

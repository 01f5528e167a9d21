"""Virtual time: the code of real time, on a clock that jumps to the next event (docs/architecture.md#time).

Work is really done, and takes no time of its own: only timers do, and what a `VirtualWorker` charges for forward passes. Two
runs give the same timeline. Nothing here can wait for sockets, processes or threads.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from antiphon.engine.worker import Worker

Result = TypeVar("Result")

Cost = Callable[[int, int], float]
"""Seconds of a forward pass, from its tokens and the tokens that its context then holds."""


class Deadlock(RuntimeError):  # noqa: N818 - the word says it
    """Everything waits, and nothing is due to happen."""


class _Jump(selectors.BaseSelector):
    """A selector that never waits: it moves the clock instead."""

    def __init__(self) -> None:
        self.now = 0.0
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, fileobj if isinstance(fileobj, int) else fileobj.fileno(), events, data)
        self._keys[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Deadlock("everything waits, and nothing is due to happen")
        self.now += max(timeout, 0.0)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is a number."""

    def __init__(self) -> None:
        self._clock = _Jump()
        super().__init__(self._clock)

    def time(self) -> float:
        """Seconds since the loop began."""
        return self._clock.now


def run_virtual(main: Coroutine[Any, Any, Result]) -> Result:
    """`asyncio.run` in virtual time. Raises Deadlock if everything waits."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


class VirtualWorker(Worker):
    """A model's thread in virtual time: calls run at once, then the clock is charged what their forward passes cost."""

    def __init__(self, cost: Cost, search_seconds: float = 0.0) -> None:
        self._cost, self._search_seconds = cost, search_seconds
        self._charged = 0.0
        self._turn = asyncio.Lock()

    async def run(self, call: Callable[[], Result]) -> Result:
        """The result of `call`, once its turn has come and its forward passes are paid for."""
        async with self._turn:
            self._charged = 0.0
            try:
                return call()
            finally:
                await asyncio.sleep(self._charged)

    def post(self, call: Callable[[], object]) -> None:
        """Run `call`: here every call before it was run when it was made."""
        call()

    async def preemptible(self, call: Callable[[], Result | None], told: asyncio.Event) -> tuple[Result | None, float]:
        """The result of `call`, or None where `told` is set before it is paid for; and what is left to pay then."""
        async with self._turn:
            self._charged, loop = 0.0, asyncio.get_running_loop()
            result = call()
            due = loop.time() + self._charged
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await told.wait()
                return None, due - loop.time()
            return result, 0.0

    def timed(self, forward: Callable[[], Result], width: int, length: int) -> tuple[Result, float]:
        """A forward pass, and what is charged for it."""
        seconds = self._cost(width, length)
        self._charged += seconds
        return forward(), seconds

    def searched(self, search: Callable[[], Result]) -> Result:
        """A search, and what is charged for it."""
        self._charged += self._search_seconds
        return search()

    def close(self) -> None:
        """There is no thread to end."""

"""The one thread that a model computes in, so that an event loop never blocks on a forward pass."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


class Worker:
    """Runs calls one after the other, in the order in which they came."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model")

    async def run(self, call: Callable[[], Result]) -> Result:
        """The result of `call`, once its turn has come. If the caller is cancelled, a call under way still ends."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    async def preemptible(self, call: Callable[[], Result | None], told: asyncio.Event) -> tuple[Result | None, float]:
        """The result of `call`, and the seconds of a pass that were charged and not spent: none in real time.

        A call that is to end early when `told` is set, with None, sees to that itself.
        """
        return await self.run(call), 0.0

    def timed(self, forward: Callable[[], Result], width: int, length: int) -> tuple[Result, float]:
        """A forward pass of `width` tokens that ends at `length` of them, and its seconds; called within `run`."""
        started = time.perf_counter()
        return forward(), time.perf_counter() - started

    def searched(self, search: Callable[[], Result]) -> Result:
        """A search in a library; called within `run`."""
        return search()

    def close(self) -> None:
        """Wait for the call under way, drop the rest."""
        self._executor.shutdown(cancel_futures=True)

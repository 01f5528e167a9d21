"""The one thread that a model computes in, so that an event loop never blocks on a forward pass."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol, TypeVar

Result = TypeVar("Result")


class _Closable(Protocol):
    def close(self) -> None: ...


Held = TypeVar("Held", bound=_Closable)

log = logging.getLogger(__name__)


class Worker:
    """Runs calls one after the other, in the order in which they came."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model")
        self._asked: set[Future[Any]] = set()

    async def run(self, call: Callable[[], Result]) -> Result:
        """The result of `call`, once its turn has come. If the caller is cancelled, a call under way still ends."""
        future = self._executor.submit(call)
        self._asked.add(future)
        future.add_done_callback(self._asked.discard)
        return await asyncio.wrap_future(future)

    def post(self, call: Callable[[], object]) -> None:
        """Run `call` in its turn, whatever becomes of whoever asks: no cancellation takes it back. What it raises is logged."""
        with suppress(RuntimeError):  # the thread has ended, and what lived in it with it
            self._executor.submit(call).add_done_callback(_log_fault)

    @asynccontextmanager
    async def holding(self, open_one: Callable[[], Held]) -> AsyncIterator[Held]:
        """What `open_one` gives in the model's thread; it is closed there at the end, however that comes.

        A caller that is cancelled while it waits for its turn, or during it, keeps nothing: closing comes behind opening.
        """
        held: list[Held] = []

        def opened() -> Held:
            held.append(open_one())
            return held[0]

        try:
            yield await self.run(opened)
        finally:
            # Posted and not awaited: a caller that is being cancelled could be cancelled again while it waits, and the context
            # would stay open.
            self.post(lambda: [one.close() for one in held])

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
        """Wait for the call under way and for what was posted, drop the rest."""
        # Those under way cannot be cancelled and are waited for: memory of the model must not be freed under a pass.
        for future in list(self._asked):
            future.cancel()
        self._executor.shutdown()


def _log_fault(done: "Future[object]") -> None:
    if not done.cancelled() and (fault := done.exception()) is not None:
        log.error("a call in the model's thread failed", exc_info=fault)

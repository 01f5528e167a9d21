"""An answer piece by piece, while it is written; whoever stops to read ends it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self

from antiphon.device.answer import Piece, Result
from antiphon.device.runner import Show
from antiphon.errors import UsageError

Write = Callable[[Show], Awaitable[Result]]
"""Writes the answer, and shows it as it comes."""


class Stream(AsyncIterator[Piece]):
    """The pieces of one answer, each as soon as it is there; `result` is the whole once they are over.

    The answer begins with the first piece that is asked for. Leaving the loop before its end ends the answer and frees what
    it held, here and in its clouds: at once with `aclose()` or at the end of an `async with` block, else when Python lets go of
    it.
    What goes wrong is raised where the next piece is asked for.
    """

    def __init__(self, write: Write) -> None:
        self._results: list[Result] = []
        self._pieces = _pieces(write, self._results)

    async def __anext__(self) -> Piece:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """End the answer, if it is not over, and wait until nothing of it is left."""
        await self._pieces.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def result(self) -> Result:
        """The answer and its figures. Raises UsageError while there are pieces to come, and where the loop was left before."""
        if not self._results:
            raise UsageError("the answer is not over: read its pieces to the end, then ask for the result")
        return self._results[0]


async def _pieces(write: Write, results: list[Result]) -> AsyncGenerator[Piece, None]:
    """The pieces of an answer that is written meanwhile; its result goes to `results`."""
    ready: asyncio.Queue[Piece | None] = asyncio.Queue()

    def show(pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            ready.put_nowait(piece)

    writing = asyncio.ensure_future(write(show))
    # Also where it failed: else whoever waits for the next piece would wait for ever.
    writing.add_done_callback(lambda _: ready.put_nowait(None))
    try:
        while (piece := await ready.get()) is not None:
            yield piece
        if writing.cancelled():
            raise UsageError("the device was closed before the answer was over: keep it open as long as its streams")
        results.append(await writing)
    finally:
        # Whoever left the loop wants no more of it, and the clouds must hear of that: waited for, so that nothing is left when
        # this ends.
        writing.cancel()
        await asyncio.wait([writing])

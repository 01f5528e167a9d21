"""What answers under way at the same time share, so that one more waits instead of taking it from them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Room:
    """So much of something. Who does not fit beside the others waits for them, in the order in which they came."""

    def __init__(self) -> None:
        self._taken = 0
        self._queue, self._left = asyncio.Lock(), asyncio.Event()

    @asynccontextmanager
    async def holding(self, amount: int, whole: int) -> AsyncIterator[None]:
        """Take `amount` of `whole`, which others may have begun to take; alone, one may take more than there is."""
        async with self._queue:
            while self._taken and self._taken + amount > whole:
                self._left.clear()
                await self._left.wait()
            self._taken += amount
        try:
            yield
        finally:
            self._taken -= amount
            self._left.set()

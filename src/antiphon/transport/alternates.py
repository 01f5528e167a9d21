"""One cloud at several addresses: an answer goes on elsewhere where one of them is lost."""

from collections.abc import Awaitable, Callable, Sequence

from antiphon.errors import LinkError
from antiphon.transport.frames import Transport

Dial = Callable[[], Awaitable[Transport]]
"""Makes a new link to the same cloud. Raises LinkError if nobody answers."""


class Alternates:
    """Makes a link to the first address that answers; after it another one has the first turn, for this one was lost then."""

    def __init__(self, dials: Sequence[Dial]) -> None:
        self._dials, self._first = list(dials), 0

    async def __call__(self) -> Transport:
        """A link to one of them. Raises LinkError, the first one's, if nobody answers anywhere."""
        failed = list[LinkError]()
        for place in range(self._first, self._first + len(self._dials)):
            try:
                transport = await self._dials[place % len(self._dials)]()
            except LinkError as error:
                failed.append(error)
            else:
                self._first = place + 1
                return transport
        raise failed[0]

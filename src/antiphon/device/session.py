"""One session of a connection as the device sees it: what arrives for it, what it sends, and what it has cost."""

import asyncio
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from antiphon.config import Timeouts
from antiphon.errors import AntiphonError, LinkError, RemoteError
from antiphon.transport.frames import Inbox, next_within
from antiphon.wire import messages as m
from antiphon.wire.session import Life, TrafficCounter, WireSession

CLOSE_SECONDS = 10.0
"""How long a finished session waits for the cloud's last word."""

MESSAGES_WAITING, BYTES_WAITING = 4096, 2**26
"""Messages, and their bytes, that may wait to be read: a cloud can be as far ahead as an answer is long, in small messages."""

LOST = "the link of this session was lost"


@dataclass(frozen=True, slots=True)
class Mended:
    """The link to a cloud that was lost is there again, or its room: another session with it may begin."""


Arrival: TypeAlias = m.Message | AntiphonError | Mended

Arriving: TypeAlias = Inbox[tuple[int, Arrival]]
"""What arrived for sessions, with the number that each was given."""


class Carrier(Protocol):
    """What a session needs of its connection."""

    wire: WireSession
    timeouts: Timeouts

    async def send(self, message: m.Message, session: int = 0) -> None:
        """Send a message of this end. Raises LinkError if the link is down."""
        ...

    def has(self, session: int) -> bool:
        """Whether this session is not over."""
        ...

    def lose(self, error: LinkError) -> LinkError:
        """Take the link as lost, for every session of it: what to raise."""
        ...


def arriving() -> Arriving:
    """An empty one."""
    return Inbox(MESSAGES_WAITING, BYTES_WAITING)


def understood(arrived: Arrival) -> Arrival:
    """What arrived; a failure of the cloud is an error."""
    return RemoteError(arrived.sentence, arrived.code) if isinstance(arrived, m.Failure) else arrived


class DeviceSession:
    """One session: what arrives for it, and what it has cost."""

    def __init__(self, connection: Carrier, number: int, inbox: Arriving | None = None, end: int = 0) -> None:
        self.number = number
        self.prompt_tokens: int | None = None
        self.opened = False
        """Whether the message that opens it has left."""
        self._connection = connection
        self._wire = connection.wire  # of the link that it was opened on: another one does not know it
        self._inbox = arriving() if inbox is None else inbox
        self._end = end

    async def take(self, message: m.Message, size: int) -> None:
        """Take what arrived, of so many bytes, once there is room: until then the cloud has to wait."""
        if isinstance(message, m.Opened):
            self.prompt_tokens = message.prompt_tokens
        else:
            await self._inbox.when_it_fits((self._end, message), size)

    def deliver(self, arrived: m.Message | AntiphonError) -> None:
        """Take what ends it, or a message by hand."""
        self._inbox.put_nowait((self._end, arrived))

    async def send(self, message: m.Message) -> None:
        """Send to the cloud half. Raises LinkError if the link that it was opened on is gone."""
        if self.lost:
            raise LinkError(LOST)
        await self._connection.send(message, self.number)

    async def receive(self, within: float | None = None) -> m.Message | None:
        """The next message of the cloud half; None if none came in so many seconds.

        Raises what went wrong instead: RemoteError, LinkError, ProtocolError; a cloud that does not get on is lost.
        """
        stalled = self._connection.timeouts.stalled
        item = await next_within(self._inbox, stalled if within is None else within)
        if item is None and within is None:
            # The link is sound, but the cloud's half is stuck: only a new session can help, and the old one must not wake up
            # later.
            raise self._connection.lose(LinkError(f"the cloud sent nothing for this answer in {stalled:g} s"))
        arrived = None if item is None else understood(item[1])
        if isinstance(arrived, AntiphonError):
            raise arrived
        return arrived if isinstance(arrived, m.Message) else None

    @property
    def lost(self) -> bool:
        """Whether the link that it was opened on is gone, and another one there."""
        # A new link is a new state machine, which knows no session of before: an old one must not write into it.
        return self._connection.wire is not self._wire

    @property
    def alive(self) -> bool:
        """Whether something can still arrive for it."""
        return self._connection.has(self.number)

    async def cancel(self) -> None:
        """Tell the cloud to stop, if it has not, nor left. Raises LinkError if it takes nothing any more."""
        if not self._wire.closed and self._wire.life(self.number) in (Life.OPENING, Life.RUNNING):
            try:
                async with asyncio.timeout(self._connection.timeouts.close):
                    await self.send(m.Cancel())
            except TimeoutError as error:
                raise LinkError("the cloud takes nothing any more") from error

    async def closed(self) -> m.Closed:
        """The cloud's last word, with its costs; what else still arrives is dropped."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                while not isinstance(message := await self.receive(), m.Closed):
                    pass
        except TimeoutError as error:
            raise LinkError(f"the cloud did not close the session within {CLOSE_SECONDS:.0f} s") from error
        return message

    def traffic(self) -> TrafficCounter:
        """What crossed the link for this session; asked for once, at its end."""
        return self._wire.counters.pop(self.number, TrafficCounter())

"""The sessions of one answer, one with each of its clouds, and the inbox where what they send meets.

Where the method takes a lost cloud in again (`OnLoss.REJOIN`), its link is made anew in the background while the answer goes
on. The new session begins when the half next looks for messages, behind the tokens that are committed then.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

from antiphon import shown
from antiphon.device.connection import MEND_SECONDS, Connection
from antiphon.device.session import CLOSE_SECONDS, Arrival, DeviceSession, Mended, arriving, understood
from antiphon.errors import AntiphonError, LinkError, ProtocolError, RemoteError
from antiphon.methods.base import Method, OnLoss
from antiphon.methods.effects import Arrived, Rejoined
from antiphon.transport.frames import next_within
from antiphon.wire.messages import Closed, Message, Open, Retrieved
from antiphon.wire.session import TrafficCounter

IN_VAIN = 10
"""Losses with nothing gained between them, after which a cloud is given up."""

ROOM_SECONDS = 1.0
"""Between two attempts to get room in a cloud that still keeps it for the session that was lost."""

Identity = tuple[object, ...]

log = logging.getLogger(__name__)


class Sessions:
    """The sessions of one answer, numbered as their connections. opening: what begins one now."""

    def __init__(self, connections: Sequence[Connection], opening: Callable[[], Open], method: Method) -> None:
        self.inbox = arriving()
        self.now: list[DeviceSession] = []
        """The last one with each cloud."""
        self.rejoined = 0
        """How often a cloud was taken in again."""
        self._connections, self._opening, self._method = connections, opening, method
        self._lost: list[DeviceSession] = []
        self._identities: list[Identity] = []
        self._seeking: dict[int, asyncio.Task[None]] = {}
        self._in_vain = [0] * len(connections)
        self._back: set[int] = set()
        self._refused_since: dict[int, float] = {}

    async def open(self) -> None:
        """Begin a session with each. Raises LinkError if one cannot be reached, ProtocolError if it is another one now."""
        for end, connection in enumerate(self._connections):
            self.now.append(await self._opened(connection, end))
            self._identities.append((connection.welcome.model, *identity(connection, self._method)))

    async def send(self, message: Message, to: int) -> None:
        """Send to one of them."""
        await self._with(to).send(message)

    async def receive(self, within: float | None) -> Message | None:
        """The next message of the one cloud; None if none came in so many seconds."""
        return await self._with(0).receive(within)

    async def receive_any(self, within: float | None) -> Arrived | None:
        """The next message of any cloud, or what went wrong with one; None if nothing came in so many seconds."""
        item = await next_within(self.inbox, within)
        return None if item is None else Arrived(item[0], await self._told(*item))

    async def cancel(self) -> None:
        """Tell them all to stop, as far as they can be told."""
        for session in self.now:
            with suppress(LinkError, ProtocolError):
                await session.cancel()

    async def closed(self) -> Closed | None:
        """Their last words, together. Raises what `DeviceSession.closed` does."""
        return together([await session.closed() for session in self.now])

    async def dismissed(self) -> Closed | None:
        """The same of clouds that serve until they are told to stop; what goes wrong here matters no more."""
        await self._stop_seeking()
        await self.cancel()
        words: list[Closed] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                # The last words of all come through one inbox, behind whatever was still on its way.
                while any(session.alive for session in self.now) or not self.inbox.empty():
                    _, arrived = await self.inbox.get()
                    words += [arrived] if isinstance(arrived, Closed) else []
        return together(words) if len(words) == len(self.now) else None

    def traffic(self) -> TrafficCounter:
        """What crossed the links for all sessions, lost ones too; asked for once, at the end."""
        return sum((session.traffic() for session in (*self._lost, *self.now)), TrafficCounter())

    def _with(self, end: int) -> DeviceSession:
        if end >= len(self.now):
            raise ProtocolError("a method without a cloud half sends and receives nothing")
        return self.now[end]

    async def _opened(self, connection: Connection, end: int) -> DeviceSession:
        try:
            return await connection.open(self._opening(), self.inbox, end)
        except LinkError as lost:  # it broke since the last answer
            if self._method.on_loss is OnLoss.WAIT:
                raise
            before = identity(connection, self._method)
            await connection.mend(lost)
            require_same(connection, self._method, before)
            return await connection.open(self._opening(), self.inbox, end)

    async def _told(self, end: int, arrived: Arrival) -> Message | AntiphonError | Rejoined:
        """What the half is told of what arrived."""
        arrived = understood(arrived)
        if isinstance(arrived, Mended):
            return await self._rejoin(end)
        if isinstance(arrived, LinkError):
            self._seek(end, arrived)
        elif isinstance(arrived, RemoteError) and arrived.code == "busy" and end in self._back:
            return self._wait_for_room(end, arrived)
        elif not isinstance(arrived, AntiphonError | Retrieved):
            self._in_vain[end] = 0  # it does more than to read the prompt
            self._refused_since.pop(end, None)
        return arrived

    def _seek(self, end: int, lost: LinkError) -> None:
        """Have a lost cloud looked for, if the method takes it in again, and it was not lost in vain too often."""
        self._in_vain[end] += 1
        if self._method.on_loss is OnLoss.REJOIN and self._in_vain[end] < IN_VAIN:
            self._later(end, partial(self._connections[end].mend, lost))

    def _wait_for_room(self, end: int, refusal: RemoteError) -> AntiphonError:
        """A cloud may still keep room for the session that was lost; it notices in a while."""
        now = asyncio.get_running_loop().time()
        if now - self._refused_since.setdefault(end, now) > MEND_SECONDS:
            return refusal
        self._later(end, partial(asyncio.sleep, ROOM_SECONDS))
        return LinkError(f"the cloud is not back yet: {refusal}")

    def _later(self, end: int, ready: Callable[[], Awaitable[None]]) -> None:
        """Once that is done, a new session with this cloud may begin."""

        async def note() -> None:
            try:
                await ready()
            except AntiphonError as error:
                log.warning("antiphon: %s: the answer goes on without that cloud", shown.line(str(error)))
            else:
                # Through the inbox, and no new session yet: the half is at work, perhaps in another thread, and commits. While
                # it looks for messages it stands still, so what is committed then is what the session begins behind.
                self.inbox.put_nowait((end, Mended()))

        self._seeking[end] = asyncio.create_task(note())

    async def _rejoin(self, end: int) -> AntiphonError | Rejoined:
        """Begin a new session behind the tokens that are committed now."""
        connection = self._connections[end]
        if (connection.welcome.model, *identity(connection, self._method)) != self._identities[end]:
            return other_cloud(connection, self._method)
        try:
            session = await connection.open(self._opening(), self.inbox, end)
        except LinkError as lost:
            self._seek(end, lost)
            return lost
        except AntiphonError as error:
            return error
        session.prompt_tokens = self.now[end].prompt_tokens  # until it says so itself
        # Kept for what it has cost, which counts.
        self._lost.append(self.now[end])
        self.now[end] = session
        self.rejoined += 1
        self._back.add(end)
        return Rejoined()

    async def _stop_seeking(self) -> None:
        for task in self._seeking.values():
            task.cancel()
        await asyncio.gather(*self._seeking.values(), return_exceptions=True)


def identity(connection: Connection, method: Method) -> Identity:
    """What the device looked at before it asked this cloud: with another one the answer cannot go on."""
    welcome = connection.welcome
    if method.mixes:
        return welcome.vocabulary, welcome.scorer, welcome.methods
    return welcome.model, connection.common.digest


def require_same(connection: Connection, method: Method, before: Identity) -> None:
    """Raise ProtocolError if there is another cloud now."""
    if identity(connection, method) != before:
        raise other_cloud(connection, method)


def other_cloud(connection: Connection, method: Method) -> ProtocolError:
    """What to say where there is another cloud now."""
    name = connection.welcome.model
    if method.mixes:
        return ProtocolError(f"the cloud serves {name} with other tokens or documents scored otherwise now: ask again")
    return ProtocolError(f"the cloud serves {name} now, so the answer cannot go on: ask again")


def together(words: Sequence[Closed]) -> Closed | None:
    """The costs of all clouds; None of none."""
    if not words:
        return None
    passes, milliseconds = sum(word.passes for word in words), sum(word.compute_ms for word in words)
    shared, rounding = any(word.shared for word in words), max(word.rounding for word in words)
    return Closed(words[0].reason, passes, milliseconds, shared, rounding)

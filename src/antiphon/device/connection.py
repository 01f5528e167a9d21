"""The device's end of a connection: made, made anew where it was lost, and the messages of each session to their reader."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from antiphon import shown
from antiphon.config import Limits, Timeouts
from antiphon.device.handshake import Handshake
from antiphon.device.session import LOST, Arriving, DeviceSession
from antiphon.engine.worker import Worker
from antiphon.errors import AntiphonError, LinkError, ProtocolError, RemoteError
from antiphon.models.base import Model
from antiphon.transport.alternates import Alternates, Dial
from antiphon.transport.frames import Transport
from antiphon.transport.websocket import dial, header_bytes
from antiphon.vocabulary import CommonVocabulary
from antiphon.wire import messages as m
from antiphon.wire.session import Received, Side, WireSession

log = logging.getLogger(__name__)

MEND_SECONDS = 30.0
"""How long a lost cloud is looked for."""

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 2.0
"""Between attempts; each pause is twice the one before."""

Watch: TypeAlias = Callable[[Side, m.Envelope, bytes], None]
"""Sees every frame of a connection: this end's before it leaves (what it raises keeps it here), the cloud's as it came."""


class Connection:
    """A connection to a cloud, greeted and agreed on a common vocabulary; made anew where it was lost."""

    def __init__(
        self,
        dial: Dial,
        model: Model | None,
        worker: Worker,
        mend_seconds: float = MEND_SECONDS,
        watch: Watch = lambda sender, envelope, frame: None,
        timeouts: Timeouts | None = None,
        addresses: int = 1,
    ) -> None:
        self._addresses = addresses
        self.timeouts = timeouts or Timeouts()
        self.welcome: m.Welcome
        self.common: CommonVocabulary
        self.wire: WireSession
        self._dial, self._model, self._worker = dial, model, worker
        self.mend_seconds = mend_seconds
        """How long it is looked for after a loss."""
        self._transport: Transport
        self._watch = watch
        self._now = asyncio.get_running_loop().time
        self._sessions: dict[int, DeviceSession] = {}
        self._opened = 0
        self._pings: dict[bytes, asyncio.Future[None]] = {}
        """Those on their way, by what they carry."""
        self._pinged = 0
        self._reader: asyncio.Task[None] | None = None
        self._broken: AntiphonError | None = None
        self._mending = asyncio.Lock()
        self._failed: LinkError | None = None

    async def establish(self) -> None:
        """Connect and greet. Raises LinkError, RemoteError or ProtocolError with one sentence; CacheError too."""
        # Each call dials the next address: one that answers and does not greet is no better than a dead one.
        for _ in range(self._addresses - 1):
            try:
                await self._establish_once()
            except (LinkError, RemoteError, ProtocolError):
                continue
            return
        await self._establish_once()

    async def _establish_once(self) -> None:
        self._transport = await self._dial()
        seconds = Limits().handshake_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._greet()
        except TimeoutError as error:
            await self._transport.close()
            raise LinkError(f"the cloud did not greet within {seconds:g} s") from error
        except BaseException:  # also where whoever waits for it is cancelled: nobody else knows of the link
            await self._transport.close()
            raise

    async def mend(self, lost: LinkError) -> None:
        """Connect anew after a loss, trying for `mend_seconds`: sessions are gone, and `Open` goes on with their answers.

        Raises LinkError if nobody answers. Whether it is the cloud of before is for who asks to compare.
        """
        failed = self._failed
        async with self._mending:
            if self._broken is None:
                return  # it was lost for several sessions at once, and another one mended it
            if self._failed is not failed and self._failed is not None:
                raise self._failed  # or tried to, just now
            await self._leave()
            log.warning("antiphon: %s; trying again for %g s", shown.line(str(lost)), self.mend_seconds)
            await self._establish_in_time(lost)

    async def open(self, opening: m.Open, inbox: Arriving | None = None, end: int = 0) -> DeviceSession:
        """Begin a session. Its refusal, if any, comes with the first `receive`.

        inbox: where several sessions' messages meet, each marked with its `end`.
        """
        if self._broken is not None:
            raise self._broken
        self._opened += 1
        session = self._sessions[self._opened] = DeviceSession(self, self._opened, inbox, end)
        sending = asyncio.ensure_future(session.send(opening))
        try:
            await asyncio.shield(sending)
        except AntiphonError:
            self._sessions.pop(session.number, None)
            raise
        except asyncio.CancelledError:
            await self._take_back(session, sending)
            raise
        if self._broken is not None or session.lost:  # while it was sent
            raise self._broken or LinkError(LOST)
        session.opened = True
        return session

    async def _take_back(self, session: DeviceSession, sending: "asyncio.Future[None]") -> None:
        """End a session whose opening is still on its way: whoever wanted it has gone."""
        try:
            async with asyncio.timeout(self.timeouts.close):
                # To its end first: the cloud must not be told to stop what it was never told to begin.
                await sending
                await session.cancel()
        except (AntiphonError, TimeoutError):
            self.lose(LinkError("the cloud takes nothing any more"))

    def has(self, session: int) -> bool:
        """Whether this session is not over."""
        return session in self._sessions

    async def ping(self, size: int = 16) -> float:
        """Seconds for `size` bytes to the cloud and back. Raises LinkError if they do not come back."""
        self._pinged += 1
        data = self._pinged.to_bytes(8, "little").ljust(size, b"\0")[:size]
        answered = self._pings[data] = asyncio.get_running_loop().create_future()
        started, seconds = self._now(), self.timeouts.lost
        try:
            async with asyncio.timeout(seconds):
                await self.send(m.Ping(data))
                await answered
        except TimeoutError as error:
            raise LinkError(f"the cloud did not answer a ping within {seconds:g} s") from error
        finally:
            self._pings.pop(data, None)
        return self._now() - started

    def lose(self, error: LinkError) -> LinkError:
        """Take the link as lost, for every session of it: what to raise."""
        self._break(error)
        return error

    async def close(self) -> None:
        """Say goodbye and end the link; a cloud that does not listen is left without."""
        try:
            with suppress(LinkError, ProtocolError, RemoteError, TimeoutError):
                async with asyncio.timeout(self.timeouts.close):
                    await self.send(m.Goodbye("done"))
        finally:  # also where a disclosure log keeps the goodbye here
            await self._leave()

    async def _leave(self) -> None:
        if self._reader is not None:
            # The reader first, or it would take the end of the link for a loss.
            self._reader.cancel()
            await asyncio.wait([self._reader])
        await self._transport.close()

    async def _establish_in_time(self, lost: LinkError) -> None:
        pause = FIRST_PAUSE_SECONDS
        try:
            async with asyncio.timeout(self.mend_seconds or None) as limit:
                while True:
                    try:
                        return await self.establish()
                    except (LinkError, RemoteError) as failure:
                        if isinstance(failure, RemoteError) and failure.code != "busy":
                            raise
                        if (until := limit.when()) is None or self._now() + pause > until:
                            raise TimeoutError from None
                    await asyncio.sleep(pause)
                    # Soon at first, for most losses are moments; then seldom, for a cloud that starts again has enough to do.
                    pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        except TimeoutError as error:
            self._failed = LinkError(f"{lost}, and it did not come back within {self.mend_seconds:g} s")
            raise self._failed from error

    async def _greet(self) -> None:
        self.wire = WireSession(Side.DEVICE, Limits(), now=self._now(), header=header_bytes)
        handshake = Handshake(self.wire, self.send, self._arrived, self._model, self._worker)
        self.welcome, self.common = await handshake.run()
        self._broken = None
        self._reader = asyncio.create_task(self._read())

    async def send(self, message: m.Message, session: int = 0) -> None:
        """Send a message of this end. Raises LinkError if the link is down, and what the cloud left with if it has left."""
        if self.wire.closed and self._broken is not None:
            raise self._broken
        # Watched between the check and the link: what the log has was allowed to leave, and what it refuses does not.
        frame = self.wire.send(message, session)
        self._watch(Side.DEVICE, m.Envelope(session, message), frame)
        try:
            await self._transport.send(frame)
        except LinkError as error:
            self._break(error)
            raise

    async def _arrived(self) -> list[Received]:
        frame = await self._transport.receive()
        arrived = self.wire.receive(frame, self._now())
        for received in arrived:
            self._watch(Side.CLOUD, m.Envelope(received.session, received.message), frame)
        return arrived

    async def _read(self) -> None:
        try:
            while True:
                for received in await self._arrived():
                    await self._route(received)
        except AntiphonError as error:
            self._break(error)
            if isinstance(error, ProtocolError):
                with suppress(LinkError, ProtocolError):
                    await self.send(m.Failure(error.code, str(error)[:4096]))

    async def _route(self, received: Received) -> None:
        session, message = received.session, received.message
        match message:
            case m.Pong():
                self._answer_ping(message)
            case m.Ping():
                await self.send(m.Pong(message.data))
            case m.Failure() if session == 0:
                raise RemoteError(message.sentence, message.code)
            case m.Goodbye():
                raise LinkError(f"the cloud left: {message.reason}")
            case _:
                await self._deliver(received)

    def _answer_ping(self, pong: m.Pong) -> None:
        """One that nobody asked for is nobody's."""
        answered = self._pings.get(pong.data)
        if answered is not None and not answered.done():
            answered.set_result(None)

    async def _deliver(self, received: Received) -> None:
        await self._sessions[received.session].take(received.message, received.size)
        if isinstance(received.message, m.Closed | m.Failure):
            self._sessions.pop(received.session, None)

    def _break(self, error: AntiphonError) -> None:
        # The first reason counts: what fails after it fails because of it.
        self._broken = self._broken or error
        for session in self._sessions.values():
            if session.opened:  # else whoever opens it is told: a new one may share its inbox
                session.deliver(error)
        self._sessions.clear()
        for answered in self._pings.values():
            if not answered.done():
                answered.set_exception(error)


async def connect(
    url: str,
    model: Model | None,
    worker: Worker,
    watch: Watch = lambda sender, envelope, frame: None,
    timeouts: Timeouts | None = None,
) -> Connection:
    """A greeted connection to the cloud at `url`. `model` is the device's own, if it has one.

    Several addresses of one cloud stand with commas between: where one does not answer, or is lost, the next one is asked.
    """
    timeouts = timeouts or Timeouts()
    dials = [partial(dial, address, Limits().frame_bytes, timeouts) for address in url.split(",")]
    connection = Connection(Alternates(dials), model, worker, watch=watch, timeouts=timeouts, addresses=len(dials))
    await connection.establish()
    return connection

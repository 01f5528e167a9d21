"""The device's end of a connection: the handshake, and the messages of each session to their reader."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TypeAlias, TypeVar

from antiphon import __version__, shown
from antiphon.cache import read_cached, write_cached
from antiphon.config import Limits, Timeouts
from antiphon.engine.worker import Worker
from antiphon.errors import AntiphonError, LinkError, ProtocolError, RemoteError
from antiphon.models.base import Model, public_name
from antiphon.transport.frames import Inbox, Transport, next_within
from antiphon.transport.websocket import dial, header_bytes
from antiphon.vocabulary import MAX_BYTES, CommonVocabulary, Vocabulary, common_vocabulary, identity
from antiphon.wire import messages as m
from antiphon.wire.session import Life, Received, Side, TrafficCounter, WireSession

log = logging.getLogger(__name__)

CLOSE_SECONDS = 10.0
"""How long a finished session waits for the cloud's last word."""

MEND_SECONDS = 30.0
"""How long a lost cloud is looked for."""

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 2.0
"""Between attempts; each pause is twice the one before."""

MESSAGES_WAITING, BYTES_WAITING = 4096, 2**26
"""Messages, and their bytes, that may wait to be read: a cloud can be as far ahead as an answer is long, in small messages."""

LOST = "the link of this session was lost"

Dial = Callable[[], Awaitable[Transport]]
"""Makes a new link to the same cloud. Raises LinkError if nobody answers."""

Expected = TypeVar("Expected", bound=m.Message)


Arriving: TypeAlias = Inbox[tuple[int, m.Message | AntiphonError]]
"""What arrived for sessions, with the number that each was given."""

Watch: TypeAlias = Callable[[Side, m.Envelope, bytes], None]
"""Sees every frame of a connection: this end's before it leaves (what it raises keeps it here), the cloud's as it came."""


def arriving() -> Arriving:
    """An empty one."""
    return Inbox(MESSAGES_WAITING, BYTES_WAITING)


def understood(arrived: m.Message | AntiphonError) -> m.Message | AntiphonError:
    """What arrived; a failure of the cloud is an error."""
    return RemoteError(arrived.sentence, arrived.code) if isinstance(arrived, m.Failure) else arrived


class DeviceSession:
    """One session: what arrives for it, and what it has cost."""

    def __init__(self, connection: "Connection", number: int, inbox: Arriving | None = None, end: int = 0) -> None:
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
            raise self._connection.lose(LinkError(f"the cloud sent nothing for this answer in {stalled:g} s"))
        arrived = None if item is None else understood(item[1])
        if isinstance(arrived, AntiphonError):
            raise arrived
        return arrived

    @property
    def lost(self) -> bool:
        """Whether the link that it was opened on is gone, and another one there."""
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
    ) -> None:
        self.timeouts = timeouts or Timeouts()
        self.welcome: m.Welcome
        self.common: CommonVocabulary
        self.wire: WireSession
        self._dial, self._model, self._worker, self._mend_seconds = dial, model, worker, mend_seconds
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
        self._transport = await self._dial()
        seconds = Limits().handshake_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._greet()
        except TimeoutError as error:
            await self._transport.close()
            raise LinkError(f"the cloud did not greet within {seconds:g} s") from error
        except AntiphonError:
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
            log.warning("antiphon: %s; trying again for %g s", shown.line(str(lost)), self._mend_seconds)
            await self._establish_in_time(lost)

    async def open(self, opening: m.Open, inbox: Arriving | None = None, end: int = 0) -> DeviceSession:
        """Begin a session. Its refusal, if any, comes with the first `receive`.

        inbox: where several sessions' messages meet, each marked with its `end`.
        """
        if self._broken is not None:
            raise self._broken
        self._opened += 1
        session = self._sessions[self._opened] = DeviceSession(self, self._opened, inbox, end)
        try:
            await session.send(opening)
        except AntiphonError:
            self._sessions.pop(session.number, None)
            raise
        if self._broken is not None or session.lost:  # while it was sent
            raise self._broken or LinkError(LOST)
        session.opened = True
        return session

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
        with suppress(LinkError, ProtocolError, RemoteError, TimeoutError):
            async with asyncio.timeout(self.timeouts.close):
                await self.send(m.Goodbye("done"))
        await self._leave()

    async def _leave(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait([self._reader])
        await self._transport.close()

    async def _establish_in_time(self, lost: LinkError) -> None:
        pause = FIRST_PAUSE_SECONDS
        try:
            async with asyncio.timeout(self._mend_seconds or None) as limit:
                while True:
                    try:
                        return await self.establish()
                    except LinkError:
                        if (until := limit.when()) is None or self._now() + pause > until:
                            raise TimeoutError from None
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        except TimeoutError as error:
            self._failed = LinkError(f"{lost}, and it did not come back within {self._mend_seconds:g} s")
            raise self._failed from error

    async def _greet(self) -> None:
        model = self._model
        self.wire = WireSession(Side.DEVICE, Limits(), now=self._now(), header=header_bytes)
        own = b"" if model is None else model.vocabulary.fingerprint
        name = "" if model is None else public_name(model)
        await self.send(m.Hello(m.VERSION, f"antiphon/{__version__}", name, own))
        self.welcome = await self._welcomed()
        self.wire.limits = self.welcome.limits
        cloud = await self._vocabulary(model)
        self.common = await self._worker.run(lambda: _common(model, cloud))
        await self._agree()
        self._broken = None
        self._reader = asyncio.create_task(self._read())

    async def _welcomed(self) -> m.Welcome:
        try:
            return await self._expect(m.Welcome)
        except RemoteError as refusal:
            if refusal.code != "version":
                raise
            sentence = f"{refusal} (this device speaks version {m.VERSION}: both ends must be of one version of Antiphon)"
            raise RemoteError(sentence, refusal.code) from refusal

    async def send(self, message: m.Message, session: int = 0) -> None:
        """Send a message of this end. Raises LinkError if the link is down, and what the cloud left with if it has left."""
        if self.wire.closed and self._broken is not None:
            raise self._broken
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

    async def _vocabulary(self, model: Model | None) -> Vocabulary:
        fingerprint = self.welcome.vocabulary
        if model is not None and model.vocabulary.fingerprint == fingerprint:
            return model.vocabulary
        key = f"vocabulary-{fingerprint.hex()}"
        packed = read_cached(key)
        vocabulary = _unpacked(packed, fingerprint) if packed is not None else None
        if vocabulary is None:
            packed = await self._fetch()
            vocabulary = _unpacked(packed, fingerprint)
            if vocabulary is None:
                raise ProtocolError("the cloud sent another vocabulary than it promised", "bad-vocabulary")
            write_cached(key, packed)
        return vocabulary

    async def _fetch(self) -> bytes:
        await self.send(m.VocabularyRequest())
        parts: list[bytes] = []
        total = 1
        while len(parts) < total:
            part = await self._expect(m.VocabularyPart)
            if part.index != len(parts):
                raise ProtocolError("the parts of the cloud's vocabulary came out of order", "bad-vocabulary")
            parts.append(part.data)
            total = part.total
            if sum(map(len, parts)) > MAX_BYTES:
                raise ProtocolError(f"the cloud's vocabulary has more than {MAX_BYTES >> 20} MiB", "bad-vocabulary")
        return b"".join(parts)

    async def _agree(self) -> None:
        await self.send(m.Common(self.common.digest, self.common.size))
        if isinstance(await self._expect(m.CommonWanted, m.CommonReady), m.CommonWanted):
            await self.send(m.CommonMap(self.common.members()))
            await self._expect(m.CommonReady)

    async def _expect(self, *kinds: type[Expected]) -> Expected:
        """The next message of the handshake."""
        while True:
            for received in await self._arrived():
                message = received.message
                if isinstance(message, m.Failure):
                    raise RemoteError(message.sentence, message.code)
                if isinstance(message, m.Goodbye):
                    raise LinkError(f"the cloud left: {message.reason}")
                if not isinstance(message, kinds):
                    raise ProtocolError(f"{type(message).__name__} came in the handshake", "out-of-turn")
                return message

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
    """A greeted connection to the cloud at `url`. `model` is the device's own, if it has one."""
    timeouts = timeouts or Timeouts()
    dialled = partial(dial, url, Limits().frame_bytes, timeouts)
    connection = Connection(dialled, model, worker, watch=watch, timeouts=timeouts)
    await connection.establish()
    return connection


def _common(model: Model | None, cloud: Vocabulary) -> CommonVocabulary:
    return identity(cloud) if model is None else common_vocabulary(model.vocabulary, cloud)


def _unpacked(packed: bytes, fingerprint: bytes) -> Vocabulary | None:
    """The vocabulary, if it is the one of this fingerprint."""
    try:
        vocabulary = Vocabulary.unpack(packed)
    except ProtocolError:
        return None
    return vocabulary if vocabulary.fingerprint == fingerprint else None

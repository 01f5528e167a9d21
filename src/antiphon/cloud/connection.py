"""One device's connection: the handshake, and a task for each of its sessions."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from antiphon import __version__
from antiphon.cloud.records import Records, is_recorded
from antiphon.cloud.service import Cloud, failure_code
from antiphon.cloud.session import SessionHost
from antiphon.cloud.told import told
from antiphon.config import Timeouts
from antiphon.core.pass_costs import PassCosts
from antiphon.engine.worker import Worker
from antiphon.errors import AntiphonError, LinkError, ProtocolError
from antiphon.methods.drive import serve
from antiphon.models.base import public_name
from antiphon.transport.frames import Transport
from antiphon.transport.websocket import header_bytes
from antiphon.vocabulary import CommonVocabulary
from antiphon.wire import messages as m
from antiphon.wire.session import Life, Received, Side, WireSession

log = logging.getLogger(__name__)


class CloudConnection:
    """The cloud's end of one connection. `serve` returns when it is over, however it ends."""

    def __init__(
        self,
        cloud: Cloud,
        transport: Transport,
        timeouts: Timeouts | None = None,
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        """`ready` is called once the handshake is done."""
        self._cloud, self._transport, self._ready = cloud, transport, ready
        self._timeouts = timeouts or Timeouts()
        self._now = asyncio.get_running_loop().time
        self._wire = WireSession(Side.CLOUD, cloud.limits, now=self._now(), header=header_bytes)
        self._common: CommonVocabulary | None = None
        self._claimed = m.Common(bytes(16), 0)
        self.idle_seconds, self.frame_bytes = cloud.limits.idle_seconds, cloud.limits.frame_bytes
        self._hosts: dict[int, SessionHost] = {}
        self._records = Records()

    async def serve(self) -> None:
        """Serve until either end leaves. What the device does wrong is told to it in one sentence."""
        try:
            while not self._wire.closed:
                await self._serve_frame()
        except ProtocolError as error:
            await self._fail(0, error.code, error)
        except LinkError:
            pass  # the device left; nobody to tell
        finally:
            await self._cancel_all()
            await self._transport.close()

    async def leave(self, reason: str) -> None:
        """Say goodbye, if the device listens; `serve` then ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeouts.close):
                await self._send_if_up(m.Goodbye(reason))
        await self._transport.close(reason)

    @property
    def at_work(self) -> bool:
        """Whether a session is under way."""
        return bool(self._hosts)

    async def _serve_frame(self) -> None:
        frame = await self._receive_in_time()
        for received in self._wire.receive(frame, self._now()):
            if received.session == 0:
                await self._handle(received.message)
            else:
                await self._handle_session(received)

    async def _receive_in_time(self) -> bytes:
        if self._common is not None:
            return await self._transport.receive()
        try:
            async with asyncio.timeout(self._cloud.limits.handshake_seconds):
                return await self._transport.receive()
        except TimeoutError as error:
            raise ProtocolError("the handshake took too long", "timeout") from error

    async def _handle(self, message: m.Message) -> None:
        match message:
            case m.Hello():
                await self.send(self._welcome(message))
            case m.VocabularyRequest():
                await self._send_vocabulary()
            case m.Common():
                self._claimed = message
                await self._agree(self._cloud.known(message.digest))
            case m.CommonMap():
                await self._agree(await self._cloud.learn(message.members))
            case m.Ping():
                await self.send(m.Pong(message.data))
            case _:
                pass  # Pong, Goodbye and Failure need no answer

    async def _handle_session(self, received: Received) -> None:
        session = received.session
        match received.message:
            case m.Open() as message:
                host = self._hosts[session] = SessionHost(self, session)
                host.task = asyncio.create_task(self._run(host, message))
                host.task.add_done_callback(partial(self._ended, host))
            case m.Cancel():
                await self._cancel(session)
            case _ if session in self._hosts:  # else its last word could not be sent: the link is about to end
                self._hosts[session].deliver(received)
            case _:
                pass

    def _welcome(self, hello: m.Hello) -> m.Welcome:
        if hello.version != m.VERSION:
            older = "on the device" if hello.version < m.VERSION else "in the cloud"
            sentence = f"this cloud speaks version {m.VERSION} of the protocol, not {hello.version}"
            raise ProtocolError(f"{sentence}: update Antiphon {older}", "version")
        model = self._cloud.model
        names = tuple(sorted(self._cloud.methods))
        fingerprint, context = model.vocabulary.fingerprint, model.context_length
        library = self._cloud.library
        scorer = "" if library is None else library.scorer.scorer_id
        agent, limits = f"antiphon/{__version__}", self._cloud.limits
        return m.Welcome(m.VERSION, agent, public_name(model), fingerprint, context, names, limits, scorer)

    async def _send_vocabulary(self) -> None:
        packed = await self._cloud.vocabulary()
        # The rest of a frame is its envelope.
        size = min(m.PART_BYTES, self._cloud.limits.frame_bytes - 64)
        parts = [packed[start : start + size] for start in range(0, len(packed), size)]
        for index, part in enumerate(parts):
            await self.send(m.VocabularyPart(index, len(parts), part))

    async def _agree(self, common: CommonVocabulary | None) -> None:
        # Both ends compute it, and two numberings would be silent garbage: every token another one.
        if common is not None and (common.digest, common.size) != (self._claimed.digest, self._claimed.size):
            raise ProtocolError("the two ends compute different common vocabularies: update both", "bad-vocabulary")
        self._common = common
        if common is not None:
            # Before the device hears of it: its first frame may be as long as the limits say, and could come at once.
            self._ready()
        await self.send(m.CommonWanted() if common is None else m.CommonReady())

    async def _run(self, host: SessionHost, opening: m.Open) -> None:
        try:
            await self._answer(host, opening)
        except ProtocolError as error:
            await self._fail(host.session, error.code, error)
        except LinkError:
            pass  # the reader of frames sees it too, and ends the connection
        except AntiphonError as error:
            await self._fail(host.session, failure_code(error), error)

    async def _answer(self, host: SessionHost, opening: m.Open) -> None:
        if self._common is None:
            raise ProtocolError("a session needs a common vocabulary", "out-of-turn")
        async with self._cloud.answering(opening, self._common, self._records.by_session) as answering:
            await host.send(m.Opened(answering.prompt_tokens))
            host.answering = answering
            finish = await serve(answering.half, host)
        await host.send(host.last_word(finish))

    @property
    def worker(self) -> Worker:
        """The model's thread."""
        return self._cloud.worker

    @property
    def costs(self) -> PassCosts:
        """What the model's passes cost."""
        return self._cloud.costs

    async def send(self, message: m.Message, session: int = 0) -> None:
        """Send a message of this end."""
        await self._transport.send(self._wire.send(message, session))

    async def _send_if_up(self, message: m.Message, session: int = 0) -> None:
        with suppress(LinkError, ProtocolError):  # the link went down, or the other end left, in the meantime
            await self.send(message, session)

    async def _fail(self, session: int, code: str, error: AntiphonError) -> None:
        await self._send_if_up(m.Failure(code, told(error, self._cloud.model)), session)

    async def _cancel(self, session: int) -> None:
        host = self._hosts.get(session)
        if host is None or host.task is None:
            return
        host.task.cancel()
        await asyncio.wait([host.task])
        # The half may have come to its end while it was cancelled, and have said so.
        if self._wire.life(session) is not Life.ENDED:
            await self._send_if_up(host.last_word("cancelled"), session)

    async def _cancel_all(self) -> None:
        """End every session, at once: to end takes nothing that could be waited for, so it does not hang on who waits here."""
        hosts = list(self._hosts.values())
        for host in hosts:
            if host.task is not None:
                host.task.cancel()
        for host in hosts:
            await self._cancel(host.session)

    def _ended(self, host: SessionHost, task: "asyncio.Task[None]") -> None:
        """A session's task is over. A fault of ours ends that session alone: the others know nothing of it."""
        if task.cancelled() or (fault := task.exception()) is None:
            self._forget(host)
            return
        log.error("a session failed by a fault of Antiphon", exc_info=fault)
        told = AntiphonError("the cloud failed: its log says why")
        # In the place of the task that failed, so that whoever ends the session waits for its last word too.
        host.task = asyncio.create_task(self._fail(host.session, failure_code(fault), told))
        host.task.add_done_callback(lambda _: self._forget(host))

    def _forget(self, host: SessionHost) -> None:
        if host.answering is not None and is_recorded(host.answering.method):
            self._records.keep(host.session, host.record)
        self._hosts.pop(host.session, None)
        self._wire.counters.pop(host.session, None)

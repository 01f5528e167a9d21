"""The state machine of a connection, without I/O: one table for both ends (docs/protocol.md).

A connection greets, agrees on the common vocabulary, and is then ready for sessions, each with a small life of its own.
What stands in [] may be left out:

    NEW -Hello-> GREETING -Welcome-> MATCHING [-VocabularyRequest-> FETCHING -VocabularyPart*]
        -Common-> AGREEING [-CommonWanted-> MAPPING -CommonMap-> AGREEING] -CommonReady-> READY
    IDLE -Open-> OPENING [-Opened-> RUNNING] [-Cancel-> CANCELLED] -Closed|Failure-> ENDED

Failure and Goodbye close the connection from anywhere, Ping and Pong change nothing. Rounds change nothing either: the
device may send what `_UP` lists from OPENING on, the cloud what `_DOWN` lists while RUNNING.

`receive(frame, now)` gives the messages that a frame brings, `send(message, session)` the frame to send. Whatever is not in
the table is a ProtocolError. The same table rules what this end may send, so a bug here is found here.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from antiphon.config import Limits
from antiphon.errors import ProtocolError
from antiphon.wire import messages as m
from antiphon.wire.lean import Frames
from antiphon.wire.packets import packet_bytes, packets

SMALL_FRAME_BYTES = 2**20 + 4096
"""The largest frame before a connection is ready: a map of common tokens."""


class Side(Enum):
    """The two ends of a connection."""

    DEVICE = "device"
    CLOUD = "cloud"

    @property
    def other(self) -> "Side":
        """The end at the other side."""
        return Side.CLOUD if self is Side.DEVICE else Side.DEVICE


class State(Enum):
    """How far a connection is."""

    NEW = "new"
    GREETING = "greeting"
    MATCHING = "matching"
    FETCHING = "fetching"
    AGREEING = "agreeing"
    MAPPING = "mapping"
    READY = "ready"
    CLOSED = "closed"


class Life(Enum):
    """How far a session is."""

    IDLE = "idle"
    OPENING = "opening"
    RUNNING = "running"
    CANCELLED = "cancelled"
    ENDED = "ended"


_DEVICE, _CLOUD = Side.DEVICE, Side.CLOUD
_OPEN = tuple(state for state in State if state is not State.CLOSED)

CONNECTION: dict[tuple[State, Side, type], State] = {
    (State.NEW, _DEVICE, m.Hello): State.GREETING,
    (State.GREETING, _CLOUD, m.Welcome): State.MATCHING,
    (State.MATCHING, _DEVICE, m.VocabularyRequest): State.FETCHING,
    (State.FETCHING, _CLOUD, m.VocabularyPart): State.FETCHING,
    (State.MATCHING, _DEVICE, m.Common): State.AGREEING,
    (State.FETCHING, _DEVICE, m.Common): State.AGREEING,
    (State.AGREEING, _CLOUD, m.CommonWanted): State.MAPPING,
    (State.MAPPING, _DEVICE, m.CommonMap): State.AGREEING,
    (State.AGREEING, _CLOUD, m.CommonReady): State.READY,
    **{(state, side, kind): state for state in _OPEN for side in Side for kind in (m.Ping, m.Pong)},
    **{(state, side, kind): State.CLOSED for state in _OPEN for side in Side for kind in (m.Failure, m.Goodbye)},
}

_UP = (m.Draft, m.Probe, m.Retry, m.Ask, m.Realign, m.Progress)
_DOWN = (m.Verdict, m.Tokens, m.Probed, m.Resampling, m.Retrieved, m.Passages, m.Progress, m.Evidence, m.Supplement)

SESSION: dict[tuple[Life, Side, type], Life] = {
    (Life.IDLE, _DEVICE, m.Open): Life.OPENING,
    (Life.OPENING, _CLOUD, m.Opened): Life.RUNNING,
    # A device need not wait for Opened before it drafts.
    **{(life, _DEVICE, kind): life for life in (Life.OPENING, Life.RUNNING) for kind in _UP},
    **{(Life.RUNNING, _CLOUD, kind): Life.RUNNING for kind in _DOWN},
    **{(life, _DEVICE, m.Cancel): Life.CANCELLED for life in (Life.OPENING, Life.RUNNING)},
    # What was on its way when the other end stopped listening is legal, and dropped.
    **{(Life.CANCELLED, _CLOUD, kind): Life.CANCELLED for kind in (m.Opened, *_DOWN)},
    **{(Life.ENDED, _DEVICE, kind): Life.ENDED for kind in (m.Cancel, *_UP)},
    **{
        (life, _CLOUD, kind): Life.ENDED
        for life in (Life.OPENING, Life.RUNNING, Life.CANCELLED)
        for kind in (m.Closed, m.Failure)
    },
}


@dataclass(slots=True)
class Traffic:
    """Bits that crossed in one direction: what methods sent, and what wrapped it.

    packets: those of TCP over TLS (`antiphon.wire.packets`). packet_bits: what TCP/IP and TLS add, no part of `bits`.
    """

    frames: int = 0
    payload_bits: int = 0
    framing_bits: int = 0
    packets: int = 0
    packet_bits: int = 0

    @property
    def bits(self) -> int:
        """All of them."""
        return self.payload_bits + self.framing_bits

    def count(self, size: int, payload_bits: int) -> None:
        """Add a frame of `size` bytes, the transport's header included."""
        self.frames += 1
        self.payload_bits += payload_bits
        self.framing_bits += 8 * size - payload_bits
        self.packets += packets(size)
        self.packet_bits += 8 * (packet_bytes(size) - size)

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(
            self.frames + other.frames,
            self.payload_bits + other.payload_bits,
            self.framing_bits + other.framing_bits,
            self.packets + other.packets,
            self.packet_bits + other.packet_bits,
        )


@dataclass(slots=True)
class TrafficCounter:
    """Traffic of one session's rounds, each way; opening a session (the prompt) is counted apart."""

    up: Traffic = field(default_factory=Traffic)
    down: Traffic = field(default_factory=Traffic)
    setup: Traffic = field(default_factory=Traffic)

    def __add__(self, other: "TrafficCounter") -> "TrafficCounter":
        return TrafficCounter(self.up + other.up, self.down + other.down, self.setup + other.setup)


@dataclass(frozen=True, slots=True)
class Received:
    """A message that arrived in time for someone to act on it."""

    session: int
    message: m.Message
    size: int = field(default=0, compare=False)
    """Bytes of its frame."""


def no_header(size: int, from_device: bool) -> int:
    """Bytes that a transport adds to a frame of `size` bytes: none."""
    return 0


class WireSession:
    """One end of one connection. `header` tells what the transport adds to a frame, for honest counting."""

    def __init__(self, side: Side, limits: Limits, *, now: float = 0.0, header: Callable[[int, bool], int] = no_header) -> None:
        self.side = side
        self.limits = limits
        self.state = State.NEW
        self.counters: dict[int, TrafficCounter] = {}  # from Open until its reader takes it out
        self._header = header
        self._deadline = now + limits.handshake_seconds
        self._lives: dict[int, Life] = {}
        self._newest = 0
        self._frames = {sender: Frames() for sender in Side}

    @property
    def closed(self) -> bool:
        """True once either end said goodbye or failed."""
        return self.state is State.CLOSED

    def send(self, message: m.Message, session: int = 0) -> bytes:
        """The frame of a message of this end. Raises ProtocolError if the table does not allow it now."""
        envelope = m.Envelope(session, message)
        frame = self._frames[self.side].pack(envelope)
        self._check_size(frame)
        self._advance(self.side, session, message)
        self._crossed(self.side, envelope, len(frame))
        return frame

    def receive(self, frame: bytes, now: float = 0.0) -> list[Received]:
        """What a frame of the other end brings. Raises ProtocolError if it is malformed, too large or out of turn."""
        self._check_size(frame)
        # Only until then: a connection that is READY may be quiet for as long as its transport gives signs of life.
        if self.state is not State.READY and now > self._deadline:
            raise ProtocolError("the handshake took too long", "timeout")
        envelope = self._frames[self.side.other].unpack(frame)
        # The table comes before the message is acted on: a half is never given what it would have to refuse.
        stale = self._advance(self.side.other, envelope.session, envelope.message)
        self._crossed(self.side.other, envelope, len(frame))
        return [] if stale else [Received(envelope.session, envelope.message, len(frame))]

    def life(self, session: int) -> Life:
        """How far a session is."""
        # Sessions that ended are not remembered one by one: numbers only rise, so one below the newest was used already.
        return self._lives.get(session, Life.ENDED if session <= self._newest else Life.IDLE)

    def _check_size(self, frame: bytes) -> None:
        ready = self.state is State.READY
        # A stranger may make us read no more than a handshake takes.
        bound = self.limits.frame_bytes if ready else min(SMALL_FRAME_BYTES, self.limits.frame_bytes)
        if len(frame) > bound:
            raise ProtocolError(f"the frame has {len(frame)} bytes; at most {bound} are accepted", "too-large")

    def _advance(self, sender: Side, session: int, message: m.Message) -> bool:
        if session == 0:
            self._advance_connection(sender, message)
            return False
        return self._advance_session(sender, session, message)

    def _advance_connection(self, sender: Side, message: m.Message) -> None:
        after = CONNECTION.get((self.state, sender, type(message)))
        if after is None:
            raise ProtocolError(f"{_name(message)} is out of turn: the connection is {self.state.value}", "out-of-turn")
        self.state = after

    def _advance_session(self, sender: Side, session: int, message: m.Message) -> bool:
        before = self.life(session)
        after = SESSION.get((before, sender, type(message)))
        if after is None or self.state is not State.READY:
            where = f"session {session} is {before.value}" if after is None else f"the connection is {self.state.value}"
            raise ProtocolError(f"{_name(message)} is out of turn: {where}", "out-of-turn")
        if before is Life.IDLE and len(self._lives) >= self.limits.sessions_per_connection:
            raise ProtocolError(f"at most {self.limits.sessions_per_connection} sessions at once", "busy")
        self._newest = max(self._newest, session)
        if after is Life.ENDED:
            self._lives.pop(session, None)
        else:
            self._lives[session] = after
        return before is Life.ENDED or (before is Life.CANCELLED and after is Life.CANCELLED)

    def _crossed(self, sender: Side, envelope: m.Envelope, size: int) -> None:
        """A frame was allowed: both ends count it, and go by it in what later frames leave out."""
        self._count(sender, envelope.session, envelope.message, size)
        if self.life(envelope.session) is not Life.ENDED:
            self._frames[sender].crossed(envelope)
            return
        for frames in self._frames.values():
            frames.forget(envelope.session)

    def _count(self, sender: Side, session: int, message: m.Message, size: int) -> None:
        if isinstance(message, m.Open):
            self.counters[session] = TrafficCounter()
        counter = self.counters.get(session)
        if counter is None:  # the connection itself, or a frame that came after its session was settled
            return
        direction = counter.up if sender is Side.DEVICE else counter.down
        # The prompt crosses with every method alike and would drown what they differ in.
        traffic = counter.setup if isinstance(message, m.Open | m.Opened) else direction
        traffic.count(size + self._header(size, sender is Side.DEVICE), m.payload_bits(message))


def _name(message: m.Message) -> str:
    return type(message).__name__

"""Two ends of a connection talking in lockstep, and a sample of every message."""

import pytest

from antiphon.config import Limits, SamplingParams
from antiphon.errors import ProtocolError
from antiphon.wire import messages as m
from antiphon.wire.session import (
    Life,
    Received,
    Side,
    State,
    WireSession,
)

DEVICE, CLOUD = Side.DEVICE, Side.CLOUD


SAMPLES: dict[type, m.Message] = {
    type(message): message
    for message in (
        m.Hello(1, "agent", "model", bytes(16)),
        m.Welcome(1, "agent", "model", bytes(16), 4096, ("dssd",), Limits(), ""),
        m.VocabularyRequest(),
        m.VocabularyPart(0, 1, b"part"),
        m.Common(bytes(16), 3),
        m.CommonWanted(),
        m.CommonMap(b"map"),
        m.CommonReady(),
        m.Open("dssd", {"draft_length": 3}, SamplingParams(), "hello", False, 64, 1, ()),
        m.Opened(7),
        m.Draft(0, 1, b"draft"),
        m.Verdict(0, 1, b"to"),
        m.Tokens(b"tok"),
        m.Probe(4, 0, 0, 1, 1, b"tokens"),
        m.Probed((0.5,), (1, 2), (0.5, 0.25), (0.25, 0.5), True, True, 0.125, 0.5, 0.5),
        m.Cancel(),
        m.Closed("end", 5, 12.5, False, 0.0),
        m.Failure("busy", "the cloud is full"),
        m.Goodbye("done"),
        m.Ping(b"1234"),
        m.Pong(b"1234"),
        m.Retry(1),
        m.Resampling(1, b"more"),
        m.Retrieved(2, 1.25, 0),
        m.Passages(("a passage",)),
        m.Evidence(0, 1, b"scores"),
        m.Ask(0, 1, b"tokens"),
        m.Supplement(0, 1, b"scores"),
        m.Realign(1, 1, 2, b"tokens"),
        m.Progress(4),
    )
}


KINDS = list(SAMPLES)


UNREADY = [state for state in State if state is not State.READY]


Move = tuple[Side, type]


HANDSHAKE: list[Move] = [
    (DEVICE, m.Hello),
    (CLOUD, m.Welcome),
    (DEVICE, m.VocabularyRequest),
    (CLOUD, m.VocabularyPart),
    (CLOUD, m.VocabularyPart),
    (DEVICE, m.Common),
    (CLOUD, m.CommonWanted),
    (DEVICE, m.CommonMap),
    (CLOUD, m.CommonReady),
]


TO_STATE: dict[State, list[Move]] = {
    State.NEW: [],
    State.GREETING: HANDSHAKE[:1],
    State.MATCHING: HANDSHAKE[:2],
    State.FETCHING: HANDSHAKE[:3],
    State.AGREEING: [*HANDSHAKE[:2], (DEVICE, m.Common)],
    State.MAPPING: [*HANDSHAKE[:2], (DEVICE, m.Common), (CLOUD, m.CommonWanted)],
    State.READY: HANDSHAKE,
    State.CLOSED: [*HANDSHAKE, (CLOUD, m.Goodbye)],
}


TO_LIFE: dict[Life, list[Move]] = {
    Life.IDLE: [],
    Life.OPENING: [(DEVICE, m.Open)],
    Life.RUNNING: [(DEVICE, m.Open), (CLOUD, m.Opened)],
    Life.CANCELLED: [(DEVICE, m.Open), (CLOUD, m.Opened), (DEVICE, m.Cancel)],
    Life.ENDED: [(DEVICE, m.Open), (CLOUD, m.Opened), (CLOUD, m.Closed)],
}


def header(size: int, from_device: bool) -> int:
    """Stands for a transport's own: depends on both arguments."""
    return 2 + size // 100 + 4 * from_device


class Ends:
    """Both ends of one connection; `say` sends and delivers at once."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.of = {side: WireSession(side, limits or Limits(), header=header) for side in Side}

    def say(self, side: Side, message: m.Message, session: int = 0) -> list[Received]:
        return self.of[side.other].receive(self.of[side].send(message, session))

    def walk(self, moves: list[Move], session: int = 0) -> "Ends":
        for side, kind in moves:
            self.say(side, SAMPLES[kind], session)
        return self

    def states(self, session: int = 1) -> list[tuple[State, Life]]:
        return [(end.state, end.life(session)) for end in self.of.values()]

    def agreed(self, session: int = 1) -> tuple[State, Life]:
        one, other = self.states(session)
        assert one == other
        return one


def ready(limits: Limits | None = None) -> Ends:
    return Ends(limits).walk(HANDSHAKE)


def refuses(end: WireSession, frame: bytes, code: str = "out-of-turn", now: float = 0.0) -> str:
    with pytest.raises(ProtocolError) as caught:
        end.receive(frame, now)
    assert caught.value.code == code
    return str(caught.value)


def frame_of(kind: type, session: int = 0) -> bytes:
    return m.encode(m.Envelope(session, SAMPLES[kind]))


def out_of_turn(ends: Ends, side: Side, kind: type, session: int) -> str:
    """The sentence with which both the sender and the receiver refuse a message."""
    with pytest.raises(ProtocolError, match=f"{kind.__name__} is out of turn") as caught:
        ends.of[side].send(SAMPLES[kind], session)
    assert refuses(ends.of[side.other], frame_of(kind, session)) == str(caught.value)
    return str(caught.value)

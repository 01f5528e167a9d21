"""Two ends of a connection talking: the table, its bounds, and honest counting."""

import re
from collections import deque
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.config import Limits, SamplingParams
from antiphon.errors import ProtocolError
from antiphon.wire import messages as m
from antiphon.wire import session as module
from antiphon.wire.session import (
    CONNECTION,
    SESSION,
    SMALL_FRAME_BYTES,
    Life,
    Received,
    Side,
    State,
    TrafficCounter,
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


# The happy path


def test_a_whole_connection_in_lockstep() -> None:
    ends, seen = Ends(), [State.NEW]
    for side, kind in HANDSHAKE:
        assert ends.say(side, SAMPLES[kind]) == [Received(0, SAMPLES[kind])]
        seen.append(ends.agreed()[0])
    assert [state.value for state in seen] == [
        *("new", "greeting", "matching", "fetching", "fetching", "fetching"),
        *("agreeing", "mapping", "agreeing", "ready"),
    ]
    for session in (1, 2, 9):
        moves = [*TO_LIFE[Life.RUNNING], (DEVICE, m.Draft), (CLOUD, m.Verdict), (DEVICE, m.Draft), (CLOUD, m.Verdict)]
        for side, kind in moves:
            assert ends.say(side, SAMPLES[kind], session) == [Received(session, SAMPLES[kind])]
        assert ends.agreed(session) == (State.READY, Life.RUNNING)
        assert ends.say(CLOUD, SAMPLES[m.Closed], session) == [Received(session, SAMPLES[m.Closed])]
        assert ends.agreed(session) == (State.READY, Life.ENDED)
    ends.say(DEVICE, m.Goodbye("done"))
    assert all(end.closed for end in ends.of.values())


def test_a_device_that_knows_the_vocabulary_and_a_cloud_that_knows_the_map() -> None:
    moves = [*HANDSHAKE[:2], (DEVICE, m.Common), (CLOUD, m.CommonReady)]
    assert Ends().walk(moves).agreed()[0] is State.READY


def test_drafts_need_not_wait_for_opened() -> None:
    ends = ready().walk([(DEVICE, m.Open), (DEVICE, m.Draft), (CLOUD, m.Opened), (CLOUD, m.Verdict)], session=1)
    assert ends.agreed() == (State.READY, Life.RUNNING)


def test_many_sessions_side_by_side() -> None:
    ends = ready()
    for side, kind in [*TO_LIFE[Life.RUNNING], (DEVICE, m.Draft), (CLOUD, m.Verdict)]:
        for session in range(1, 9):
            ends.say(side, SAMPLES[kind], session)
    ends.say(CLOUD, SAMPLES[m.Failure], 3)
    ends.say(CLOUD, SAMPLES[m.Closed], 5)
    lives = [ends.agreed(session)[1] for session in range(1, 9)]
    assert lives == [Life.ENDED if session in (3, 5) else Life.RUNNING for session in range(1, 9)]
    assert ends.agreed()[0] is State.READY


# The table


@pytest.mark.parametrize("kind", KINDS)
def test_every_message_of_a_connection_in_every_state(kind: type) -> None:
    for state, side in product(State, Side):
        ends = Ends().walk(TO_STATE[state])
        after = CONNECTION.get((state, side, kind))
        if after is not None:
            assert ends.say(side, SAMPLES[kind]) == [Received(0, SAMPLES[kind])]
            assert ends.agreed()[0] is after
        else:
            assert f"the connection is {state.value}" in out_of_turn(ends, side, kind, 0)
            assert ends.agreed()[0] is state


@pytest.mark.parametrize("kind", KINDS)
def test_every_message_of_a_session_in_every_life(kind: type) -> None:
    for life, side in product(Life, Side):
        ends = ready().walk(TO_LIFE[life], session=1)
        after = SESSION.get((life, side, kind))
        if after is not None:
            dropped = life is Life.ENDED or (life is after is Life.CANCELLED)
            assert ends.say(side, SAMPLES[kind], 1) == ([] if dropped else [Received(1, SAMPLES[kind])])
            assert ends.agreed() == (State.READY, after)
        else:
            assert f"session 1 is {life.value}" in out_of_turn(ends, side, kind, 1)
            assert ends.agreed() == (State.READY, life)


@pytest.mark.parametrize("kind", KINDS)
def test_no_session_before_or_after_a_connection_is_ready(kind: type) -> None:
    for state, side in product(UNREADY, Side):
        ends = Ends().walk(TO_STATE[state])
        out_of_turn(ends, side, kind, 1)
        assert ends.agreed() == (state, Life.IDLE)


def out_of_turn(ends: Ends, side: Side, kind: type, session: int) -> str:
    """The sentence with which both the sender and the receiver refuse a message."""
    with pytest.raises(ProtocolError, match=f"{kind.__name__} is out of turn") as caught:
        ends.of[side].send(SAMPLES[kind], session)
    assert refuses(ends.of[side.other], frame_of(kind, session)) == str(caught.value)
    return str(caught.value)


def edges(drawing: str) -> set[tuple[str, str, str]]:
    """What a drawing says: `A -X-> B` an edge, `-X*` one that stays, [] what may be left out, `X|Y` either."""
    found: set[tuple[str, str, str]] = set()
    current: set[str] = set()
    optional: list[set[str]] = []
    labels: list[str] = []
    for word in re.findall(r"-[\w|]+->|-\w+\*|[A-Z]+\b|\[|\]", drawing):
        if word == "[":
            optional.append(set(current))
        elif word == "]":
            current |= optional.pop()
        elif word.endswith("->"):
            labels = word[1:-2].split("|")
        elif word.endswith("*"):
            found |= {(place, word[1:-1], place) for place in current}
        else:
            found |= {(place, label, word) for place in current for label in labels}
            current, labels = {word}, []
    return found


def drawings(text: str | None) -> tuple[str, str]:
    """The drawing of a connection and that of a session."""
    found = re.search(r"^ +(NEW -Hello->.*?)^ +(IDLE -Open->[^\n]*)", text or "", re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1], found[2]


def edges_of(table: dict) -> set[tuple[str, str, str]]:
    return {(before.name, kind.__name__, after.name) for (before, _, kind), after in table.items()}


def test_the_drawing_is_the_table() -> None:
    connection, session = drawings(module.__doc__)
    anywhere = {edge for edge in edges_of(CONNECTION) if edge[1] in ("Ping", "Pong", "Failure", "Goodbye")}
    assert edges(connection) == edges_of(CONNECTION) - anywhere
    assert edges(session) == {edge for edge in edges_of(SESSION) if edge[0] != edge[2]}


def test_what_the_drawing_leaves_to_words() -> None:
    standing = set(State) - {State.CLOSED}
    for side, state in product(Side, standing):
        assert CONNECTION[state, side, m.Ping] is CONNECTION[state, side, m.Pong] is state
        assert CONNECTION[state, side, m.Failure] is CONNECTION[state, side, m.Goodbye] is State.CLOSED
    assert not [key for key in CONNECTION if key[0] is State.CLOSED]
    assert SESSION[Life.OPENING, DEVICE, m.Draft] is Life.OPENING
    assert (Life.OPENING, CLOUD, m.Verdict) not in SESSION
    assert (Life.CANCELLED, DEVICE, m.Draft) not in SESSION
    assert not [key for key in SESSION if key[:2] == (Life.ENDED, CLOUD)]


def test_every_message_has_its_turn_and_one_side_but_for_four() -> None:
    senders: dict[type, set[Side]] = {}
    for _, side, kind in [*CONNECTION, *SESSION]:
        senders.setdefault(kind, set()).add(side)
    assert set(senders) == set(KINDS)
    assert {kind for kind, sides in senders.items() if len(sides) == 2} == {m.Ping, m.Pong, m.Failure, m.Goodbye}


# Session numbers


def test_a_session_number_is_used_once_and_only_upwards() -> None:
    ends = ready()
    ends.walk([(DEVICE, m.Open)], session=5)
    for session in (5, 4, 1):
        with pytest.raises(ProtocolError, match="out of turn"):
            ends.of[DEVICE].send(SAMPLES[m.Open], session)
        refuses(ends.of[CLOUD], frame_of(m.Open, session))
    ends.walk([(CLOUD, m.Closed)], session=5)
    refuses(ends.of[CLOUD], frame_of(m.Open, 5))
    ends.walk([(DEVICE, m.Open)], session=6)


def test_an_ended_session_stays_ended_whatever_the_others_do() -> None:
    ends = ready()
    for side, kind, session in [(DEVICE, m.Open, 1), (DEVICE, m.Open, 2), (CLOUD, m.Closed, 2), (CLOUD, m.Opened, 1)]:
        ends.say(side, SAMPLES[kind], session)
    assert ends.agreed(2)[1] is Life.ENDED
    ends.say(CLOUD, SAMPLES[m.Closed], 1)
    assert ends.agreed(2)[1] is Life.ENDED
    refuses(ends.of[CLOUD], frame_of(m.Open, 2))


def test_as_many_sessions_as_the_limits_say() -> None:
    ends = ready(Limits(sessions_per_connection=2))
    for session in (1, 2):
        ends.walk([(DEVICE, m.Open)], session)
    with pytest.raises(ProtocolError, match="at most 2 sessions at once") as caught:
        ends.of[DEVICE].send(SAMPLES[m.Open], 3)
    assert caught.value.code == "busy"
    refuses(ends.of[CLOUD], frame_of(m.Open, 3), "busy")
    ends.walk([(DEVICE, m.Cancel)], 1)  # a cancelled session counts until the cloud closes it
    refuses(ends.of[CLOUD], frame_of(m.Open, 3), "busy")
    assert ends.agreed(3) == (State.READY, Life.IDLE)
    ends.walk([(CLOUD, m.Closed)], 1).walk([(DEVICE, m.Open)], 3)
    refuses(ends.of[CLOUD], frame_of(m.Open, 4), "busy")


# Bounds and time


def test_the_largest_frame_once_ready() -> None:
    limits = Limits(frame_bytes=5000)
    overhead = len(m.encode(m.Envelope(1, m.Tokens(bytes(4000))))) - 4000
    for size, fits in [(5000, True), (5001, False)]:
        ends = ready(limits).walk(TO_LIFE[Life.RUNNING], session=1)
        message = m.Tokens(bytes(size - overhead))
        frame = m.encode(m.Envelope(1, message))
        assert len(frame) == size
        if fits:
            assert ends.say(CLOUD, message, 1) == [Received(1, message)]
        else:
            with pytest.raises(ProtocolError, match="the frame has 5001 bytes; at most 5000 are accepted"):
                ends.of[CLOUD].send(message, 1)
            refuses(ends.of[DEVICE], frame, "too-large")
            assert ends.agreed() == (State.READY, Life.RUNNING)


@pytest.mark.parametrize("state", UNREADY)
def test_the_largest_frame_of_a_handshake(state: State) -> None:
    for end in Ends().walk(TO_STATE[state]).of.values():
        assert "at most 1052672" in refuses(end, bytes(SMALL_FRAME_BYTES + 1), "too-large")
        assert "at most 1052672" not in refuses(end, bytes(SMALL_FRAME_BYTES), "bad-frame")
    for end in Ends(Limits(frame_bytes=3000)).of.values():
        assert "at most 3000" in refuses(end, bytes(3001), "too-large")


def test_the_largest_messages_of_a_handshake_fit() -> None:
    ends = Ends().walk(TO_STATE[State.FETCHING])
    ends.say(CLOUD, m.VocabularyPart(511, 512, bytes(m.PART_BYTES)))
    ends = Ends().walk(TO_STATE[State.MAPPING])
    ends.say(DEVICE, m.CommonMap(bytes(2**20)))
    ends.say(DEVICE, m.Ping(bytes(65536)))
    assert ends.agreed()[0] is State.AGREEING


def test_a_larger_frame_is_accepted_only_once_ready() -> None:
    ends = ready().walk(TO_LIFE[Life.RUNNING], session=1)
    ends.say(CLOUD, m.Tokens(bytes(SMALL_FRAME_BYTES)), 1)


@pytest.mark.parametrize("state", [state for state in State if state not in (State.READY, State.CLOSED)])
def test_a_handshake_ends_in_time(state: State) -> None:
    for side in Side:
        end = WireSession(side, Limits(handshake_seconds=10), now=100.0)
        end.state = state
        assert end.receive(frame_of(m.Ping), 110.0) == [Received(0, SAMPLES[m.Ping])]
        assert refuses(end, frame_of(m.Ping), "timeout", now=110.001) == "the handshake took too long"
        assert end.state is state


def test_a_ready_connection_may_be_silent_for_ever() -> None:
    ends = ready()
    for end in ends.of.values():
        assert end.receive(frame_of(m.Ping), 1e9)


# Frames that cross


def test_cancel_and_closed_cross() -> None:
    ends = ready().walk(TO_LIFE[Life.RUNNING], session=1)
    device, cloud = ends.of[DEVICE], ends.of[CLOUD]
    cancel, closed = device.send(m.Cancel(), 1), cloud.send(SAMPLES[m.Closed], 1)
    assert ends.states() == [(State.READY, Life.CANCELLED), (State.READY, Life.ENDED)]
    assert device.receive(closed) == [Received(1, SAMPLES[m.Closed])]
    assert cloud.receive(cancel) == []
    assert ends.agreed() == (State.READY, Life.ENDED)


@pytest.mark.parametrize("last", [m.Closed, m.Failure])
def test_what_was_on_its_way_when_a_session_was_cancelled_is_dropped(last: type) -> None:
    ends = ready().walk([(DEVICE, m.Open)], session=1)
    device, cloud = ends.of[DEVICE], ends.of[CLOUD]
    down = [cloud.send(SAMPLES[kind], 1) for kind in (m.Opened, m.Tokens, m.Verdict, m.Probed)]
    cancel = device.send(m.Cancel(), 1)
    assert [device.receive(frame) for frame in down] == [[]] * 4
    assert cloud.receive(cancel) == [Received(1, m.Cancel())]
    assert ends.say(CLOUD, SAMPLES[last], 1) == [Received(1, SAMPLES[last])]
    assert ends.agreed() == (State.READY, Life.ENDED)


def test_what_was_on_its_way_when_a_session_ended_is_dropped() -> None:
    ends = ready().walk(TO_LIFE[Life.RUNNING], session=1)
    device, cloud = ends.of[DEVICE], ends.of[CLOUD]
    up = [device.send(SAMPLES[kind], 1) for kind in (m.Draft, m.Probe, m.Cancel)]
    failure = cloud.send(SAMPLES[m.Failure], 1)
    assert [cloud.receive(frame) for frame in up] == [[]] * 3
    assert device.receive(failure) == [Received(1, SAMPLES[m.Failure])]
    assert ends.agreed() == (State.READY, Life.ENDED)


def test_a_cancelled_device_sends_nothing_more() -> None:
    ends = ready().walk(TO_LIFE[Life.CANCELLED], session=1)
    with pytest.raises(ProtocolError, match="session 1 is cancelled"):
        ends.of[DEVICE].send(SAMPLES[m.Draft], 1)
    refuses(ends.of[CLOUD], frame_of(m.Draft, 1))


# Counting


def counted(ends: Ends, session: int) -> TrafficCounter:
    """The traffic of a session; both ends must have the same."""
    one, other = (end.counters[session] for end in ends.of.values())
    assert one == other
    return one


def size_on_the_wire(message: m.Message, session: int, side: Side) -> int:
    size = len(m.encode(m.Envelope(session, message)))
    return 8 * (size + header(size, side is DEVICE))


def test_bits_are_those_of_the_real_frames() -> None:
    ends = ready()
    script: list[tuple[str, Side, m.Message]] = [
        ("setup", DEVICE, SAMPLES[m.Open]),
        ("setup", CLOUD, m.Opened(7)),
        ("up", DEVICE, m.Draft(0, 3, bytes(700))),
        ("down", CLOUD, m.Verdict(0, 1, bytes(3))),
        ("up", DEVICE, m.Draft(1, 3, bytes(70_000))),
        ("down", CLOUD, m.Verdict(1, 3, b"")),
        ("down", CLOUD, m.Tokens(bytes(2))),
        ("up", DEVICE, m.Probe(4, 0, 0, 1, 1, bytes(9))),
        ("down", CLOUD, SAMPLES[m.Probed]),
        ("up", DEVICE, m.Cancel()),
        ("down", CLOUD, SAMPLES[m.Closed]),
    ]
    bits = dict.fromkeys(("setup", "up", "down"), 0)
    for direction, side, message in script:
        ends.say(side, message, 4)
        bits[direction] += size_on_the_wire(message, 4, side)
    traffic = counted(ends, 4)
    assert {name: getattr(traffic, name).bits for name in bits} == bits
    assert (traffic.up.payload_bits, traffic.down.payload_bits, traffic.setup.payload_bits) == (8 * 70_700, 8 * 5, 0)
    assert (traffic.up.frames, traffic.down.frames, traffic.setup.frames) == (4, 5, 2)


def test_the_connection_itself_is_not_counted() -> None:
    ends = ready()
    ends.say(DEVICE, m.Ping(bytes(1000)))
    assert [end.counters for end in ends.of.values()] == [{}, {}]


def test_each_session_has_its_own_counter() -> None:
    ends = ready()
    for session in (1, 2):
        ends.walk([*TO_LIFE[Life.RUNNING], *[(DEVICE, m.Draft)] * session], session)
    assert [counted(ends, session).up.frames for session in (1, 2)] == [1, 2]


def test_dropped_frames_crossed_the_link_too() -> None:
    ends = ready().walk([(DEVICE, m.Open)], session=1)
    cancel = ends.of[DEVICE].send(m.Cancel(), 1)
    ends.of[DEVICE].receive(ends.of[CLOUD].send(m.Opened(7), 1))
    ends.of[CLOUD].receive(cancel)
    ends.say(CLOUD, SAMPLES[m.Closed], 1)
    assert (counted(ends, 1).up.frames, counted(ends, 1).down.frames, counted(ends, 1).setup.frames) == (1, 1, 2)


def test_a_settled_session_leaves_nothing_behind() -> None:
    """A traffic that was taken out does not come back with frames that were late."""
    ends = ready().walk(TO_LIFE[Life.RUNNING], session=1)
    late = [ends.of[DEVICE].send(SAMPLES[kind], 1) for kind in (m.Draft, m.Cancel)]
    ends.of[CLOUD].send(SAMPLES[m.Closed], 1)
    ends.of[CLOUD].counters.pop(1)
    assert [ends.of[CLOUD].receive(frame) for frame in late] == [[], []]
    assert ends.of[CLOUD].counters == {}


@pytest.mark.parametrize("frame", [b"", b"\xff", frame_of(m.CommonReady), frame_of(m.Verdict, 1), bytes(9000)])
def test_a_refused_frame_changes_nothing(frame: bytes) -> None:
    ends = ready(Limits(frame_bytes=8000)).walk(TO_LIFE[Life.OPENING], session=1)
    cloud, before = ends.of[CLOUD], repr(ends.of[CLOUD].counters)
    with pytest.raises(ProtocolError):
        cloud.receive(frame)
    assert (ends.agreed(), repr(cloud.counters)) == ((State.READY, Life.OPENING), before)


# Random walks


class Walk:
    """Both ends with frames on their way, and what each said in the order in which it said it."""

    def __init__(self) -> None:
        self.ends = ready(Limits(sessions_per_connection=3))
        self.on_the_way: dict[Side, deque[tuple[bytes, m.Message]]] = {side: deque() for side in Side}

    def send(self, side: Side, kind: type, session: int) -> None:
        """What this end's table forbids must not leave it, and must change nothing."""
        end = self.ends.of[side]
        before = (end.state, end.life(session), repr(end.counters))
        try:
            frame = end.send(SAMPLES[kind], session)
        except ProtocolError:
            assert (end.state, end.life(session), repr(end.counters)) == before
        else:
            self.on_the_way[side].append((frame, SAMPLES[kind]))

    def deliver(self, side: Side) -> None:
        """What a lawful end sent is never refused, however late it comes; a closed end reads no more."""
        if not self.on_the_way[side]:
            return
        frame, message = self.on_the_way[side].popleft()
        if not self.ends.of[side.other].closed:
            assert all(received.message == message for received in self.ends.of[side.other].receive(frame))

    def intrude(self, side: Side, frame: bytes) -> None:
        """Whatever is out of turn is refused, and changes nothing."""
        end = self.ends.of[side.other]
        envelope = m.decode(frame)
        table, place = (CONNECTION, end.state) if envelope.session == 0 else (SESSION, end.life(envelope.session))
        lawful = end.state is State.READY or envelope.session == 0
        if lawful and (place, side, type(envelope.message)) in table:
            return
        before = (end.state, end.life(envelope.session), repr(end.counters))
        with pytest.raises(ProtocolError):
            end.receive(frame)
        assert (end.state, end.life(envelope.session), repr(end.counters)) == before

    def settle(self) -> None:
        while any(self.on_the_way.values()):
            for side in Side:
                self.deliver(side)


SESSION_KINDS = sorted({kind for _, _, kind in SESSION}, key=lambda kind: kind.__name__)
TURNS = st.one_of(
    st.tuples(st.just("send"), st.sampled_from(Side), st.sampled_from(SESSION_KINDS), st.integers(1, 5)),
    st.tuples(st.just("send"), st.just(DEVICE), st.sampled_from([m.Open, m.Draft]), st.integers(1, 5)),
    st.tuples(st.just("deliver"), st.sampled_from(Side), st.just(m.Ping), st.just(0)),
    st.tuples(st.just("intrude"), st.sampled_from(Side), st.sampled_from(KINDS), st.integers(0, 5)),
    st.tuples(st.just("send"), st.sampled_from(Side), st.sampled_from([m.Ping, m.Pong]), st.just(0)),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(TURNS, max_size=60), st.one_of(st.none(), st.sampled_from(Side)))
def test_both_ends_agree_however_frames_cross(turns: list, leaver: Side | None) -> None:
    walk = Walk()
    for act, side, kind, session in turns:
        if act == "send":
            walk.send(side, kind, session)
        elif act == "deliver":
            walk.deliver(side)
        else:
            walk.intrude(side, frame_of(kind, session))
    walk.settle()
    device, cloud = (walk.ends.of[side] for side in Side)
    assert device.counters == cloud.counters
    for session in range(1, 6):
        assert walk.ends.agreed(session)[0] is State.READY
    if leaver is not None:
        walk.send(leaver, m.Goodbye, 0)
        walk.settle()
        assert device.closed
        assert cloud.closed


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(Side), st.sampled_from(KINDS)), max_size=40))
def test_a_handshake_in_lockstep_never_parts_the_ends(moves: list[Move]) -> None:
    ends = Ends()
    for side, kind in moves:
        lawful = (ends.agreed()[0], side, kind) in CONNECTION
        if lawful:
            ends.say(side, SAMPLES[kind])
        else:
            refuses(ends.of[side.other], frame_of(kind))
            with pytest.raises(ProtocolError):
                ends.of[side].send(SAMPLES[kind])
        ends.agreed()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=30), max_size=8), st.sampled_from(State))
def test_any_bytes_at_any_time(frames: list[bytes], state: State) -> None:
    for end in Ends().walk(TO_STATE[state]).of.values():
        for frame in frames:
            try:
                end.receive(frame)
            except ProtocolError:
                continue

"""Lean frames between two ends: whatever crosses, both read the same; and a peer that lies gains nothing by them."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.config import Limits
from antiphon.errors import ProtocolError
from antiphon.wire import messages as m
from antiphon.wire.session import Life, Received, Side, State, WireSession
from support.examples import examples
from wire.session.ends import CLOUD, DEVICE, SAMPLES, TO_LIFE, TO_STATE, UNREADY, Ends, ready, refuses

STEPS = st.one_of(st.integers(0, 3), st.sampled_from([127, 128, 254, 255, 256, 257, 511, 512]))
"""By how much a round rises."""

COUNTS = st.one_of(st.integers(0, 4), st.sampled_from([15, 16, 200]))

TURNS = st.one_of(
    st.tuples(st.just(m.Open), st.sampled_from([1, 2, 5, 120, 254, 255, 256, 257, 600]), st.just(0), st.just(b"")),
    st.tuples(
        st.sampled_from([m.Draft, m.Draft, m.Verdict, m.Verdict, m.Tokens, m.Progress, m.Retry]),
        STEPS,
        COUNTS,
        st.binary(max_size=3),
    ),
    st.tuples(st.sampled_from([m.Cancel, m.Closed, m.Opened]), st.just(0), st.just(0), st.just(b"")),
    st.tuples(st.none(), st.integers(0, 1), st.just(0), st.just(b"")),
)


class Talk:
    """Two ends whose frames take their time, with a few sessions at once, and rounds that rise by leaps."""

    def __init__(self) -> None:
        self.ends = ready(Limits(sessions_per_connection=3)).walk(TO_LIFE[Life.RUNNING], session=1)
        self.on_the_way: dict[Side, deque[tuple[bytes, Received]]] = {side: deque() for side in Side}
        self.rounds: dict[tuple[int, type], int] = {}
        self.sessions = [1]

    def turn(self, kind: type | None, step: int, count: int, payload: bytes) -> None:
        if kind is None:
            self.deliver(list(Side)[step])
        elif kind is m.Open:
            self.sessions.append(self.sessions[-1] + step)
            self.send(DEVICE, SAMPLES[m.Open], self.sessions[-1])
        else:
            for session in self.sessions[-2:]:
                self.send(
                    CLOUD if kind in (m.Verdict, m.Tokens, m.Closed, m.Opened) else DEVICE,
                    *self.made(kind, session, step, count, payload),
                )

    def made(self, kind: type, session: int, step: int, count: int, payload: bytes) -> tuple[m.Message, int]:
        number = self.rounds[session, kind] = self.rounds.get((session, kind), 0) + step
        match kind:
            case m.Draft | m.Verdict:
                return kind(number, count, payload), session
            case m.Tokens:
                return m.Tokens(payload), session
            case m.Progress | m.Retry:
                return kind(number), session
        return SAMPLES[kind], session

    def send(self, side: Side, message: m.Message, session: int) -> None:
        try:
            frame = self.ends.of[side].send(message, session)
        except ProtocolError:
            return  # out of turn: it never leaves, and changes nothing
        self.on_the_way[side].append((frame, Received(session, message)))

    def deliver(self, side: Side) -> None:
        if self.on_the_way[side]:
            frame, sent = self.on_the_way[side].popleft()
            end = self.ends.of[side.other]
            dropped = end.life(sent.session) in (Life.ENDED, Life.CANCELLED)
            arrived = end.receive(frame)
            assert arrived == [sent] or (dropped and not arrived)


@examples(300)
@given(st.lists(TURNS, max_size=80))
def test_what_is_sent_is_what_arrives(turns: list) -> None:
    talk = Talk()
    for turn in turns:
        talk.turn(*turn)
    while any(talk.on_the_way.values()):
        for side in Side:
            talk.deliver(side)
    assert talk.ends.of[DEVICE].counters == talk.ends.of[CLOUD].counters


def test_a_long_answer_has_two_bytes_of_framing_throughout() -> None:
    ends = ready().walk(TO_LIFE[Life.RUNNING], session=1)
    for number in range(2000):
        assert len(ends.of[DEVICE].send(m.Draft(number, 2, b"abc"), 1)) == 5
        assert len(ends.of[CLOUD].send(m.Verdict(number, 1, b"de"), 1)) == 4


def test_a_session_that_the_other_end_has_not_heard_of_changes_nothing() -> None:
    ends = ready().walk(TO_LIFE[Life.RUNNING], session=1)
    ends.of[DEVICE].send(SAMPLES[m.Open], 700)
    verdict = ends.of[CLOUD].send(m.Verdict(0, 1, b""), 1)
    assert verdict == b"\x22\x00"
    assert ends.of[DEVICE].receive(verdict) == [Received(1, m.Verdict(0, 1, b""))]


@pytest.mark.parametrize("state", UNREADY)
def test_a_lean_frame_before_a_connection_is_ready(state: State) -> None:
    for end in Ends().walk(TO_STATE[state]).of.values():
        for frame in (bytes(2), b"\x01\x00\x01", b"\x40\x00ab"):
            refuses(end, frame)


def test_a_lean_frame_of_a_session_that_nobody_opened() -> None:
    ends = ready().walk(TO_LIFE[Life.RUNNING], session=3)
    for frame in (b"\x01\x00\x00", b"\x01\x00\x04", b"\x01\x00\xff"):
        refuses(ends.of[CLOUD], frame)
    assert ends.of[CLOUD].receive(b"\x01\x00\x02") == []  # below the newest: it may have ended, and what comes late is dropped
    assert ends.of[CLOUD].receive(b"\x00\x00") == [Received(3, m.Draft(0, 0, b""))]


def test_a_lean_frame_is_refused_where_the_full_one_is() -> None:
    ends = ready().walk(TO_LIFE[Life.CANCELLED], session=1)
    assert "Draft is out of turn: session 1 is cancelled" in refuses(ends.of[CLOUD], b"\x00\x00")
    assert "Verdict is out of turn" in refuses(ends.of[CLOUD], b"\x20\x00")
    assert ends.of[DEVICE].receive(b"\x20\x00") == []


def test_a_frame_that_is_refused_leaves_no_trace() -> None:
    ends = ready().walk(TO_LIFE[Life.RUNNING], session=1)
    frame = m.encode(m.Envelope(900, m.Draft(800, 1, b"")))
    refuses(ends.of[CLOUD], frame)
    with pytest.raises(ProtocolError):
        ends.of[DEVICE].send(m.Draft(800, 1, b""), 900)
    with pytest.raises(ProtocolError):
        ends.of[DEVICE].send(m.Draft(800, 1, bytes(2**25)), 1)
    assert ends.of[DEVICE].send(m.Draft(1, 1, b""), 1) == b"\x02\x01"
    assert ends.of[CLOUD].receive(b"\x02\x01") == [Received(1, m.Draft(1, 1, b""))]


def test_what_is_kept_of_sessions_goes_with_them() -> None:
    ends = ready()
    for session in range(1, 200):
        ends.walk(TO_LIFE[Life.RUNNING], session)
        for number in range(3):
            ends.say(DEVICE, m.Draft(number, 1, b""), session)
            ends.say(CLOUD, m.Verdict(number, 1, b""), session)
        late = ends.of[DEVICE].send(m.Draft(3, 1, b""), session)
        ends.walk([(CLOUD, m.Closed)], session)
        ends.of[CLOUD].receive(late)
    for end in ends.of.values():
        assert [frames._rounds for frames in end._frames.values()] == [{}, {}]


@examples(200)
@given(st.lists(st.binary(min_size=1, max_size=6), max_size=12), st.sampled_from(Side), st.integers(1, 2000))
def test_any_bytes_touch_no_session_but_those_that_are_open(frames: list[bytes], side: Side, session: int) -> None:
    ends = ready().walk(TO_LIFE[Life.RUNNING], session)
    end: WireSession = ends.of[side]
    for frame in frames:
        try:
            arrived = end.receive(bytes([frame[0] % 128]) + frame[1:])
        except ProtocolError:
            continue
        assert {received.session for received in arrived} <= {session}

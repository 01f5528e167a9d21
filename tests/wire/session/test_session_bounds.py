"""A session number is used once; sessions, frames and handshakes have bounds."""

import pytest

from antiphon.config import Limits
from antiphon.errors import ProtocolError
from antiphon.wire import messages as m
from antiphon.wire.lean import HEAD_BYTES
from antiphon.wire.session import (
    SMALL_FRAME_BYTES,
    Life,
    Received,
    Side,
    State,
    WireSession,
)
from wire.session.ends import CLOUD, DEVICE, SAMPLES, TO_LIFE, TO_STATE, UNREADY, Ends, frame_of, ready, refuses


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


def test_the_largest_frame_once_ready() -> None:
    limits = Limits(frame_bytes=5000)
    for size, fits in [(5000, True), (5001, False)]:
        ends = ready(limits).walk(TO_LIFE[Life.RUNNING], session=1)
        message = m.Tokens(bytes(size - HEAD_BYTES))
        frame = b"\x40\x00" + message.payload
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
        assert "at most 1052672" not in refuses(end, b"\xff" * SMALL_FRAME_BYTES, "bad-frame")
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

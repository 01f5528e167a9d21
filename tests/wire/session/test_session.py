"""Two ends of a connection talking: the table of who says what, and when."""

from itertools import product

import pytest

from antiphon.config import Limits
from antiphon.errors import ProtocolError
from antiphon.wire import messages as m
from antiphon.wire.session import (
    CONNECTION,
    SESSION,
    Life,
    Received,
    Side,
    State,
)
from wire.session.ends import CLOUD, DEVICE, HANDSHAKE, KINDS, SAMPLES, TO_LIFE, TO_STATE, Ends, frame_of, out_of_turn, ready


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

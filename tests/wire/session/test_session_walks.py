"""However frames cross, both ends agree; any bytes at any time are frames or one refusal."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.config import Limits
from antiphon.errors import ProtocolError
from antiphon.wire import messages as m
from antiphon.wire.session import (
    CONNECTION,
    SESSION,
    Side,
    State,
)
from support.examples import examples
from wire.session.ends import DEVICE, KINDS, SAMPLES, TO_STATE, Ends, Move, frame_of, ready, refuses


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


@examples(120)
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


@examples(60)
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


@examples(100)
@given(st.lists(st.binary(max_size=30), max_size=8), st.sampled_from(State))
def test_any_bytes_at_any_time(frames: list[bytes], state: State) -> None:
    for end in Ends().walk(TO_STATE[state]).of.values():
        for frame in frames:
            try:
                end.receive(frame)
            except ProtocolError:
                continue

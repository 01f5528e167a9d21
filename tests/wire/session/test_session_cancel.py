"""Cancelling crosses with closing, and what was on its way is dropped."""

import pytest

from antiphon.errors import ProtocolError
from antiphon.wire import messages as m
from antiphon.wire.session import (
    Life,
    Received,
    State,
)
from wire.session.ends import CLOUD, DEVICE, SAMPLES, TO_LIFE, frame_of, ready, refuses


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

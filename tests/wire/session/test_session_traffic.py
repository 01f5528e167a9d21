"""Every session counts its own bits honestly."""

from antiphon.wire import messages as m
from antiphon.wire.lean import HEAD_BYTES
from antiphon.wire.session import (
    Life,
    Side,
    TrafficCounter,
)
from wire.session.ends import CLOUD, DEVICE, SAMPLES, TO_LIFE, Ends, header, ready


def counted(ends: Ends, session: int) -> TrafficCounter:
    """The traffic of a session; both ends must have the same."""
    one, other = (end.counters[session] for end in ends.of.values())
    assert one == other
    return one


def size_on_the_wire(message: m.Message, session: int, side: Side) -> int:
    lean = isinstance(message, m.Draft | m.Verdict | m.Tokens)
    size = HEAD_BYTES + len(message.payload) if lean else len(m.encode(m.Envelope(session, message)))
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

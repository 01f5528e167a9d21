"""Lean frames: which messages fit, byte by byte, and that nothing else can be read out of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import ProtocolError
from antiphon.wire import messages as m
from antiphon.wire.lean import HEAD_BYTES, KINDS, MAX_COUNT, MAX_ROUND, ROUNDS, SESSIONS, Frames
from support.examples import examples
from wire.message_samples import KINDS as ALL_KINDS
from wire.message_samples import sample

LEAN = 0x80
"""A lean frame begins below this, an envelope does not."""


def after(*before: m.Envelope) -> Frames:
    """A direction in which these crossed."""
    frames = Frames()
    for envelope in before:
        frames.crossed(envelope)
    return frames


def opened(session: int = 1) -> m.Envelope:
    return m.Envelope(session, m.Opened(7))


def is_lean(frame: bytes) -> bool:
    return frame[0] < LEAN


@pytest.mark.parametrize(
    ("before", "envelope", "frame"),
    [
        ([opened()], m.Envelope(1, m.Draft(0, 2, b"\xab\xcd")), "04 00 ab cd"),
        ([opened()], m.Envelope(1, m.Draft(0, 0, b"")), "00 00"),
        ([opened()], m.Envelope(1, m.Draft(255, 15, b"")), "1e ff"),
        ([opened()], m.Envelope(1, m.Verdict(3, 1, b"\x04")), "22 03 04"),
        ([opened()], m.Envelope(1, m.Tokens(b"\x11\x22")), "40 00 11 22"),
        ([opened()], m.Envelope(1, m.Progress(7)), "60 07"),
        ([opened(), m.Envelope(1, m.Verdict(200, 0, b""))], m.Envelope(1, m.Verdict(258, 15, b"")), "3e 02"),
        ([opened(2)], m.Envelope(1, m.Verdict(1, 2, b"\x04")), "25 01 01 04"),
        ([opened(700)], m.Envelope(700, m.Tokens(b"")), "40 00"),
        ([opened(700)], m.Envelope(699, m.Tokens(b"")), "41 00 bb"),
        ([opened(700)], m.Envelope(445, m.Tokens(b"")), "41 00 bd"),
    ],
)
def test_known_frames(before: list[m.Envelope], envelope: m.Envelope, frame: str) -> None:
    assert after(*before).pack(envelope) == bytes.fromhex(frame)
    assert after(*before).unpack(bytes.fromhex(frame)) == envelope


@pytest.mark.parametrize(
    ("message", "session", "fits"),
    [
        (m.Draft(100, 15, b""), 600, True),
        (m.Draft(100, 16, b""), 600, False),
        (m.Draft(99, 1, b""), 600, False),
        (m.Draft(355, 1, b""), 600, True),
        (m.Draft(356, 1, b""), 600, False),
        (m.Verdict(0, 16, b""), 600, False),
        (m.Verdict(256, 1, b""), 600, False),
        (m.Progress(255), 600, True),
        (m.Progress(256), 600, False),
        (m.Tokens(b"a"), 345, True),
        (m.Tokens(b"a"), 344, False),
        (m.Tokens(b"a"), 601, False),
        (m.Tokens(b"a"), 0, False),
        (m.Retry(0), 600, False),
        (m.Resampling(0, b""), 600, False),
        (m.Realign(0, 0, 0, b""), 600, False),
    ],
)
def test_what_fits(message: m.Message, session: int, fits: bool) -> None:
    frames = after(opened(600), m.Envelope(600, m.Draft(100, 0, b"")))
    frame = frames.pack(m.Envelope(session, message))
    assert is_lean(frame) == fits
    assert frames.unpack(frame) == m.Envelope(session, message)
    if fits:
        assert len(frame) == HEAD_BYTES + (session < 600) + m.payload_bits(message) // 8


def test_rounds_are_those_of_the_session_and_of_the_kind() -> None:
    frames = after(opened(1), opened(2), m.Envelope(1, m.Draft(300, 1, b"")))
    assert is_lean(frames.pack(m.Envelope(1, m.Draft(301, 1, b""))))
    assert not is_lean(frames.pack(m.Envelope(2, m.Draft(301, 1, b""))))
    assert not is_lean(frames.pack(m.Envelope(1, m.Progress(301))))
    frames.forget(1)
    assert not is_lean(frames.pack(m.Envelope(1, m.Draft(301, 1, b""))))


def test_a_round_that_falls_goes_in_full_and_takes_nothing_back() -> None:
    frames = after(opened(), m.Envelope(1, m.Progress(300)), m.Envelope(1, m.Progress(10)))
    assert not is_lean(frames.pack(m.Envelope(1, m.Progress(11))))
    assert frames.unpack(bytes.fromhex("60 2c")) == m.Envelope(1, m.Progress(300))


@pytest.mark.parametrize("kind", [kind for kind in ALL_KINDS if kind not in KINDS])
def test_all_other_messages_go_in_full(kind: type) -> None:
    envelope = m.Envelope(1, sample(kind))
    assert after(opened()).pack(envelope) == m.encode(envelope)


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_takes_the_full_form_too(kind: type) -> None:
    frames, envelope = after(opened()), m.Envelope(1, sample(kind))
    assert is_lean(frames.pack(envelope))
    assert frames.unpack(m.encode(envelope)) == envelope


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("00", "bad-frame"),
        ("01 00", "bad-frame"),
        ("42 00", "bad-frame"),  # tokens with a count
        ("40 01", "bad-frame"),  # tokens with a round
        ("62 00", "bad-frame"),  # progress with a count
        ("60 00 00", "bad-frame"),  # progress with a payload
        ("01 00 00", "out-of-turn"),
        ("01 00 06", "out-of-turn"),
        ("01 00 ff", "out-of-turn"),
    ],
)
def test_what_is_no_lean_frame(frame: str, code: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        after(opened(5)).unpack(bytes.fromhex(frame))
    assert caught.value.code == code


@pytest.mark.parametrize("kind", [m.Draft, m.Verdict, m.Progress])
def test_no_round_above_the_bound(kind: type) -> None:
    fields = {m.Draft: (MAX_ROUND, 0, b""), m.Verdict: (MAX_ROUND, 0, b""), m.Progress: (MAX_ROUND,)}[kind]
    frames = after(opened(), m.Envelope(1, kind(*fields)))
    last = frames.pack(m.Envelope(1, kind(*fields)))
    assert is_lean(last)
    with pytest.raises(ProtocolError, match="round above"):
        frames.unpack(last[:1] + b"\x01" + last[2:])
    full = m.encode(m.Envelope(1, kind(MAX_ROUND + 1, *fields[1:])))
    with pytest.raises(ProtocolError):
        frames.unpack(full)


def test_before_anything_crossed_there_is_no_lean_frame() -> None:
    for frame in (b"\0\0", b"\x01\0\0", b"\x40\0ab"):
        with pytest.raises(ProtocolError) as caught:
            Frames().unpack(frame)
        assert caught.value.code == "out-of-turn"


def test_a_frame_that_never_left_its_writer_harms_no_other_session() -> None:
    writer, reader = after(opened(3), opened(4), opened(5)), after(opened(3))  # no frame of 4 and 5 was let go
    for message in (m.Draft(0, 1, b"a"), m.Tokens(b"b"), m.Progress(3)):
        envelope = m.Envelope(3, message)
        assert reader.unpack(writer.pack(envelope)) == envelope


PAST = st.lists(
    st.builds(
        m.Envelope,
        st.one_of(st.integers(0, 3), st.integers(0, 2000), st.integers(0, 2**31 - 1)),
        st.one_of(
            st.builds(m.Opened, st.just(7)),
            *[
                st.integers(0, most).map(
                    lambda value, kind=kind: kind(value, 1, b"") if kind is not m.Progress else kind(value)
                )
                for kind in (m.Draft, m.Verdict, m.Progress)
                for most in (600, MAX_ROUND)
            ],
        ),
    ),
    max_size=8,
)


@examples(300)
@given(PAST, st.integers(0, LEAN - 1), st.binary(max_size=6))
def test_any_bytes_are_one_message_near_what_crossed_before_or_refused(past: list, first: int, rest: bytes) -> None:
    frame, frames = bytes([first]) + rest, after(*past)
    newest = max((envelope.session for envelope in past), default=0)
    try:
        envelope = frames.unpack(frame)
    except ProtocolError:
        return
    assert max(0, newest - SESSIONS) < envelope.session <= newest
    assert m.decode(m.encode(envelope)) == envelope, "no bound of a field is broken"
    packed = frames.pack(envelope)
    spelled = envelope.session == newest and first % 2
    assert packed == (bytes([first - 1, rest[0]]) + rest[2:] if spelled else frame), "one message has one lean form"
    rounds = [one.message for one in past if (one.session, type(one.message)) == (envelope.session, type(envelope.message))]
    last, now = max(map(round_of, rounds), default=0), round_of(envelope.message)
    assert last <= now < last + ROUNDS


def round_of(message: m.Message) -> int:
    match message:
        case m.Draft(number) | m.Verdict(number) | m.Progress(number):
            return number
        case _:
            return 0


def test_the_numbers_fill_the_head() -> None:
    assert len(KINDS) * (MAX_COUNT + 1) * 2 * ROUNDS == 2 ** (8 * HEAD_BYTES - 1)
    assert SESSIONS == 2**8

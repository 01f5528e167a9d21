"""Text at complete characters, stop strings wherever they fall, tokens trimmed with the text."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.device.answer import Answer, Piece
from antiphon.device.output.text import TextStream
from antiphon.methods.effects import Emit, Emitted, Kind
from antiphon.models.toy import toy_vocabulary
from antiphon.vocabulary import identity
from support.examples import examples


def streamed(chunks: Sequence[bytes], stop: Sequence[str] = ()) -> tuple[list[str], bool]:
    stream = TextStream(stop)
    shown = [stream.feed(chunk) for chunk in chunks]
    return [*shown, stream.feed(b"", final=True)], stream.stopped


def test_characters_are_never_cut() -> None:
    data = "né 한국 🙂".encode()
    shown, _ = streamed([bytes([byte]) for byte in data])
    assert "".join(shown) == "né 한국 🙂"
    assert not any("\N{REPLACEMENT CHARACTER}" in text for text in shown)


def test_what_stays_broken_is_replaced_at_the_end() -> None:
    shown, _ = streamed([b"a", "🙂".encode()[:2]])
    assert shown == ["a", "", "\N{REPLACEMENT CHARACTER}"]


@given(st.text(max_size=30), st.data())
def test_any_cut_of_any_text(text: str, data: st.DataObject) -> None:
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    chunks = [raw[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    shown, stopped = streamed(chunks, stop=("\x00stop",))
    assert "".join(shown) == text or stopped


@given(st.text("ab", max_size=20), st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=3), st.data())
def test_a_stop_string_cuts_as_one_look_at_the_whole_would(text: str, stops: list[str], data: st.DataObject) -> None:
    """Compared with the naive reference: the first moment at which a stop string is complete cuts at its start."""
    shown, stopped = streamed([char.encode() for char in text], stops)
    expected, found = text, False
    for end in range(1, len(text) + 1):
        hits = [text[:end].find(stop) for stop in stops if stop in text[:end]]
        if hits:
            expected, found = text[: min(hits)], True
            break
    assert ("".join(shown), stopped) == (expected, found)


VOCABULARY = toy_vocabulary([b"he", b"ll", b"o!", b"o", b""])


def answer(stop: Sequence[str], rounds: Sequence[Sequence[int]]) -> Answer:
    found = Answer(identity(VOCABULARY), stop, started=0.0)
    for index, numbers in enumerate(rounds):
        found.take(Emit(tuple(Emitted(number, Kind.ACCEPTED) for number in numbers)), now=float(index + 1))
    found.end()
    return found


@pytest.mark.parametrize(
    ("stop", "text", "numbers"),
    [
        ((), "hello!", [0, 1, 2, 4]),
        (("!",), "hello", [0, 1, 2]),  # inside a token: the token that holds the text before it stays
        (("o!",), "hell", [0, 1]),
        (("lo",), "hel", [0, 1]),
        (("he",), "", []),
    ],
)
def test_a_stop_string_inside_an_accepted_run(stop: tuple[str, ...], text: str, numbers: list[int]) -> None:
    found = answer(stop, [[0, 1, 2, 4]])
    assert (found.text, found.numbers) == (text, numbers)


def test_the_end_token_adds_no_text() -> None:
    assert answer((), [[0], [4]]).text == "he"


def test_what_was_held_back_has_the_mark_of_its_last_token() -> None:
    """A stop string that does not come after all; half a character."""
    found = Answer(identity(VOCABULARY), ("lo?",), started=0.0)
    shown = found.take(Emit((Emitted(0, Kind.CONFIRMED), Emitted(1, Kind.CHANGED))), now=1.0)
    shown += found.end()
    assert shown == [Piece("he", (0,), Kind.CONFIRMED), Piece("l", (1,), Kind.CHANGED), Piece("l", (), Kind.CHANGED)]
    nothing = Answer(identity(VOCABULARY), (), started=0.0)
    assert nothing.end() == []


@examples(200)
@given(
    rounds=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), max_size=6),
    stop=st.lists(st.sampled_from(["!", "lo", "l", "\ufffd", "o!h", "\u20ac", "\u20ace"]), max_size=2, unique=True),
    ended=st.booleans(),
)
def test_pieces_joined_are_the_answer(rounds: list[list[int]], stop: list[str], ended: bool) -> None:
    """Texts and tokens: also of characters in parts, of broken ones, of tokens without text, and where a stop string comes."""
    pieces = (b"he", b"l", b"lo", b"!", b"\xe2\x82", b"\xac", b"\xff", b"o!", b"h\xe2", b"")
    found = Answer(identity(toy_vocabulary(pieces)), stop, started=0.0)
    shown: list[Piece] = []
    for numbers in [*rounds, *([[9]] if ended else [])]:
        shown += found.take(Emit(tuple(Emitted(number, Kind.ACCEPTED) for number in numbers)), now=1.0)
        assert "".join(piece.text for piece in shown) == found.text
    shown += found.end()
    assert "".join(piece.text for piece in shown) == found.text
    assert [token for piece in shown for token in piece.tokens] == found.numbers


def test_intervals() -> None:
    found = answer((), [[0, 1], [2]])
    assert found.intervals() == [0.0, 1.0]
    assert found.first_token_s == 1.0
    assert found.seconds == 2.0

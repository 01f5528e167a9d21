"""What follows an answer for now: its text, what stands of it once tokens are settled, and how many were revised."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.device.answer import Answer, Piece
from antiphon.device.output.text import TextStream
from antiphon.methods.effects import Emit, Emitted, Kind, Provisional
from antiphon.models.toy import toy_vocabulary
from antiphon.vocabulary import identity
from support.examples import examples

PIECES = (b"he", b"l", b"lo", b"!", b"\xe2\x82", b"\xac", b"\xff", b"o!", b"h\xe2", b"")
VOCABULARY = identity(toy_vocabulary(PIECES))


def answer(*stop: str) -> Answer:
    return Answer(VOCABULARY, stop, started=0.0)


def settle(found: Answer, *numbers: int) -> list[Piece]:
    return found.take(Emit(tuple(Emitted(number, Kind.ACCEPTED) for number in numbers)), now=1.0)


def propose(found: Answer, *numbers: int) -> list[Piece]:
    return found.propose(Provisional(numbers))[0]


def ahead(text: str, *tokens: int) -> Piece:
    return Piece(text, tokens, Kind.LOCAL, provisional=True)


def test_what_is_settled_comes_first_and_the_rest_again_behind_it() -> None:
    found = answer()
    assert settle(found, 0) == [Piece("he", (0,), Kind.ACCEPTED)]
    assert propose(found, 1) == [ahead("l", 1)]
    assert propose(found, 1, 2, 3) == [ahead("llo!", 1, 2, 3)]
    assert settle(found, 1, 2) == [Piece("l", (1,), Kind.ACCEPTED), Piece("lo", (2,), Kind.ACCEPTED), ahead("!", 3)]
    assert (found.unsettled.written, found.unsettled.revised) == (3, 0)
    assert settle(found, 7) == [Piece("o!", (7,), Kind.ACCEPTED), ahead("")]
    assert (found.unsettled.written, found.unsettled.revised) == (3, 1)
    assert settle(found, 0) == [Piece("he", (0,), Kind.ACCEPTED)], "with nothing provisional nothing is said of it"
    assert found.text == "helloo!he"


def test_it_is_no_part_of_the_answer() -> None:
    found = answer()
    settle(found, 0)
    propose(found, 1, 2)
    assert (found.text, found.numbers, found.exact) == ("he", [0], None)
    assert propose(found) == [ahead("")]
    assert (found.unsettled.written, found.unsettled.revised) == (2, 2)
    assert propose(found) == []


def test_what_stood_there_before_is_not_written_twice() -> None:
    found = answer()
    propose(found, 0, 1)
    propose(found, 0, 1, 2)
    settle(found, 0)
    propose(found, 1, 2, 3)
    assert (found.unsettled.written, found.unsettled.revised) == (4, 0)
    propose(found, 1, 7)
    assert (found.unsettled.written, found.unsettled.revised) == (5, 2)


def test_a_character_in_parts_is_shown_once_it_is_whole() -> None:
    """Also where its beginning stands and its end is provisional."""
    found = answer()
    assert propose(found, 4) == [ahead("", 4)]
    assert propose(found, 4, 5) == [ahead("\N{EURO SIGN}", 4, 5)]
    assert settle(found, 4) == [ahead("\N{EURO SIGN}", 5)]
    assert settle(found, 5) == [Piece("\N{EURO SIGN}", (4, 5), Kind.ACCEPTED), ahead("")]


@pytest.mark.parametrize("numbers", [(1, 2, 3), (1, 7)])
def test_a_stop_string_hides_what_is_behind_it_and_ends_nothing(numbers: tuple[int, ...]) -> None:
    found = answer("o!")
    pieces, stopped = found.propose(Provisional(numbers))
    assert ([piece.text for piece in pieces], stopped) == (["ll" if numbers[1] == 2 else "l"], True)
    assert not found.stopped
    settle(found, 0)
    assert (found.text, found.stopped, found.unsettled.revised) == ("he", False, len(numbers))


def test_a_stop_string_begins_in_what_stands() -> None:
    found = answer("eh")
    assert [piece.text for piece in settle(found, 0)] == ["h"]
    assert found.propose(Provisional((0,))) == ([ahead("", 0)], True)
    assert [piece.text for piece in propose(found, 1)] == ["el"]


def seen(pieces: Sequence[Piece], settled: str, provisional: str) -> tuple[str, str]:
    """As who reads along does it: each piece takes the place of what was provisional."""
    for piece in pieces:
        settled, provisional = (settled, piece.text) if piece.provisional else (settled + piece.text, "")
    return settled, provisional


def text_of(numbers: Sequence[int], stop: Sequence[str]) -> str:
    return TextStream(stop).feed(b"".join(PIECES[number] for number in numbers))


@examples(300)
@given(
    rounds=st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 8), max_size=5)), max_size=8),
    stop=st.lists(st.sampled_from(["lo", "l!", "\ufffd", "o!h", "\u20ac", "\u20ace"]), max_size=2, unique=True),
    stands=st.integers(0, 3),
)
def test_who_reads_along_sees_what_there_is(rounds: list[tuple[bool, list[int]]], stop: list[str], stands: int) -> None:
    found, view, tail = answer(*stop), ("", ""), list[int]()
    for settles, numbers in rounds:
        if found.stopped:
            break
        if settles:
            numbers = [*tail[:stands], *numbers]
            view = seen(settle(found, *numbers), *view)
            tail = tail[len(numbers) :] if tail[: len(numbers)] == numbers and not found.stopped else []
        else:
            tail = numbers
            view = seen(propose(found, *numbers), *view)
        whole = text_of([*found.written, *tail], stop)
        assert view[0] == found.text
        assert view[1] == (whole[len(found.text) :] if tail else "")
        assert found.unsettled.numbers == tail

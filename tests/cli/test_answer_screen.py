"""An answer on a terminal: what is provisional is written over once it is settled, and what differs is seen to."""

import io
import logging
import os
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from antiphon.cli.answer_screen import DIM, KEPT, PLAIN, REVISED, SCROLLED_AWAY, Terminal, answer_screen
from antiphon.device.answer import Piece
from antiphon.errors import LinkError
from antiphon.methods.effects import Kind
from support.examples import examples

ESCAPE = re.compile(r"\x1b\[(\d*(?:;\d+)*)([AGJm])")


class Emulated:
    """A terminal of so many columns and rows, as xterm is: a full row is left only with the next character."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.rows: list[dict[int, tuple[str, str]]] = [{}]
        self._row = self._column = self._top = 0
        self._style = PLAIN

    def write(self, data: str) -> None:
        while data:
            if found := ESCAPE.match(data):
                self._steer(found[2], found[1])
                data = data[found.end() :]
            else:
                self._print(data[0])
                data = data[1:]

    def _steer(self, what: str, given: str) -> None:
        match what:
            case "A":
                self._row = max(self._top, self._row - int(given))
            case "G":
                self._column = min(int(given), self.width) - 1
            case "J":
                del self.rows[self._row + 1 :]
                self.rows[self._row] = {at: cell for at, cell in self.rows[self._row].items() if at < self._column}
            case "m":
                self._style = PLAIN if given == "0" else given

    def _print(self, character: str) -> None:
        cells = cell_len(character)
        if character == "\n" or self._column + cells > self.width:
            self._row, self._column = self._row + 1, 0
            self.rows += [{}] * (self._row == len(self.rows))
            self._top = max(self._top, self._row - self.height + 1)
        if character != "\n":
            self.rows[self._row][self._column] = character, self._style
            self._column += cells

    @property
    def text(self) -> str:
        return "\n".join("".join(row[at][0] for at in sorted(row)) for row in self.rows)

    def styled(self, style: str) -> str:
        return "".join(character for row in self.rows for character, own in row.values() if own == style)


class Seen:
    """A terminal that shows an answer, and what can be seen on it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, width: int = 20, height: int = 10, *, keeps: bool = False) -> None:
        monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((width, height)))
        self._out = io.StringIO()
        monkeypatch.setattr(sys, "stdout", self._out)
        monkeypatch.setattr(sys, "stderr", self._out)
        self.screen, self.terminal = Emulated(width, height), Terminal(keeps=keeps)

    def show(self, *pieces: Piece) -> str:
        self.terminal.show(pieces)
        return self.read()

    def read(self) -> str:
        self.screen.write(self._out.getvalue())
        self._out.seek(0)
        self._out.truncate()
        return self.screen.text


def settled(text: str, kind: Kind = Kind.BONUS) -> Piece:
    return Piece(text, (1,), kind)


def ahead(text: str) -> Piece:
    return Piece(text, (), Kind.LOCAL, provisional=True)


def test_what_is_settled_takes_the_place_of_what_was_provisional(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen(monkeypatch)
    assert seen.show(settled("The moon ")) == "The moon "
    assert seen.show(ahead("is made of cheese and\nround.")) == "The moon is made of \ncheese and\nround."
    assert seen.screen.styled(DIM) == "is made of cheese andround."
    assert seen.show(settled("is "), ahead("made of cheese and\nround.")) == "The moon is made of \ncheese and\nround."
    assert seen.screen.styled(PLAIN) == "The moon is "
    assert seen.show(settled("made of rock"), ahead("")) == "The moon is made of \nrock"
    assert seen.show(settled(", and grey, and round.")) == "The moon is made of \nrock, and grey, and \nround."
    assert seen.screen.styled(REVISED) == "rock, and grey, a", "as many characters as were shown otherwise"
    assert seen.screen.styled(DIM) == ""


def test_what_was_taken_away_before_its_place_is_settled_is_revised_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first token may be part of a character, or held back as it may begin a stop string: no text, but the line is over."""
    seen = Seen(monkeypatch)
    seen.show(settled("The moon "), ahead("is made"))
    assert seen.show(settled(""), ahead("")) == "The moon "
    seen.terminal.notice("antiphon: lost")
    assert seen.show(settled("is rock, ")) == "The moon \nantiphon: lost\nis rock, ", "what was taken away comes back no more"
    assert seen.screen.styled(REVISED) == "rock", "as many characters as were shown otherwise"


def test_what_is_kept_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen(monkeypatch, keeps=True)
    assert seen.show(settled("ab"), settled("cd", Kind.LOCAL), settled("ef")) == "abcdef"
    assert seen.screen.styled(KEPT) == "cd"
    seen = Seen(monkeypatch)
    assert seen.show(settled("cd", Kind.LOCAL)) == "cd"
    assert seen.screen.styled(PLAIN) == "cd"


def test_what_has_scrolled_away_is_left_and_what_is_settled_begins_below(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen(monkeypatch, height=3)
    seen.show(settled("0\n"), ahead("1\n"))
    for lines in range(2, 6):
        seen.show(ahead("".join(f"{line}\n" for line in range(1, lines + 1))))
    assert seen.read() == "0\n1\n2\n3\n4\n5\n"
    expected = (
        f"0\n1\n2\n3\n4\n5\n\n{SCROLLED_AWAY[:20]}\n{SCROLLED_AWAY[20:40]}\n{SCROLLED_AWAY[40:60]}\n{SCROLLED_AWAY[60:]}\n"
    )
    assert seen.show(settled("1\n"), ahead("2\n3\n4\n5\n")) == expected + "1\n", "what does not fit is not shown as a whole"
    assert seen.show(settled("2\n3\n4\n"), ahead("5\n")) == expected + "1\n2\n3\n4\n5\n"
    assert seen.show(settled("6"), ahead("")) == expected + "1\n2\n3\n4\n6"


def test_a_notice_has_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen(monkeypatch)
    seen.show(settled("The moon "), ahead("is"))
    seen.terminal.notice("antiphon: lost")
    assert seen.read() == "The moon \nantiphon: lost\nis"
    assert seen.show(settled("was"), ahead("")) == "The moon \nantiphon: lost\nwas"


@examples(300)
@given(
    batches=st.lists(
        st.tuples(st.integers(0, 30), st.text("a b\n\N{HANGUL SYLLABLE GAG}", max_size=30), st.booleans()), max_size=8
    ),
    width=st.integers(4, 12),
)
def test_the_screen_shows_the_text_whatever_comes(batches: list[tuple[int, str, bool]], width: int) -> None:
    """As if all of it had been printed at once, but that a line that was full may be followed by an empty one."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        seen, text, tail = Seen(monkeypatch, width, 1000), "", ""
        for stands, more, settles in batches:
            pieces = [ahead(more)]
            if settles:
                text, rest = text + tail[:stands] + more, "" if more else tail[stands:]
                pieces, more = [settled(tail[:stands]), settled(more), ahead(rest)], rest
            tail = more
            shown = seen.show(*pieces)
            whole = Emulated(width, 1000)
            whole.write(text + tail)
            assert shown.replace("\n", "") == whole.text.replace("\n", "")
            if "\n" not in text + tail:
                assert shown == whole.text
            assert seen.screen.styled(DIM) == tail.replace("\n", "")


def logged(screen_is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> str:
    class Out(io.StringIO):
        def __init__(self) -> None:
            super().__init__()
            self.buffer = io.BytesIO()

        def isatty(self) -> bool:
            return screen_is_terminal

    out = Out()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", out)
    with pytest.raises(LinkError):
        fails(says=screen_is_terminal)
    return out.getvalue() + out.buffer.getvalue().decode()


def fails(*, says: bool) -> None:
    with answer_screen(keeps=False) as screen:
        screen.show([settled("The "), ahead("moon")])
        if says:
            logging.getLogger("antiphon.device").warning("antiphon: lost")
        raise LinkError("gone")


def test_a_pipe_gets_what_is_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert logged(False, monkeypatch) == "The "


def test_a_terminal_gets_notices_and_a_new_line_before_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Emulated(80, 24)
    screen.write(logged(True, monkeypatch))
    assert screen.text == "The \nantiphon: lost\nmoon\n"


@pytest.mark.parametrize("term", ["dumb", "unknown", ""])
def test_a_terminal_that_moves_no_cursor_gets_what_a_pipe_does(term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", term)
    with answer_screen(keeps=False) as screen:
        screen.show([settled("The "), ahead("moon")])
    assert sys.stdout.getvalue() == "The "  # type: ignore[attr-defined]


def test_control_characters_are_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen(monkeypatch)
    assert seen.show(settled("\x1b[2J"), ahead("\x9b2J\r")) == "\u241b[2J\ufffd2J\u240d"

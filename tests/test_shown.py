"""Text of others on a terminal, and the very bytes elsewhere; what is piped in."""

import io
import json
import os
import pty
import subprocess
import sys
import unicodedata

import pytest

from antiphon import shown
from antiphon.cli.marks import Marking
from antiphon.cli.screen import from_stdin, write
from antiphon.device.answer import Piece
from antiphon.methods.effects import Kind

STEERING = "\x1b]0;title\x07 \x1b[2J \x9b31m \r \b \x7f \u202e \u2067 \udc80"


@pytest.mark.medium
def test_nothing_that_steers_a_terminal_is_left_and_nothing_else_is_changed() -> None:
    for character in map(chr, range(sys.maxunicode + 1)):
        line, block = shown.line(character), shown.block(character)
        assert len(line) == len(block) == 1
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(character) in (
            "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI",
        ):  # fmt: skip
            assert unicodedata.category(line) in ("So",), hex(ord(character))
            assert block == (character if character in "\n\t" else line)
        elif character not in "\u061c\u200e\u200f":
            assert line == block == character


@pytest.mark.parametrize("text", [STEERING, "a\nb\tc", "\x1b[31mred\x1b[0m", "é雨\u200d"])
def test_a_line_is_one_line(text: str) -> None:
    assert shown.line(text).isprintable() or "\u200d" in text
    assert len(shown.line(text).splitlines()) == 1


@pytest.mark.medium
@pytest.mark.parametrize("text", ["\x1b[31mred\x1b[0m", "\x1b]0;t\x07", "a\r\nb\r", "\x00\x9b"])
def test_a_pipe_gets_the_very_bytes(text: str) -> None:
    for code in (
        "from antiphon.cli.screen import write; import json; write(json.loads(input()))",
        "from antiphon.cli.marks import *; import json\nMarking(plain=True).show([Piece(json.loads(input()), (), Kind.LOCAL)])",
    ):
        ran = subprocess.run([sys.executable, "-c", code], input=json.dumps(text).encode(), capture_output=True, check=True)
        assert ran.stdout == text.encode()


def test_a_terminal_gets_pictures(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    controller, terminal = pty.openpty()
    with open(terminal, "w") as screen:
        monkeypatch.setattr(sys, "stdout", screen)
        write("\x1b[2Jred")
        Marking(plain=True).show([Piece("\x9b2J", (), Kind.LOCAL)])
    expected, seen = "\u241b[2Jred\ufffd2J".encode(), b""
    while len(seen) < len(expected):
        seen += os.read(controller, 1000)
    os.close(controller)
    assert seen == expected


@pytest.mark.parametrize(("piped", "text"), [(b"who?\n", "who?"), (b"who?\r\n", "who?"), (b"a\n\n", "a\n"), (b" a ", " a ")])
def test_the_end_of_the_last_line_is_no_part_of_what_is_piped_in(
    piped: bytes, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
    assert from_stdin("prompt") == text

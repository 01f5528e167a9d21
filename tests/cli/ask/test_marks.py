"""How the marks of an answer look, on a terminal and elsewhere."""

import os
import pty
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from antiphon import shown
from antiphon.cli.marks import STYLES, Marking
from antiphon.device.answer import Piece
from antiphon.methods.effects import Kind
from cli.ask.asking import ASK, PATIENT, Asking
from support.libraries import QUESTION


def on_a_terminal(folder: Path, url: str, *arguments: str) -> tuple[str, str]:
    """What a terminal is sent on stdout, and stderr."""
    ours, theirs = pty.openpty()
    command = [*ASK, "--cloud", url, "--model", "toy-cloud", "--library", str(folder / "private.db"), *PATIENT, *arguments]
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "40"}
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, text=True, env=environment) as process:
        os.close(theirs)
        seen = b""
        try:
            while data := os.read(ours, 65536):
                seen += data
        except OSError:
            pass  # Linux says so when the other end is closed
        os.close(ours)
        assert process.stderr is not None
        errors = process.stderr.read()
    assert process.returncode == 0
    return seen.decode().replace("\r\n", "\n"), errors


@pytest.mark.slow
def test_marks_on_a_terminal(folder: Path, asked: Asking, others: tuple[str, str]) -> None:
    seen, errors = on_a_terminal(folder, others[0], "--seed", "3", QUESTION)
    legend, summary = errors.splitlines()
    assert legend == ("local no evidence came in time, certain none could change it, confirmed by a cloud, changed by a cloud")
    assert summary.startswith("concord-nosystem: ")
    figures = asked.figures(*PATIENT, QUESTION, clouds=others[:1])
    green, purple = "\x1b[32m", "\x1b[1;4;35m"
    assert green in seen
    assert purple in seen
    text = re.sub("\x1b\\[[0-9;]*m", "", seen)
    shown = figures["text"].translate({code: 0x2400 + code for code in range(32) if code not in (9, 10)}).replace("\t", 8 * " ")
    assert re.sub(" +", " ", text) == re.sub(" +", " ", shown) + "\n"  # a tab goes to the next column of eight
    assert seen.count(purple) == sum(mark["mark"] == "changed" for mark in figures["marks"] if mark["text"])


@pytest.mark.slow
def test_plain_on_a_terminal_and_elsewhere(folder: Path, asked: Asking, others: tuple[str, str]) -> None:
    seen, errors = on_a_terminal(folder, others[0], "--seed", "3", "--plain", QUESTION)
    out, err = asked(*PATIENT, QUESTION, clouds=others[:1])
    assert seen.replace("\t", 8 * " ") == shown.block(out).replace("\t", 8 * " ")
    assert "\x1b[" not in seen
    assert len(errors.splitlines()) == len(err.splitlines()) == 1


@pytest.mark.parametrize("kinds", [(Kind.LOCAL, Kind.CERTAIN), (Kind.CHANGED, Kind.CHANGED), tuple(STYLES)])
def test_a_token_without_text_has_the_mark_that_is_left(kinds: tuple[Kind, ...], capsys: pytest.CaptureFixture[str]) -> None:
    marking = Marking(plain=True)
    for kind in kinds:
        marking.show([Piece("a", (), kind)])
    marking.show([])
    marking.show([Piece("held back", (), Kind.LOCAL)])
    assert marking.kinds(Counter([*kinds, Kind.CHANGED])) == [*kinds, Kind.CHANGED]
    assert capsys.readouterr().out == "a" * len(kinds) + "held back"


def test_what_would_steer_a_terminal_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    Marking(plain=False).show([Piece("a\x1b[2J\x9b2J\r\x7f\nb", (), Kind.CONFIRMED)])
    out = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out)
    assert out == "a\u241b[2J\ufffd2J\u240d\u2421\nb"


def test_two_tokens_without_text_of_different_kinds_are_left_open() -> None:
    marking = Marking(plain=True)
    marking.show([])
    marking.show([])
    assert marking.kinds(Counter([Kind.LOCAL, Kind.CHANGED])) == [None, None]

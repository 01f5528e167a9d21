"""The page about libraries is true: its commands and its program run."""

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from antiphon.cli import main
from antiphon.retrieval.readers import READERS
from retrieval.samples import pdf

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "library.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, data in {
        "notes/lions.md": b"# Lions\n\nThey sleep long.",
        "notes/old.md": b"Old words.",
        "papers/birds.pdf": pdf("Birds."),
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)


def test_its_commands(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for line in blocks("sh")[0].splitlines():
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code, line
    out, error = capsys.readouterr()
    assert "They sleep long." in out
    assert error.endswith("deleted 1 file\n")


def test_its_program() -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(blocks("python")[0], {})
    assert out.getvalue().startswith("2 [('lines 1-3', ")


def test_it_names_every_ending() -> None:
    assert set(re.findall(r"`(\.[a-z]+)`", PAGE)) == set(READERS)

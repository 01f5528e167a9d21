"""Clouds with libraries, and `antiphon ask` run against them."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.cli import main

ASK = [sys.executable, "-m", "antiphon", "ask"]


def run(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["antiphon", *arguments])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


class Asking:
    """`antiphon ask` in this process, of clouds in others."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._base = ("--model", "toy-cloud", "--library", str(folder / "private.db"), "--seed", "3")
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str, clouds: tuple[str, ...]) -> tuple[str, str]:
        """Stdout and stderr of an answer."""
        where = [part for url in clouds for part in ("--cloud", url)]
        assert run("ask", *self._base, *where, *arguments, monkeypatch=self._monkeypatch) == 0
        out, err = self._capsys.readouterr()
        return out, err

    def figures(self, *arguments: str, clouds: tuple[str, ...]) -> dict[str, Any]:
        """What `--json` says."""
        figures: dict[str, Any] = json.loads(self("--json", *arguments, clouds=clouds)[0].splitlines()[-1])
        return figures


PATIENT = ("--method", "concord-nosystem", "-o", "gate=off", "--max-tokens", "30")

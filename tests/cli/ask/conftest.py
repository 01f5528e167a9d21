"""Libraries, and clouds that serve them, each started once."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.ask.asking import Asking
from support.libraries import LONG, OTHER, PRIVATE, PUBLIC, make_library, serving_command, serving_toy


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Libraries: of the device, of two clouds, and one that is empty."""
    folder = tmp_path_factory.mktemp("libraries")
    for name, documents in (("private", PRIVATE), ("public", PUBLIC), ("other", OTHER), ("long", LONG), ("empty", {})):
        make_library(folder / f"{name}.db", documents)
    return folder


@pytest.fixture(scope="session")
def cloud(folder: Path) -> Iterator[str]:
    """`antiphon serve` with a library; its toy scores as the device's does."""
    with serving_command("--model", "toy-cloud", "--library", str(folder / "public.db")) as (url, process):
        yield url
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=20)
        assert complaint == f"antiphon: 2 passages in {folder / 'public.db'}\nantiphon: stopped\n"


@pytest.fixture(scope="session")
def others(folder: Path) -> Iterator[tuple[str, str]]:
    """Two clouds whose toys score otherwise."""
    with serving_toy(2, folder / "public.db") as (first, _), serving_toy(5, folder / "other.db") as (second, _):
        yield first, second


@pytest.fixture
def asked(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Asking:
    return Asking(folder, monkeypatch, capsys)

"""docs/architecture.md is true: its paths exist, its layers are those that are checked."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def paths(text: str) -> set[str]:
    """The files and folders that a text names."""
    return set(re.findall(r"`((?:src|tests|docs|examples|tools)/[\w./-]*|pyproject\.toml|README\.md)`", text))


def test_every_path_exists() -> None:
    assert len(paths(PAGE)) > 40
    assert [path for path in sorted(paths(PAGE)) if not (ROOT / path).exists()] == []


def test_the_layers_are_those_that_are_checked() -> None:
    (drawn,) = re.findall(r"^```text\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    shown = [re.split(r"  +", line.strip())[0].split(" | ") for line in drawn.splitlines()]
    assert shown == [[name.removeprefix("antiphon.") for name in layer.split(" | ")] for layer in contract["layers"]]

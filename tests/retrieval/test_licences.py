"""What is installed with the program may be used in any: nothing of it is under the GPL or the AGPL."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

VIRAL = re.compile(r"\bA?GPL|GNU (Affero )?General Public", re.IGNORECASE)
LESSER = re.compile(r"LGPL[-\w.+]*|GNU Lesser General Public License[^;,|]*|Library or Lesser[^;,|]*", re.IGNORECASE)
ALLOWED_EXCEPTIONS = re.compile(r"GPL[-\w.]* WITH GCC-exception|GPL-3\.0-with-GCC-exception", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


def installed() -> dict[str, metadata.Distribution]:
    """Everything that the project and one of its extras bring, as far as it is installed here."""
    found: dict[str, metadata.Distribution] = {}
    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["project"]
    extras = (lines for name, lines in project["optional-dependencies"].items() if name != "dev")
    wanted = [(_NAME.match(line)[0], "") for lines in (project["dependencies"], *extras) for line in lines]
    seen = set()
    while wanted:
        name, extra = wanted.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            found[name] = distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        for line in distribution.requires or ():
            asked, _, marker = line.partition(";")
            if "extra" not in marker or (extra and re.search(rf"extra\s*==\s*['\"]{extra}['\"]", marker)):
                wanted.append((_NAME.match(asked)[0], ""))
    return found


def licence(distribution: metadata.Distribution) -> str:
    """What it says of its licence: the expression, else the field's first line, and the classifiers."""
    said = distribution.metadata
    expression = said.get("License-Expression")
    field = (said.get("License") or "").strip().split("\n")[0][:120]
    classifiers = [line.rpartition("::")[2].strip() for line in said.get_all("Classifier", []) if line.startswith("License")]
    return expression or " | ".join([field, *classifiers])


def test_no_dependency_is_under_the_gpl(capsys: pytest.CaptureFixture[str]) -> None:
    found = {name: licence(distribution) for name, distribution in sorted(installed().items())}
    with capsys.disabled():
        print("\nlicences: " + "; ".join(f"{name} ({text.strip(' |')})" for name, text in found.items()))
    assert len(found) > 15
    bad = {name: text for name, text in found.items() if VIRAL.search(ALLOWED_EXCEPTIONS.sub("", LESSER.sub("", text)))}
    assert bad == {}


@pytest.mark.parametrize("text", ["GPL-3.0-or-later", "AGPL-3.0", "GNU Affero General Public License v3", "MIT OR GPLv2"])
def test_such_a_licence_would_be_seen(text: str) -> None:
    assert VIRAL.search(ALLOWED_EXCEPTIONS.sub("", LESSER.sub("", text)))
    assert not VIRAL.search(LESSER.sub("", "LGPL-3.0-only; GNU Lesser General Public License v3 (LGPLv3)"))

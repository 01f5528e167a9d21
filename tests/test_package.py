"""`pip install` of a checkout gives a working package with its console script."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_the_wheel(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("antiphon-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert "antiphon/py.typed" in names
        assert any(name.endswith("licenses/LICENSE") for name in names)
        assert not any(name.startswith(("tests", "docs")) for name in names)
        (entry,) = [name for name in names if name.endswith("entry_points.txt")]
        assert "antiphon = antiphon.__main__:main" in archive.read(entry).decode()
        archive.extractall(tmp_path / "site")
    code = "import antiphon.cli, sys; sys.argv = ['antiphon', '--version']; antiphon.cli.main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "site", capture_output=True, text=True, check=True)
    assert done.stdout.startswith("antiphon ")

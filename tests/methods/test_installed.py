"""Methods of other distributions: found where they are asked for, refused with a sentence where they are no good."""

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from antiphon.cli.methods import methods
from antiphon.cloud.service import Cloud
from antiphon.config import Request, SamplingParams
from antiphon.device.generate import Device
from antiphon.errors import UsageError
from antiphon.methods import find, offered
from antiphon.testing import assert_exact

METHOD = """
from dataclasses import replace
from antiphon.methods.speculative.dsd import DSD
from antiphon.models.needs import Need

OTHER = replace(DSD, name="other", summary="as dsd, from elsewhere")
MIXES = replace(DSD, name="mixes", needs=frozenset({Need.DOCUMENTS}))
NOTHING = 3
"""


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever is made importable here is gone again afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "elsewhere", raising=False)


def distribution(folder: Path, name: str, **entries: str) -> None:
    """As pip would have installed it."""
    (folder / "elsewhere.py").write_text(METHOD)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{entry.replace('_', '-')} = {value}" for entry, value in entries.items()]
    (info / "entry_points.txt").write_text("\n".join(["[antiphon.methods]", *lines]) + "\n")


def test_it_is_found_proved_served_and_run(tmp_path: Path) -> None:
    distribution(tmp_path, "other-methods", other="elsewhere:OTHER")
    assert_exact(find("other"))

    async def run() -> tuple:
        with Cloud("toy-cloud") as cloud:
            async with cloud.serving() as url, Device("toy-device", cloud=url) as device:
                asked = Request("the ", "other", {"draft_length": 3}, SamplingParams(temperature=1.0), 24, seed=1)
                theirs = await device.generate(asked)
                own = await device.generate(Request("the ", "dsd", {"draft_length": 3}, asked.sampling, 24, seed=1))
                return theirs.method, theirs.token_ids == own.token_ids

    assert asyncio.run(asyncio.wait_for(run(), 60)) == ("other", True)


def test_one_that_mixes_documents_is_offered_where_there_are_some(tmp_path: Path) -> None:
    distribution(tmp_path, "other-methods", other="elsewhere:OTHER", mixes="elsewhere:MIXES")
    assert find("mixes", mixes=True).mixes
    with pytest.raises(UsageError, match=r"there is no method 'mixes': use one of cloud, .*other"):
        find("mixes", mixes=False)
    with Cloud("toy-cloud") as cloud:
        assert "other" in cloud.methods
        assert "mixes" not in cloud.methods


def test_nothing_is_loaded_before_it_is_asked_for(tmp_path: Path) -> None:
    distribution(tmp_path, "bad", bad="nowhere:BAD")
    code = """
    import antiphon.methods, sys
    from antiphon import Device
    antiphon.methods.find("dsd"), Device("toy-device")
    print("elsewhere" in sys.modules, "importlib.metadata" in sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[0] == "False"


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ({"dsd": "elsewhere:OTHER"}, "the method 'dsd' of the package bad is named as one of Antiphon's own: uninstall it"),
        ({"probe": "elsewhere:OTHER"}, "the method 'probe' of the package bad is named as one of Antiphon's own"),
        ({"other": "elsewhere:NOTHING"}, "the method 'other' of the package bad is of type int and no `Method`: update it"),
        ({"x": "elsewhere:OTHER"}, "the method 'x' of the package bad calls itself 'other': both names must be the same"),
        ({"x": "nowhere:X"}, r"the method 'x' of the package bad cannot be loaded \(ModuleNotFoundError: No module named"),
        ({"x": "elsewhere:X"}, r"the method 'x' of the package bad cannot be loaded \(AttributeError: "),
    ],
)
def test_a_bad_one_is_a_sentence(tmp_path: Path, entries: dict, sentence: str) -> None:
    """Where it is asked for, or offered; what Antiphon has itself goes on."""
    distribution(tmp_path, "bad", **entries)
    for ask in (lambda: find("telepathy"), offered, lambda: Cloud("toy-cloud")):
        with pytest.raises(UsageError, match=sentence):
            ask()
    assert find("dsd").exact


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    distribution(tmp_path, "one", other="elsewhere:OTHER")
    distribution(tmp_path, "two", other="elsewhere:OTHER")
    with pytest.raises(UsageError, match=r"the packages (one and two|two and one) both bring a method 'other': uninstall one"):
        find("other")


def test_they_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    distribution(tmp_path, "other-methods", other="elsewhere:OTHER")
    methods()
    assert "as dsd, from elsewhere" in capsys.readouterr().out
    methods("other")
    assert "draft_length" in capsys.readouterr().out


@pytest.mark.medium
def test_the_command_line_sees_them(tmp_path: Path) -> None:
    distribution(tmp_path, "bad", bad="elsewhere:NOTHING")
    for arguments in (["serve", "--model", "toy-cloud", "--port", "0"], ["generate", "--method", "bad", "x"]):
        command = [sys.executable, "-m", "antiphon", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stdout) == (2, "")
        assert (
            done.stderr
            == "antiphon: the method 'bad' of the package bad is of type int and no `Method`: update it, or uninstall it\n"
        )

"""docs/architecture.md is true: its paths exist, its layers are those that are checked, and new things go where it says.

A method, an index, a reader and a message are really added, to a copy of the repository and in the files that the page names,
and used there; the copy's own tests of its documents still pass.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import pytest

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


# Something new, where the page says.

PACKAGE = "src/antiphon"
NOTE = '''class Note(msgspec.Struct, frozen=True, array_like=True, tag=31, forbid_unknown_fields=True):
    """Cloud: a sentence for whoever reads the answer."""

    sentence: Sentence


Message: TypeAlias = ('''
NOTE_SECTION = """### Note, tag 31

Cloud, session.

| field | type | meaning |
| --- | --- | --- |
| `sentence` | str, at most 4096 | for whoever reads the answer |

## Maps
"""


@dataclass
class House:
    """A copy of the repository, and what was changed in it for what."""

    root: Path
    touched: dict[str, set[str]] = field(default_factory=dict)

    def put(self, kind: str, name: str, folder: str) -> None:
        """Put a new file into a folder."""
        shutil.copy(ROOT / "tests" / "additions" / name, self.root / folder)
        self.touched.setdefault(kind, set()).add(folder)

    def edit(self, kind: str, path: str, *changes: tuple[str, str]) -> None:
        """Change a file: each text must be there once."""
        text = (self.root / path).read_text(encoding="utf-8")
        for old, new in changes:
            assert text.count(old) == 1, f"{path} has {old!r} {text.count(old)} times"
            text = text.replace(old, new)
        (self.root / path).write_text(text, encoding="utf-8")
        self.touched.setdefault(kind, set()).add(path)

    def run(self, *command: str) -> str:
        """What a Python of its own prints with this code and these tests."""
        places = os.pathsep.join((str(self.root / "src"), str(self.root / "tests")))
        environment = {**os.environ, "PYTHONPATH": places, "ANTIPHON_CACHE": str(self.root / "cache")}
        given = {"cwd": self.root, "env": environment, "capture_output": True, "text": True, "timeout": 300}
        done = subprocess.run([sys.executable, *command], check=False, **given)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    root = tmp_path_factory.mktemp("house")
    for name in ("src", "docs", "tests"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, root)
    made = House(root)
    _add_a_method(made)
    _add_an_index(made)
    _add_a_reader(made)
    _add_a_message(made)
    return made


def _add_a_method(house: House) -> None:
    kind = "A method"
    house.put(kind, "sharpened.py", f"{PACKAGE}/methods/speculative/")
    imported = "from antiphon.methods.speculative.dsd import DSD\n"
    added = f"{imported}from antiphon.methods.speculative.sharpened import SHARPENED\n"
    house.edit(kind, f"{PACKAGE}/methods/__init__.py", (imported, added), (" DSD, TSLT,", " DSD, SHARPENED, TSLT,"))
    house.edit(
        kind,
        "docs/protocol.md",
        ("| `draft_length` | `dsd`,", "| `draft_length` | `dsd`, `sharpened`,"),
        ("| `verification` | `dsd`,", "| `verification` | `dsd`, `sharpened`,"),
        ("| `truncate` |", "| `heat` | `sharpened` | a float (without it 0.5): the cloud has no use for it |\n| `truncate` |"),
    )
    house.edit(kind, "docs/methods.md", ("\n### dssd", "\n### sharpened\n\n`dsd` with hotter or cooler drafts.\n\n### dssd"))


def _add_an_index(house: House) -> None:
    kind, opens = "An index", "    if name.startswith(_SERVERS):\n        return _on_server("
    house.put(kind, "memory.py", f"{PACKAGE}/retrieval/")
    imported = "from antiphon.retrieval.index import Index, Renewing\n"
    house.edit(
        kind,
        f"{PACKAGE}/retrieval/opening.py",
        (imported, f"{imported}from antiphon.retrieval.memory import MemoryIndex\n"),
        (opens, f'    if name.startswith("memory:"):\n        return MemoryIndex(name)\n{opens}'),
    )


def _add_a_reader(house: House) -> None:
    kind = "A reader"
    house.put(kind, "subtitles.py", f"{PACKAGE}/retrieval/readers/")
    imported = "from antiphon.retrieval.readers.rows import"
    house.edit(
        kind,
        f"{PACKAGE}/retrieval/readers/__init__.py",
        (imported, f"from antiphon.retrieval.readers.subtitles import read_subtitles\n{imported}"),
        ('    ".tsv": read_csv,\n', '    ".tsv": read_csv, ".srt": read_subtitles,\n'),
    )
    house.edit(kind, "docs/library.md", ("| `.pdf` |", "| `.srt` | the file's name | lines |\n| `.pdf` |"))


def _add_a_message(house: House) -> None:
    kind = "A message"
    house.edit(
        kind,
        f"{PACKAGE}/wire/messages.py",
        ("Message: TypeAlias = (", NOTE),
        ("    | Progress\n)", "    | Progress\n    | Note\n)"),
    )
    house.edit(kind, f"{PACKAGE}/wire/session.py", ("m.Evidence, m.Supplement)", "m.Evidence, m.Supplement, m.Note)"))
    house.edit(kind, "docs/protocol.md", ("## Maps\n", NOTE_SECTION))


@pytest.mark.parametrize("kind", ["A method", "An index", "A reader", "A message"])
def test_only_what_the_page_names_was_touched(kind: str, house: House) -> None:
    (section,) = re.findall(rf"^### {kind}\n(.*?)(?=^#|\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert house.touched[kind] <= paths(section)


METHOD = """
from antiphon.config import Request, SamplingParams
from antiphon.device.check import check
from antiphon.errors import RemoteError, UsageError
from antiphon.methods import METHODS
from antiphon.methods.speculative.sharpened import SharpenedOptions
from antiphon.testing import assert_exact
from support.links import linked, raw_session

for heat in (0.3, 2.0):
    assert_exact(METHODS["sharpened"], SharpenedOptions(1, heat=heat))

async def test(device, connection):
    asked = Request("the ", "sharpened", SharpenedOptions(heat=2.0), SamplingParams(temperature=0), max_tokens=30)
    result = await device.generate(asked, connection)
    assert (await check(device, asked, result, connection)).equal
    bad = await raw_session(connection, method="sharpened", options={"draft_length": 2, "draft_precision": 16, "heat": 99.0})
    try:
        await bad.receive(None)
    except (RemoteError, UsageError) as error:
        print(error)

linked(test)
"""


def test_the_new_method_is_exact_and_its_options_cross_the_link(house: House) -> None:
    assert "heat must be between 0.05 and 20, not 99" in house.run("-c", METHOD)


def test_its_options_are_the_command_line_s_too(house: House) -> None:
    """Help and `-o name=value`, from the one field of its dataclass."""
    help = " ".join(house.run("-m", "antiphon", "methods", "sharpened").split())
    assert "heat" in help
    assert "Temperature of the drafts" in help
    with pytest.raises(AssertionError, match=r"heat must be between 0\.05 and 20, not 99"):
        house.run("-m", "antiphon", "generate", "--method", "sharpened", "-o", "heat=99", "--cloud", "ws://127.0.0.1:1", "x")


DOCUMENTS = """
import asyncio, pathlib, sys
from antiphon.cloud.server import serving
from antiphon.cloud.service import Cloud
from antiphon.config import Request, SamplingParams, ServeConfig
from antiphon.device.connection import connect
from antiphon.device.generate import Device
from antiphon.methods import MIXTURES
from antiphon.retrieval.ingest import add
from antiphon.retrieval.opening import open_library
from antiphon.retrieval.options import PassageOptions
from support.libraries import toy

def library(name, text):
    file = pathlib.Path(sys.argv[1], name + ".srt")
    file.write_text(f"1\\n00:00:01,000 --> 00:00:02,500\\n{text}\\n")
    opened = open_library("memory:" + name, create=True)
    assert add(opened, [file], PassageOptions(), lambda done, total, path: None).added == [str(file)]
    return opened

async def main():
    own, public = library("device", "the old mill burned down"), library("cloud", "many a mill burned down in dry summers")
    (found,) = own.search("when has the mill burned down", 4)
    print(found.passage.text, "|", found.passage.place, "|", round(found.score, 2))
    device, cloud = Device(toy(1), library=own), Cloud(toy(2), library=public)
    async with serving(cloud, ServeConfig(port=0)) as url:
        connection = await connect(url, device.model, device.worker)
        asked = Request("has the mill burned down", "concord-nosystem", None, SamplingParams(temperature=0), max_tokens=6)
        result = await device.generate(asked, connection)
        print(len(result.answer.numbers), "tokens, the mixture's:", result.exact)
        await connection.close()
    device.close()
    cloud.close()

asyncio.run(main())
"""


@pytest.mark.medium
def test_the_new_reader_fills_the_new_index_and_an_answer_is_mixed_from_it(house: House, tmp_path: Path) -> None:
    found, answer = house.run("-c", DOCUMENTS, str(tmp_path)).splitlines()
    assert found == "the old mill burned down | line 3 | 0.67"
    assert answer == "6 tokens, the mixture's: True"


MESSAGE = """
from antiphon.config import Limits, Request, SamplingParams
from antiphon.errors import ProtocolError
from antiphon.methods import METHODS
from antiphon.methods.base import Method
from antiphon.methods.effects import Receive, Send, expect
from antiphon.methods.speculative.cloud_only import CloudOnlyCloud, CloudOnlyDevice
from antiphon.options import NoOptions
from antiphon.wire.messages import Envelope, Note, decode, encode
from support.links import linked

class Reads(CloudOnlyDevice):
    def run(self):
        print(expect((yield Receive()), Note).sentence)
        return (yield from super().run())

class Notes(CloudOnlyCloud):
    def run(self):
        yield Send(Note("by the large model"))
        return (yield from super().run())

assert decode(encode(Envelope(1, Note("a")))) == Envelope(1, Note("a"))
try:
    decode(encode(Envelope(1, Note("a" * 5000))))
except ProtocolError as error:
    print(error)
methods = {"noted": Method("noted", "", True, Reads, Notes, drafts=False, options=NoOptions)}

async def test(device, connection):
    result = await device.generate(Request("the ", "noted", None, SamplingParams(temperature=0), max_tokens=4), connection)
    print(result.traffic.down.frames, "frames")

linked(test, methods=methods)
"""


@pytest.mark.medium
def test_the_new_message_crosses(house: House) -> None:
    refused, noted, frames = house.run("-c", MESSAGE).splitlines()
    assert refused.startswith("the frame is not a valid message: Expected `str` of length <= 4096")
    assert noted == "by the large model"
    assert frames == "6 frames"  # the note, four tokens, Closed


@pytest.mark.slow
def test_the_house_with_all_of_it_still_holds_its_documents(house: House) -> None:
    """The protocol's page knows the message, the library's the ending, and every citation leads somewhere."""
    tests = ("tests/wire/test_protocol_doc.py", "tests/retrieval/test_library_doc.py::test_it_names_every_ending")
    house.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, "tests/test_citations.py")

"""The embedded index against a dictionary, and what goes wrong with its file."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from antiphon.errors import UsageError
from antiphon.retrieval.options import SearchOptions
from antiphon.retrieval.sqlite.index import SqliteIndex
from retrieval import contract
from retrieval.contract import Opener, keys
from retrieval.samples import passage, source
from support.examples import examples


class AgainstADictionary(contract.AgainstADictionary):
    def __init__(self) -> None:
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name) / "library"
        super().__init__(partial(SqliteIndex, self.path))

    def teardown(self) -> None:
        super().teardown()
        connection = sqlite3.connect(self.path)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()
        self.folder.cleanup()


AgainstADictionary.TestCase.settings = examples(25, stateful_step_count=15)
TestAgainstADictionary = AgainstADictionary.TestCase


class TestContract(contract.Contract):
    wait = "antiphon.retrieval.sqlite.database._WAIT_S"

    @pytest.fixture
    def libraries(self, path: Path) -> Callable[[], Opener]:
        numbers = count()
        return lambda: partial(SqliteIndex, path.with_name(f"{path.name} {next(numbers)}"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "my library?#%"


def filled(path: Path, *texts: str) -> SqliteIndex:
    return contract.filled(partial(SqliteIndex, path), *texts)


def test_it_is_one_file_for_its_owner_only(path: Path) -> None:
    filled(path, "lion").close()
    assert path.stat().st_mode & 0o077 == 0
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_what_is_no_library(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no library .*none: `antiphon library add` makes one"):
        SqliteIndex(tmp_path / "none")
    with pytest.raises(UsageError, match="make its folder first"):
        SqliteIndex(tmp_path / "no" / "folder", create=True)
    with pytest.raises(UsageError, match="is a folder"):
        SqliteIndex(tmp_path, create=True)
    with pytest.raises(UsageError, match="cannot be used"):
        SqliteIndex(tmp_path / "a\x00b", create=True)
    (tmp_path / "empty").touch()
    with pytest.raises(UsageError, match="is empty"):
        SqliteIndex(tmp_path / "empty")
    (tmp_path / "text").write_text("some text that is no database")
    with pytest.raises(UsageError, match="is encrypted, or is no library"):
        SqliteIndex(tmp_path / "text", create=True)
    with sqlite3.connect(tmp_path / "other") as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(UsageError, match="no library of Antiphon"):
        SqliteIndex(tmp_path / "other", create=True)


def test_a_library_of_another_version(path: Path) -> None:
    filled(path, "x").close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(UsageError, match="of version 9 and this program reads 2"):
        SqliteIndex(path)


def test_a_damaged_library(path: Path) -> None:
    filled(path, *("lion tiger bear " * 50 for _ in range(200))).close()
    data = bytearray(path.read_bytes())
    data[4096 * 3 :] = b"\xff" * (len(data) - 4096 * 3)
    path.write_bytes(data)
    with pytest.raises(UsageError, match="is damaged"), SqliteIndex(path) as index:
        index.search("lion", 1)


def test_a_killed_writer_leaves_whole_files_only(path: Path) -> None:
    code = f"""
import os, pathlib
from antiphon.retrieval.sqlite.index import SqliteIndex
from retrieval.samples import passage, source
index = SqliteIndex(pathlib.Path({str(path)!r}), create=True)
index.put(source("a"), [passage("lion", key="0")])
def passages():
    yield passage("tiger")
    os._exit(9)
index.put(source("b"), passages())
"""
    where = str(Path(__file__).resolve().parents[2])
    assert subprocess.run([sys.executable, "-c", code], cwd=where, check=False).returncode == 9
    with SqliteIndex(path) as index:
        assert [item.path for item in index.sources()] == ["a"]
        assert (keys(index, "lion"), keys(index, "tiger")) == (["0"], [])


@pytest.mark.parametrize("given", [{"ranking": "fuzzy"}, {"temperature": 0.0}, {"temperature": float("nan")}])
def test_search_options_that_cannot_be(given: dict) -> None:
    with pytest.raises(UsageError, match="must be"):
        SearchOptions(**given)


def test_a_library_on_a_disk_that_cannot_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(path, "lion").close()
    monkeypatch.setattr("antiphon.retrieval.sqlite.database.os.access", lambda place, mode: False)
    with SqliteIndex(path) as index:
        assert keys(index, "lion") == ["0"]
        with pytest.raises(UsageError, match="cannot be written"):
            index.put(source("b"), [passage("x")])
    assert [file.name for file in path.parent.iterdir()] == [path.name]

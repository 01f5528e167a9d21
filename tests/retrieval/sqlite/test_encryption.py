"""Encrypted libraries, where SQLCipher is installed, and what is said where it is not."""

import importlib.util
import sys
from pathlib import Path

import pytest

from antiphon.errors import UsageError
from antiphon.retrieval.opening import KEY_VARIABLE, library_key, open_library
from antiphon.retrieval.sqlite.index import SqliteIndex
from retrieval.samples import everything_in, passage, source

needs_sqlcipher = pytest.mark.skipif(
    not any(importlib.util.find_spec(name) for name in ("sqlcipher3", "pysqlcipher3")),
    reason="SQLCipher is not installed: pip install 'antiphon[encrypted]'",
)
KEY = 'it\'s a "key" ü'


@needs_sqlcipher
def test_an_encrypted_library_shows_nothing(tmp_path: Path) -> None:
    library = tmp_path / "library"
    with SqliteIndex(library, key=KEY, create=True) as index:
        index.put(source("zqpath"), [passage("zqsecret lion", key="0")])
        data = everything_in(tmp_path, library)  # with its log
    data += everything_in(tmp_path, library)
    assert len(data) > 8192
    assert not any(word in data for word in (b"SQLite format", b"zqsecret", b"zqpath", b"lion", b"CREATE TABLE"))
    with SqliteIndex(library, key=KEY) as index:
        assert [found.passage.key for found in index.search("lion", 3)] == ["0"]
        assert index.delete(["zqpath"]) == 1
        assert index.search("lion", 3) == []


@needs_sqlcipher
def test_keys_that_do_not_fit(tmp_path: Path) -> None:
    SqliteIndex(tmp_path / "locked", key=KEY, create=True).close()
    SqliteIndex(tmp_path / "plain", create=True).close()
    with pytest.raises(UsageError, match="does not open with this key"):
        SqliteIndex(tmp_path / "locked", key="another")
    with pytest.raises(
        UsageError, match="is encrypted, or is no library: give its key in ANTIPHON_LIBRARY_KEY or by --key-file"
    ):
        SqliteIndex(tmp_path / "locked")
    with pytest.raises(UsageError, match="is not encrypted"):
        SqliteIndex(tmp_path / "plain", key=KEY)


def test_without_sqlcipher_a_key_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sqlcipher3", "sqlcipher3.dbapi2", "pysqlcipher3", "pysqlcipher3.dbapi2"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=r"pip install 'antiphon\[encrypted\]'"):
        SqliteIndex(tmp_path / "library", key=KEY, create=True)
    assert list(tmp_path.iterdir()) == []


def test_where_a_key_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from the file\n")
    assert library_key(file, {KEY_VARIABLE: "from the environment"}) == "from the file"
    assert library_key(None, {KEY_VARIABLE: "from the environment"}) == "from the environment"
    assert library_key(None, {}) is library_key(None, {KEY_VARIABLE: ""}) is None
    file.write_text("\n")
    with pytest.raises(UsageError, match="holds no key"):
        library_key(file, {})
    file.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="is not UTF-8"):
        library_key(file, {})
    with pytest.raises(UsageError, match="cannot be read"):
        library_key(tmp_path / "none", {})


@needs_sqlcipher
def test_a_library_is_opened_with_the_key_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with open_library(str(tmp_path / "library"), create=True) as index:
        index.put(source("a"), [passage("lion")])
    assert b"lion" not in (tmp_path / "library").read_bytes()
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(UsageError, match="is encrypted"):
        open_library(str(tmp_path / "library"))

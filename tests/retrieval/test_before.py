"""Libraries of before are indexed anew from their own passages, in one transaction; who only reads gets one sentence."""

import importlib.util
import sqlite3
from pathlib import Path

import pytest

from antiphon.errors import UsageError
from antiphon.retrieval.opening import open_library
from antiphon.retrieval.options import SearchOptions
from antiphon.retrieval.sqlite.index import SqliteIndex
from retrieval.contract import keys
from retrieval.embedders import LetterEmbedder
from retrieval.postgres.server import Server
from retrieval.samples import everything_in

FIRST_VERSION = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sources (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, modified_ns INTEGER NOT NULL,
    digest TEXT NOT NULL, words INTEGER NOT NULL, overlap INTEGER NOT NULL, passages INTEGER NOT NULL);
CREATE TABLE passages (id INTEGER PRIMARY KEY, source INTEGER NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL,
    unit TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, key TEXT NOT NULL);
CREATE INDEX passages_by_source ON passages (source);
CREATE TABLE vectors (passage INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE VIRTUAL TABLE words USING fts5 (title, text, content='', tokenize='porter unicode61 remove_diacritics 2');
INSERT INTO words (words, rank) VALUES ('rank', 'bm25(2.0, 1.0)');
INSERT INTO facts VALUES ('embedder', 'letters');
INSERT INTO sources VALUES (1, '/d/a.txt', 1, 2, 'x', 100, 20, 3), (2, '/d/b.txt', 1, 2, 'y', 100, 20, 1);
INSERT INTO passages VALUES (1, 1, 'a', 'the old mill burned down', 'line', 1, 1, ''),
    (2, 1, 'a', 'İstanbul limanı', 'line', 2, 2, ''), (3, 1, 'a', 'กินข้าวเช้า', 'line', 3, 3, ''),
    (4, 2, 'b', 'the old mill burned down', 'line', 1, 1, '');
INSERT INTO words (rowid, title, text) SELECT id, title, text FROM passages;
INSERT INTO vectors VALUES (1, x'0000'), (2, x'0000'), (3, x'0000'), (4, x'0000');
PRAGMA application_id = 1097757808;
PRAGMA user_version = 1
"""


def of_before(path: Path, driver: object = sqlite3, key: str = "") -> Path:
    connection = driver.connect(path)
    if key:
        connection.execute(f"PRAGMA key = '{key}'")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(FIRST_VERSION)
    connection.close()
    return path


def require_of_today(index: object) -> None:
    assert keys(index, "istanbul") == [""]
    assert [found.passage.text for found in index.search("ข้าว", 3)] == ["กินข้าวเช้า"]
    assert [found.passage.source for found in index.search("mills", 3)] == ["/d/a.txt"]
    stats = index.stats()
    assert (stats.passages, stats.copies, stats.vectors) == (4, 1, 3)


def test_a_file(tmp_path: Path) -> None:
    library = of_before(tmp_path / "library")
    with pytest.raises(UsageError, match="of an earlier version: run `antiphon library update` once, which indexes it anew"):
        SqliteIndex(library)
    steps: list[tuple[int, int]] = []
    with SqliteIndex(library, renew=lambda done, total: steps.append((done, total))) as index:
        require_of_today(index)
        assert steps == [(4, 4)]
        index.erase()
    assert b"fts5" not in everything_in(tmp_path, library)
    with SqliteIndex(library, embedder=LetterEmbedder(), options=SearchOptions("lexical")) as index:
        require_of_today(index)


def test_a_file_that_is_added_to(tmp_path: Path) -> None:
    with SqliteIndex(of_before(tmp_path / "library"), create=True) as index:
        require_of_today(index)


@pytest.mark.skipif(importlib.util.find_spec("sqlcipher3") is None, reason="SQLCipher is not installed")
def test_an_encrypted_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlcipher3 import dbapi2

    library = of_before(tmp_path / "library", dbapi2, "a key")
    monkeypatch.setenv("ANTIPHON_LIBRARY_KEY", "a key")
    with open_library(str(library), renew=lambda done, total: None) as index:
        require_of_today(index)


def test_it_happens_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    class BrokenOffError(Exception):
        pass

    def interrupt(done: int, total: int) -> None:
        raise BrokenOffError

    library = of_before(tmp_path / "library")
    with pytest.raises(BrokenOffError):
        SqliteIndex(library, renew=interrupt)
    with pytest.raises(UsageError, match="earlier version"):
        SqliteIndex(library)
    with SqliteIndex(library, create=True) as index:
        require_of_today(index)


def test_words_that_are_counted_otherwise_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = of_before(tmp_path / "library")
    SqliteIndex(library, create=True).close()
    monkeypatch.setattr("antiphon.retrieval.words._VERSION", 99)
    with pytest.raises(UsageError, match="earlier version"):
        SqliteIndex(library)
    with SqliteIndex(library, create=True) as index:
        require_of_today(index)


@pytest.mark.slow
def test_a_database(server: Server, database: str) -> None:
    pytest.importorskip("psycopg")
    from antiphon.retrieval.postgres.index import PostgresIndex

    with PostgresIndex(server.url(database), create=True) as index:
        index.stats()
    values = """('/d/a.txt', 1, 2, 'x', 100, 20, 3, 8), ('/d/b.txt', 1, 2, 'y', 100, 20, 1, 4)"""
    server.run(
        "ALTER TABLE antiphon.sources DROP COLUMN counted, DROP COLUMN encoding, DROP COLUMN text_field, DROP COLUMN led_to",
        "ALTER TABLE antiphon.passages DROP COLUMN counted, DROP COLUMN digest",
        f"INSERT INTO antiphon.sources (path, size, modified_ns, digest, words, overlap, passages, all_words) VALUES {values}",
        """INSERT INTO antiphon.passages VALUES (1, 1, 'a', 'the old mill burned down', 'line', 1, 1, ''),
            (2, 1, 'a', 'İstanbul limanı', 'line', 2, 2, ''), (3, 1, 'a', 'กินข้าวเช้า', 'line', 3, 3, ''),
            (4, 2, 'b', 'the old mill burned down', 'line', 1, 1, '')""",
        "INSERT INTO antiphon.postings VALUES ('mill', 1, 'xxxxxxxxxxxxxxxx')",
        "UPDATE antiphon.library SET version = 1, scoring = 'fts5', last = 4, passages = 4, words = 12",
        database=database,
    )
    with pytest.raises(UsageError, match="of an earlier version: run `antiphon library update`"):
        PostgresIndex(server.url(database))
    steps: list[tuple[int, int]] = []
    with PostgresIndex(server.url(database), renew=lambda done, total: steps.append((done, total))) as index:
        assert steps == [(4, 4)]
        assert keys(index, "istanbul") == [""]
        assert [found.passage.source for found in index.search("mills", 3)] == ["/d/a.txt"]
        assert (index.stats().passages, index.stats().copies) == (4, 1)
        assert index.delete(["/d/a.txt"]) == 1
        assert [found.passage.source for found in index.search("mills", 3)] == ["/d/b.txt"]

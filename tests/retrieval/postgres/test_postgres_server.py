"""Many at one library in PostgreSQL, and what goes wrong with a server: one sentence, without the password."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from antiphon.cli import main
from antiphon.errors import UsageError
from antiphon.retrieval import words
from antiphon.retrieval.opening import open_library
from antiphon.retrieval.options import SearchOptions
from antiphon.retrieval.passages import Passage
from retrieval.contract import Opener, filled, keys, no_progress
from retrieval.embedders import LetterEmbedder
from retrieval.postgres.server import PASSWORD, Server
from retrieval.samples import passage, source

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'antiphon[postgres]'")

from antiphon.retrieval.postgres.index import PostgresIndex

pytestmark = pytest.mark.slow


def test_searches_see_whole_sources_while_one_writes(library: Opener) -> None:
    """Each version of a source has 40 passages with one word; a search sees 40 of one version."""
    filled(library).close()
    seen: list[set[str]] = []
    ended = threading.Event()

    def search() -> None:
        with library() as index:
            while not ended.is_set():
                found = index.search("lion", 100)
                assert len(found) in (0, 40)
                seen.append({item.passage.key for item in found})

    readers = [threading.Thread(target=search) for _ in range(4)]
    for reader in readers:
        reader.start()
    with library() as writer:
        for version in range(15):
            writer.put(source("a"), [passage(f"lion {number}", key=str(version)) for number in range(40)])
    ended.set()
    for reader in readers:
        reader.join()
    assert all(len(versions) <= 1 for versions in seen)
    assert len(set(map(frozenset, seen))) > 2


def test_a_killed_writer_leaves_whole_files_only(server: Server, database: str, library: Opener) -> None:
    code = f"""
import os
from antiphon.retrieval.postgres.index import PostgresIndex
from retrieval.samples import passage, source
index = PostgresIndex({server.url(database)!r}, create=True)
index.put(source("a"), [passage("lion", key="0")])
def passages():
    yield from (passage("tiger") for _ in range(3000))
    os._exit(9)
index.put(source("b"), passages())
"""
    where = str(Path(__file__).resolve().parents[2])
    assert subprocess.run([sys.executable, "-c", code], cwd=where, check=False).returncode == 9
    with library() as index:
        assert [item.path for item in index.sources()] == ["a"]
        assert (keys(index, "lion"), keys(index, "tiger")) == (["0"], [])


def test_many_may_make_it_at_once(library: Opener) -> None:
    made: list[int] = []

    def make(number: int) -> None:
        with library(embedder=LetterEmbedder(), create=True) as index:
            index.put(source(str(number)), [passage(f"lion {number}")])
            index.embed(no_progress)
            made.append(number)

    makers = [threading.Thread(target=make, args=(number,)) for number in range(5)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    with library() as index:
        assert len(made) == len(index.sources()) == index.stats().vectors == len(index.search("lion", 9)) == 5


def test_a_lost_connection_is_made_again(server: Server, database: str, library: Opener) -> None:
    def cut_off() -> None:
        server.run(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}' AND pid <> pg_backend_pid()"
        )

    with filled(library, "lion") as index:
        cut_off()
        assert keys(index, "lion") == ["0"]  # a search tries again
        cut_off()
        with pytest.raises(UsageError, match="went away"):
            index.put(source("b"), [])
        assert index.put(source("b"), [passage("tiger")]) == 1

        def passages() -> Iterator[Passage]:
            cut_off()
            yield passage("bear")

        with pytest.raises(UsageError, match="went away"):
            index.put(source("c"), passages())
        assert [item.path for item in index.sources()] == ["a", "b"]


def refusal(url: str, **options: object) -> str:
    """The sentence, which never shows a password; nor does what it was made from."""
    with pytest.raises(UsageError) as caught:
        open_library(url, **options)
    error: BaseException | None = caught.value
    while error is not None:
        assert "secret" not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return str(caught.value)


def test_who_may_come_in(server: Server, database: str) -> None:
    assert "asks for a password: give it in PGPASSWORD" in refusal(server.url(database, "guarded"))
    assert "does not take this password" in refusal(server.url(database, "guarded", "not the secret"))
    assert '(role "nobody" does not exist)' in refusal(server.url(database, "nobody"))
    assert '(database "none" does not exist)' in refusal(server.url("none"))
    sentence = refusal(server.url(database, "guarded", PASSWORD))
    assert sentence.startswith(
        f"there is no library in postgresql://guarded@{server.folder}/{database}: `antiphon library add`"
    )
    with pytest.raises(UsageError, match=r"does not allow this .*ask its owner"):
        open_library(server.url(database, "guarded", PASSWORD), create=True)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:secret%zz@host/db",
        "postgresql://user:se@secret/x@host/db",
        "postgresql://user:1/secret@host/db",
        "postgresql://user:secret/word@host/db",
        "postgresql://user:secret@host:port/db",
        "postgresql://user:secret@host/db?none=secret",
    ],
)
def test_what_is_no_address(url: str) -> None:
    assert "no address of a PostgreSQL database" in refusal(url)


def test_no_server() -> None:
    sentence = refusal("postgresql://user:secret@127.0.0.1:1/db")
    assert sentence.startswith("postgresql://user@127.0.0.1:1/db cannot be reached (Connection refused): is the server running")
    assert "postgres://127.0.0.1:1/" not in refusal("postgres://127.0.0.1:1/?password=secret&connect_timeout=1")


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for name in ("index", "server", "tables"):
        monkeypatch.delitem(sys.modules, f"antiphon.retrieval.postgres.{name}")
    assert refusal("postgresql://user:secret@host/db").endswith("run pip install 'antiphon[postgres]'")


def test_a_key_is_for_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("secret")
    assert "a key is for a file" in refusal("postgresql://user@host/db", key_file=tmp_path / "key")


def test_no_pgvector(server: Server, database: str, library: Opener) -> None:
    if server.version < 18:
        pytest.skip("before PostgreSQL 18 its extensions cannot be hidden")
    server.run(f"ALTER DATABASE {database} SET extension_control_path = '/nowhere'")
    with filled(library, "lion", embedder=LetterEmbedder(), options=SearchOptions("lexical")) as index:
        assert keys(index, "lion") == ["0"]  # words need none
        with pytest.raises(UsageError, match="has no pgvector: install it there"):
            index.embed(no_progress)
    with library(embedder=LetterEmbedder()) as index, pytest.raises(UsageError, match="1 passages have no vectors"):
        index.search("lion", 1)


def test_pgvector_out_of_sight(server: Server, database: str, library: Opener) -> None:
    server.run("CREATE SCHEMA aside", "CREATE EXTENSION vector SCHEMA aside", database=database)
    with filled(library, "lion", embedder=LetterEmbedder()) as index:
        with pytest.raises(UsageError, match="in a schema that is not searched"):
            index.embed(no_progress)
        server.run(f"ALTER DATABASE {database} SET search_path = public, aside")
    with library(embedder=LetterEmbedder()) as index:
        assert index.embed(no_progress) == 1
        assert keys(index, "lion") == ["0"]


def test_a_library_of_another_version(server: Server, database: str, library: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(library, "x").close()
    monkeypatch.setattr(words, "_VERSION", 99)
    with pytest.raises(UsageError, match=r"of an earlier version: run `antiphon library update` once"):
        library()
    server.run("ALTER TABLE antiphon.library DROP scoring", "UPDATE antiphon.library SET version = 9", database=database)
    with pytest.raises(UsageError, match="of version 9 and this program reads 2: drop its schema"):
        library(create=True)
    server.run("DROP SCHEMA antiphon CASCADE", database=database)
    filled(library, "x").close()


def test_another_encoding(server: Server) -> None:
    server.run("CREATE DATABASE other ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(UsageError, match="keeps text as SQL_ASCII: make a database with ENCODING 'UTF8'"):
        PostgresIndex(server.url("other"), create=True)


def test_rights(server: Server, database: str, library: Opener) -> None:
    filled(library, "lion", "tiger").close()
    given = partial(PostgresIndex, server.url(database, "guarded", PASSWORD))
    with pytest.raises(UsageError, match=r"does not allow this .*ask its owner"):
        given()
    server.run(
        "GRANT USAGE ON SCHEMA antiphon TO guarded",
        "GRANT SELECT ON ALL TABLES IN SCHEMA antiphon TO guarded",
        database=database,
    )
    with given() as index:
        assert keys(index, "lion") == ["0"]
        assert index.stats().passages == 2
        with pytest.raises(UsageError, match="does not allow this"):
            index.put(source("b"), [])
    server.run("GRANT ALL ON ALL TABLES IN SCHEMA antiphon TO guarded", database=database)
    if server.version >= 17:  # before, nobody but the owner may
        server.run("REVOKE MAINTAIN ON ALL TABLES IN SCHEMA antiphon FROM guarded", database=database)
    with given() as index:
        with pytest.raises(UsageError, match=r"keeps what was deleted .*let its owner run this command"):
            index.delete(["a"])
        assert index.sources() == []


def test_a_copy_that_cannot_be_written(server: Server, database: str, library: Opener) -> None:
    filled(library, "lion").close()
    server.run(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    with library(create=True) as index:
        assert keys(index, "lion") == ["0"]
        with pytest.raises(UsageError, match="cannot be written"):
            index.put(source("b"), [])


def test_a_library_that_was_taken_away(server: Server, database: str, library: Opener) -> None:
    with filled(library, "lion") as index:
        server.run("DROP SCHEMA antiphon CASCADE", database=database)
        with pytest.raises(UsageError, match="has lost its tables"):
            index.search("lion", 1)


def test_the_command(
    server: Server, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lions.md").write_text("# Lions\n\nEach zqxwvrt is long.")
    server.run(f"CREATE DATABASE shared OWNER guarded TEMPLATE {database}")
    url = server.url("shared", "guarded", PASSWORD)

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["antiphon", "library", *arguments, "--library", url])
        with pytest.raises(SystemExit) as ended:
            main()
        out, error = capsys.readouterr()
        assert not ended.value.code, error
        assert "secret" not in out + error
        return out + error

    assert "1 file added" in run("add", str(tmp_path))
    assert "Each zqxwvrt is long." in run("search", "which zqxwvrt?")
    assert "scorer id  bm25 scaled=5.5" in run("stats")
    assert "lions.md" in run("list")
    assert "1 unchanged" in run("update")
    assert run("remove", str(tmp_path)) == "deleted 1 file\n"
    assert b"zqxwvrt" not in server.files("shared")

"""The index in PostgreSQL: the contract, the scores of the SQLite index, and what goes wrong with a server."""

import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from antiphon.cli import main
from antiphon.errors import UsageError
from antiphon.retrieval import words
from antiphon.retrieval.index import Index
from antiphon.retrieval.opening import open_library
from antiphon.retrieval.options import PassageOptions, SearchOptions
from antiphon.retrieval.passages import Passage, cut
from antiphon.retrieval.readers import read
from antiphon.retrieval.sqlite import SqliteIndex
from data import DATA
from retrieval import contract
from retrieval.contract import Opener, filled, keys, no_progress
from retrieval.embedders import LetterEmbedder
from retrieval.postgres import PASSWORD, Server, running
from retrieval.samples import passage, source
from retrieval.test_erase import canary

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'antiphon[postgres]'")

from antiphon.retrieval.postgres import PostgresIndex  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as started:
        yield started


@pytest.fixture(autouse=True)
def clean(server: Server) -> Iterator[None]:
    yield
    server.clean()


@pytest.fixture
def database(server: Server) -> str:
    return server.database()


@pytest.fixture
def library(server: Server, database: str) -> Opener:
    return partial(PostgresIndex, server.url(database))


class TestContract(contract.Contract):
    wait = "antiphon.retrieval.postgres_server._WAIT_S"

    @pytest.fixture
    def libraries(self, server: Server) -> Callable[[], Opener]:
        return lambda: partial(PostgresIndex, server.url(server.database()))


def test_any_history_leaves_what_a_dictionary_and_the_sqlite_index_hold(server: Server) -> None:
    class AgainstSqlite(contract.AgainstADictionary):
        """Each change is made in a file too: the same passages must come with the same scores."""

        def __init__(self) -> None:
            self.folder = TemporaryDirectory()
            self.twin = SqliteIndex(Path(self.folder.name) / "library", create=True)
            super().__init__(partial(PostgresIndex, server.url(server.database())))

        def opened(self) -> Index:
            index = super().opened()
            put, delete = index.put, index.delete
            index.put = lambda item, passages: self._put(put, item, list(passages))
            index.delete = lambda names: (self.twin.delete(names), delete(names))[1]
            return index

        def _put(self, put: Callable, item: object, passages: list[Passage]) -> int:
            self.twin.put(item, passages)
            return put(item, passages)

        @invariant()
        def scores_as_sqlite_does(self) -> None:
            for question in ("apple plum größe", "雨 pears"):
                here, there = ([row(found) for found in index.search(question, 5)] for index in (self.index, self.twin))
                assert [score for score, _ in here] == [score for score, _ in there]
                lowest = min(here, default=(0.0, ""))[0]  # equals may be ordered by other ids, and the last be cut off
                assert {item for item in here if item[0] > lowest} == {item for item in there if item[0] > lowest}

        def teardown(self) -> None:
            super().teardown()
            self.twin.close()
            self.folder.cleanup()
            server.clean()

    given = settings(max_examples=8, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(AgainstSqlite, settings=given)


def row(found: object) -> tuple[float, str]:
    return found.score, found.passage.text


@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is absent: this test needs its questions")
def test_scores_on_natural_questions_are_those_of_sqlite(library: Opener, tmp_path: Path) -> None:
    options = PassageOptions()
    passages = [item for document in read(DATA / "nq_passages.jsonl") for item in cut(document, "a", options)]
    lines = (DATA / "nq_questions.jsonl").read_text().splitlines()
    questions = [json.loads(line)["question"] for line in lines[:300]]
    with library(create=True) as here, SqliteIndex(tmp_path / "library", create=True) as there:
        assert here.put(source("a"), passages) == there.put(source("a"), passages) == 2600
        assert here.scorer.scorer_id == there.scorer.scorer_id
        for question in questions:
            assert here.search(question, 10) == there.search(question, 10)


def unit_vectors(number: int, width: int, seed: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).standard_normal((number, width)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class TableEmbedder:
    """Texts that end in a number have the vector of that number."""

    def __init__(self, vectors: np.ndarray) -> None:
        self.identity, self.width, self._vectors = "table", vectors.shape[1], vectors

    def embed(self, texts: list[str]) -> np.ndarray:
        return self._vectors[[int(text.split()[-1]) for text in texts]]


def test_near_vectors_are_found_by_the_graph_with_the_cosines_of_sqlite(
    server: Server, database: str, library: Opener, tmp_path: Path
) -> None:
    embedder = TableEmbedder(unit_vectors(3100, 64, 1))
    passages = [passage(f"word{number % 50} {number}", key=str(number)) for number in range(3000)]
    found = dict.fromkeys(("dense", "hybrid"), 0)
    with library(embedder=embedder, create=True) as index, SqliteIndex(tmp_path / "l", embedder=embedder, create=True) as twin:
        for each in (index, twin):
            each.put(source("a"), passages)
            each.embed(no_progress)
    server.run(f"ALTER DATABASE {database} SET enable_seqscan = off")  # of so few, all would be compared
    for ranking in ("dense", "hybrid"):
        given = {"embedder": embedder, "options": SearchOptions(ranking)}
        with library(**given) as index, SqliteIndex(tmp_path / "l", **given) as twin:
            for number in range(3000, 3050):
                here, there = (each.search(f"word7 {number}", 10) for each in (index, twin))
                scores = {item.passage.key: item.score for item in there}
                assert len(here) == 10
                assert all(item.score == pytest.approx(scores.get(item.passage.key, item.score), abs=1e-6) for item in here)
                found[ranking] += len(scores.keys() & {item.passage.key for item in here})
    ((scans,),) = server.run(
        "SELECT pg_stat_force_next_flush()",
        "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'vectors_graph'",
        database=database,
    )
    assert scans == 100
    assert min(found.values()) > 0.97 * 500


def test_deleted_text_is_in_no_file_of_the_database(server: Server, database: str, library: Opener) -> None:
    chance = random.Random(3)
    kept, gone = ([canary(chance) for _ in range(300)] for _ in range(2))
    fillers = ["filler " * length for length in (1, 30, 700)]  # the last is stored beside its row, in parts
    with library(embedder=LetterEmbedder(), create=True) as index:
        for number, (word, other) in enumerate(zip(kept, gone, strict=True)):
            index.put(source(f"/kept/{word}"), [passage(f"{word} {chance.choice(fillers)}")])
            path, title = f"/gone/{other if number < 290 else number}", f"t{other}" if number % 3 else "title"
            index.put(source(path), [passage(f"{other} {chance.choice(fillers)}", title=title, key=other)])
        index.embed(no_progress)
        server.run("ANALYZE", database=database)  # samples of what is in the tables
        data = server.files(database)
        assert all(word.encode() in data for word in kept + gone)
        assert index.delete([f"/gone/{word}" for word in gone[:290]]) == 290
        for number in range(290, 300):
            index.put(source(f"/gone/{number}"), [passage("replaced")])
        data = server.files(database)
        assert [word.encode() in data for word in gone] == [False] * 290 + [True] * 10
        index.erase()
        data = server.files(database)
        assert [word for word in gone if word.encode() in data] == []
        assert all(word.encode() in data for word in kept)
        assert (index.stats().vectors, index.embed(no_progress)) == (300, 10)
        assert keys(index, kept[7])


def test_text_is_erased_once_nobody_can_see_it(
    server: Server, database: str, library: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.retrieval.postgres_tables._TENTHS", 2)
    with filled(library, "zqsecret") as index, psycopg.connect(server.url(database)) as reader:
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT 1")
        with pytest.raises(UsageError, match=r"another program reads .*try again"):
            index.delete(["a"])
        assert index.sources() == []
        assert b"zqsecret" in server.files(database)
        reader.rollback()
        index.erase()
        assert b"zqsecret" not in server.files(database)
        size = index.stats().bytes
        index.erase()
        assert index.stats().bytes == size


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
from antiphon.retrieval.postgres import PostgresIndex
from retrieval.samples import passage, source
index = PostgresIndex({server.url(database)!r}, create=True)
index.put(source("a"), [passage("lion", key="0")])
def passages():
    yield from (passage("tiger") for _ in range(3000))
    os._exit(9)
index.put(source("b"), passages())
"""
    where = str(Path(__file__).resolve().parents[1])
    assert subprocess.run([sys.executable, "-c", code], cwd=where, check=False).returncode == 9
    with library() as index:
        assert [item.path for item in index.sources()] == ["a"]
        assert (keys(index, "lion"), keys(index, "tiger")) == (["0"], [])


def test_many_may_make_it_at_once(library: Opener) -> None:
    made: list[int] = []

    def make(number: int) -> None:
        with library(embedder=LetterEmbedder(), create=True) as index:
            index.put(source(str(number)), [passage("lion")])
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
    for name in ("postgres", "postgres_server", "postgres_tables"):
        monkeypatch.delitem(sys.modules, f"antiphon.retrieval.{name}")
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
    monkeypatch.setattr(words, "TOKENIZER", "unicode61")
    with pytest.raises(UsageError, match=r"of scoring fts5 .* porter .* reads fts5 .*: drop its schema antiphon"):
        library()
    server.run("ALTER TABLE antiphon.library DROP scoring", "UPDATE antiphon.library SET version = 9", database=database)
    with pytest.raises(UsageError, match="of version 9 and this program reads 1"):
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


def test_long_names_and_long_words(library: Opener) -> None:
    path, word = "/" + os.urandom(2000).hex(), os.urandom(6000).hex()
    with library(create=True) as index:
        assert index.put(source(path), [passage(f"{word} and lion", key="0")]) == 1
        assert index.put(source(path), [passage(f"{word} and tiger", key="1"), passage("x")]) == 2
        assert keys(index, word) == ["1"]
        assert index.delete([path]) == 1


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
    assert "scorer id  bm25 scaled=1000" in run("stats")
    assert "lions.md" in run("list")
    assert "1 unchanged" in run("update")
    assert run("remove", str(tmp_path)) == "deleted 1 file\n"
    assert b"zqxwvrt" not in server.files("shared")

"""The index in PostgreSQL: the contract, the scores of the SQLite index, and deletion."""

import json
import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck
from hypothesis.stateful import invariant, run_state_machine_as_test

from antiphon.errors import UsageError
from antiphon.retrieval.index import Index
from antiphon.retrieval.options import PassageOptions, SearchOptions
from antiphon.retrieval.passages import Passage, cut
from antiphon.retrieval.readers import read
from antiphon.retrieval.sqlite.index import SqliteIndex
from retrieval import contract
from retrieval.contract import Opener, filled, keys, no_progress
from retrieval.embedders import LetterEmbedder
from retrieval.postgres.server import Server
from retrieval.samples import passage, source
from retrieval.sqlite.test_erase import canary
from support.data import DATA
from support.examples import examples

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'antiphon[postgres]'")

from antiphon.retrieval.postgres.index import PostgresIndex  # noqa: E402

pytestmark = pytest.mark.slow


class TestContract(contract.Contract):
    wait = "antiphon.retrieval.postgres.server._WAIT_S"

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

    given = examples(8, stateful_step_count=12, suppress_health_check=list(HealthCheck))
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
            index.put(source(f"/gone/{number}"), [passage(f"replaced {number}")])
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
    monkeypatch.setattr("antiphon.retrieval.postgres.tables._TENTHS", 2)
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


def test_long_names_and_long_words(library: Opener) -> None:
    path, word = "/" + os.urandom(2000).hex(), os.urandom(6000).hex()
    with library(create=True) as index:
        assert index.put(source(path), [passage(f"{word} and lion", key="0")]) == 1
        assert index.put(source(path), [passage(f"{word} and tiger", key="1"), passage("x")]) == 2
        assert keys(index, word) == ["1"]
        assert index.delete([path]) == 1

"""The embedded index against a dictionary, and what goes wrong with its file."""

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from antiphon.errors import UsageError
from antiphon.retrieval.index import Index
from antiphon.retrieval.options import PassageOptions, SearchOptions
from antiphon.retrieval.passages import Passage
from antiphon.retrieval.sqlite import SqliteIndex
from antiphon.retrieval.words import expression, terms
from retrieval.embedders import LetterEmbedder
from retrieval.samples import passage, source

NAMES = st.sampled_from(["a", "b", "c/d", "c/e'f", "ü"])
VOCABULARY = ("apple", "pear", "plum", "雨", "größe")
TEXTS = st.lists(st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=4).map(" ".join), max_size=4)


def no_progress(done: int, total: int) -> None:
    pass


class AgainstADictionary(RuleBasedStateMachine):
    """Any order of put, touch, delete, embed, erase and reopening: the index holds what a dictionary holds."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name) / "library"
        self.model: dict[str, tuple[str, list[str]]] = {}
        self.number = 0
        self.index = self.opened()

    def opened(self) -> SqliteIndex:
        return SqliteIndex(self.path, embedder=LetterEmbedder(), options=SearchOptions("lexical"), create=True)

    @rule(name=NAMES, texts=TEXTS)
    def put(self, name: str, texts: list[str]) -> None:
        self.number += 1
        count = self.index.put(source(name, str(self.number)), [passage(text, name) for text in texts])
        assert count == len(texts)
        self.model[name] = (str(self.number), texts)

    @rule(name=NAMES, texts=TEXTS)
    def fail(self, name: str, texts: list[str]) -> None:
        def broken() -> Iterator[Passage]:
            yield from (passage(text, name) for text in texts)
            raise UsageError("the file ends here")

        with pytest.raises(UsageError, match="ends here"):
            self.index.put(source(name), broken())

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        names = data.draw(st.lists(NAMES, unique=True))
        assert self.index.delete(names) == len(self.model.keys() & set(names))
        self.model = {name: kept for name, kept in self.model.items() if name not in names}

    @rule()
    def embed(self) -> None:
        self.index.embed(no_progress)
        stats = self.index.stats()
        assert stats.vectors == stats.passages

    @rule()
    def erase(self) -> None:
        self.index.erase()

    @rule()
    def reopen(self) -> None:
        self.index.close()
        self.index = self.opened()

    @invariant()
    def holds_the_same(self) -> None:
        texts = {name: texts for name, (_, texts) in self.model.items()}
        sources = {(item.path, item.digest, item.passages) for item in self.index.sources()}
        assert sources == {(name, digest, len(texts)) for name, (digest, texts) in self.model.items()}
        stats = self.index.stats()
        assert (stats.sources, stats.passages) == (len(texts), sum(map(len, texts.values())))
        assert stats.vectors <= stats.passages
        for word in VOCABULARY:
            found = self.index.search(word, 1000)
            expected = [(name, text) for name, texts in texts.items() for text in texts if word in text.split()]
            assert sorted((item.passage.source, item.passage.text) for item in found) == sorted(expected)
            assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)

    def teardown(self) -> None:
        self.index.close()
        connection = sqlite3.connect(self.path)
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()
        self.folder.cleanup()


AgainstADictionary.TestCase.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
TestAgainstADictionary = AgainstADictionary.TestCase


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "my library?#%"


def filled(path: Path, *texts: str, **options: object) -> SqliteIndex:
    index = SqliteIndex(path, create=True, **options)
    index.put(source("a"), [passage(text, key=str(number)) for number, text in enumerate(texts)])
    return index


def keys(index: Index, question: str, count: int = 10) -> list[str]:
    return [found.passage.key for found in index.search(question, count)]


def test_a_passage_comes_back_as_it_was(path: Path) -> None:
    kept = Passage("a", "A title", "Some text.\n雨", replace(passage("x").place, unit="page", first=3, last=4), "k")
    with SqliteIndex(path, create=True) as index:
        index.put(source("a"), [kept])
    with SqliteIndex(path) as index:
        assert [found.passage for found in index.search("text", 3)] == [kept]
        assert index.sources() == [replace(source("a"), passages=1)]
    assert path.stat().st_mode & 0o077 == 0
    assert [file.name for file in path.parent.iterdir()] == [path.name]  # one file


def test_words_are_stemmed_folded_and_weighed(path: Path) -> None:
    texts = "running quickly", "Café menu", "the the the the", "東京に雨が降る", "don't panic", "filler one", "filler two"
    with filled(path, *texts) as index:
        assert keys(index, "who runs?") == ["0"]
        assert keys(index, "CAFE\u0301") == keys(index, "cafe") == ["1"]
        assert keys(index, "the") == ["2"]  # nothing else was asked
        assert keys(index, "the filler") == ["5", "6"]
        assert keys(index, "雨") == ["3"]
        assert keys(index, "don't") == ["4"]
        assert keys(index, "filler", 1) == ["5"]
        assert keys(index, "") == keys(index, '" OR * NEAR( ^') == keys(index, "unknown") == []


def test_a_title_weighs_twice(path: Path) -> None:
    with SqliteIndex(path, create=True) as index:
        texts = [("other", "lion"), ("lion", "other"), ("x", "y"), ("x", "y"), ("x", "y")]
        index.put(source("a"), [passage(text, title=title, key=title) for title, text in texts])
        assert keys(index, "lion") == ["lion", "other"]


def test_any_question_is_searched_for(path: Path) -> None:
    long = " ".join(f"word{number}" for number in range(5000))
    with filled(path, "word3 and more", "x") as index:
        assert keys(index, long) == ["0"]
        assert keys(index, "a\x00b NOT ( : - + {x} \ud800 word3") == ["1", "0"]
        with pytest.raises(UsageError, match="at least one"):
            index.search("x", 0)


def test_terms() -> None:
    assert terms("What is the U.S. capital's NAME, name?") == ["u", "s", "capital", "name"]
    assert terms("isn't it vitamin D's? Don’t we'll") == ["vitamin", "d", "don"]
    assert terms("who is it") == ["who", "is", "it"]
    assert expression("雨 rain_man") == '"雨" OR "rain" OR "man"'
    assert expression("?!") == ""


def test_scaled_scores_do_not_depend_on_the_size_of_the_library(path: Path) -> None:
    scores = {}
    for scaled in (True, False):
        for size in (1, 2, 50, 2000):
            place = path.with_name(f"{scaled}{size}")
            texts = ["the red lion", *(f"filler number n{number}" for number in range(size - 1))]
            with filled(place, *texts, options=SearchOptions(scaled=scaled)) as index:
                scores[scaled, size] = index.search("lion", 1)[0].score
    assert all(5 < score < 10 for (scaled, _), score in scores.items() if scaled)
    assert scores[False, 1] < 0.001 < 7 < scores[False, 2000]


def test_vectors_and_fusion(path: Path) -> None:
    texts = "aab", "abb", "zzz lion", "lion king", "qqq", "www"
    with filled(path, *texts) as index:
        assert index.embed(no_progress) == 0
    steps = []
    dense = SearchOptions("dense")
    with SqliteIndex(path, embedder=LetterEmbedder(), options=dense) as index:
        with pytest.raises(UsageError, match="6 passages have no vectors yet"):
            index.search("aab", 1)
        assert index.embed(lambda done, total: steps.append((done, total))) == 6
        assert index.embed(no_progress) == 0
        assert index.stats().vectors == 6
        assert keys(index, "aab", 2) == ["0", "1"]
        found = index.search("name. aab", 1)[0]
        assert found.score == pytest.approx(1.0, abs=1e-3)
        assert index.scorer.scorer_id == "cosine letters; temperature=0.3"
        index.put(source("b"), [passage("aab", key="new")])
        with pytest.raises(UsageError, match="1 passages have no vectors"):
            index.search("aab", 1)
        index.embed(no_progress)
        assert set(keys(index, "aab", 2)) == {"0", "new"}
    assert steps == [(6, 6)]
    with SqliteIndex(path, embedder=LetterEmbedder()) as index:
        assert set(keys(index, "lion zzz", 2)) == {"2", "3"}
        results = index.search("lion zzz", 7)
        cosines = {found.passage.key: found.score for found in results}
        assert len(results) == 7  # all that have a vector, though only two have a word
        assert cosines["2"] > cosines["3"] > cosines["4"]
    with SqliteIndex(path) as index:
        assert keys(index, "lion") == ["2", "3"]
        assert index.stats().embedder == "letters"


def test_vectors_are_made_in_batches_that_are_kept(path: Path) -> None:
    class BrokenOffError(Exception):
        pass

    def interrupt(done: int, total: int) -> None:
        raise BrokenOffError

    with filled(path, *map(str, range(300))):
        pass
    embedder = LetterEmbedder()
    with pytest.raises(BrokenOffError), SqliteIndex(path, embedder=embedder) as index:
        index.embed(interrupt)
    with SqliteIndex(path, embedder=embedder) as index:
        done = index.stats().vectors
        assert 0 < done < 300
        assert index.embed(no_progress) == 300 - done
        rows = index._database.rows("SELECT vector FROM vectors")
        assert all(np.frombuffer(vector, "<f2").shape == (26,) for (vector,) in rows)


def test_an_empty_library_finds_nothing(path: Path) -> None:
    with SqliteIndex(path, embedder=LetterEmbedder(), create=True) as index:
        assert index.embed(no_progress) == 0
        assert index.search("lion", 3) == []
        assert index.stats().passages == 0
    with SqliteIndex(path) as index:
        assert index.search("lion", 3) == []


def test_another_embedder_is_refused(path: Path) -> None:
    with filled(path, "x", embedder=LetterEmbedder()) as index:
        index.embed(no_progress)
    with pytest.raises(UsageError, match=r"of another embedder \(letters\)"):
        SqliteIndex(path, embedder=LetterEmbedder("others"))
    with pytest.raises(UsageError, match="dense ranking needs an embedder"):
        SqliteIndex(path, options=SearchOptions("dense"))


def test_a_reader_sees_what_another_connection_writes(path: Path) -> None:
    with filled(path, "lion") as writer, SqliteIndex(path, options=SearchOptions(scaled=False)) as reader:
        before = reader.search("lion", 5)[0].score
        writer.put(source("b"), [passage(f"lion{number}", key="new") for number in range(100)])
        assert reader.stats().passages == 101
        assert reader.search("lion", 5)[0].score != before
        assert writer.delete(["a"]) == 1
        assert keys(reader, "lion") == []


def test_it_may_be_used_in_another_thread_than_it_was_opened_in(path: Path) -> None:
    with filled(path, "lion") as index:
        found = []
        thread = threading.Thread(target=lambda: found.extend(keys(index, "lion")))
        thread.start()
        thread.join()
        assert found == ["0"]


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
    with pytest.raises(UsageError, match="of version 9 and this program reads 1"):
        SqliteIndex(path)


def test_a_damaged_library(path: Path) -> None:
    filled(path, *("lion tiger bear " * 50 for _ in range(200))).close()
    data = bytearray(path.read_bytes())
    data[4096 * 3 :] = b"\xff" * (len(data) - 4096 * 3)
    path.write_bytes(data)
    with pytest.raises(UsageError, match="is damaged"), SqliteIndex(path) as index:
        index.search("lion", 1)


def test_a_library_that_is_being_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.retrieval.database._WAIT_S", 0.05)
    with filled(path, "lion") as index, SqliteIndex(path) as other:

        def passages() -> Iterator[Passage]:
            with pytest.raises(UsageError, match="in use by another program"):
                other.put(source("c"), [passage("x")])
            assert keys(other, "lion") == ["0"]  # reading goes on
            yield passage("tiger", key="1")

        index.put(source("b"), passages())
        assert keys(other, "tiger") == ["1"]


def test_a_killed_writer_leaves_whole_files_only(path: Path) -> None:
    code = f"""
import os, pathlib
from antiphon.retrieval.sqlite import SqliteIndex
from retrieval.samples import passage, source
index = SqliteIndex(pathlib.Path({str(path)!r}), create=True)
index.put(source("a"), [passage("lion", key="0")])
def passages():
    yield passage("tiger")
    os._exit(9)
index.put(source("b"), passages())
"""
    where = str(Path(__file__).resolve().parents[1])
    assert subprocess.run([sys.executable, "-c", code], cwd=where, check=False).returncode == 9
    with SqliteIndex(path) as index:
        assert [item.path for item in index.sources()] == ["a"]
        assert (keys(index, "lion"), keys(index, "tiger")) == (["0"], [])


def test_options_of_a_source_come_back(path: Path) -> None:
    given = replace(source("a"), options=PassageOptions(50, 7), passages=0)
    with SqliteIndex(path, create=True) as index:
        index.put(given, [])
        index.touch(replace(given, size=9, modified_ns=2**62))
        assert index.sources() == [replace(given, size=9, modified_ns=2**62)]


@pytest.mark.parametrize("given", [{"ranking": "fuzzy"}, {"temperature": 0.0}, {"temperature": float("nan")}])
def test_search_options_that_cannot_be(given: dict) -> None:
    with pytest.raises(UsageError, match="must be"):
        SearchOptions(**given)


def test_a_library_on_a_disk_that_cannot_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(path, "lion").close()
    monkeypatch.setattr("antiphon.retrieval.database.os.access", lambda place, mode: False)
    with SqliteIndex(path) as index:
        assert keys(index, "lion") == ["0"]
        with pytest.raises(UsageError, match="cannot be written"):
            index.put(source("b"), [passage("x")])
    assert [file.name for file in path.parent.iterdir()] == [path.name]

"""What every index does: tests that run on the SQLite file and on the PostgreSQL database."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from antiphon.errors import UsageError
from antiphon.retrieval.index import Index
from antiphon.retrieval.options import PassageOptions, SearchOptions
from antiphon.retrieval.passages import Passage
from retrieval.embedders import LetterEmbedder
from retrieval.samples import passage, source

Opener: TypeAlias = Callable[..., Index]
"""Opens one library: with `embedder`, `options`, `create`."""

NAMES = st.sampled_from(["a", "b", "c/d", "c/e'f", "ü"])
VOCABULARY = ("apple", "pear", "plum", "雨", "größe")
TEXTS = st.lists(st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=4).map(" ".join), max_size=4)


def no_progress(done: int, total: int) -> None:
    pass


def keys(index: Index, question: str, count: int = 10) -> list[str]:
    return [found.passage.key for found in index.search(question, count)]


def filled(library: Opener, *texts: str, **options: object) -> Index:
    index = library(create=True, **options)
    index.put(source("a"), [passage(text, key=str(number)) for number, text in enumerate(texts)])
    return index


class Contract:
    """A subclass says which index it is about: `libraries` gives a new library at each call."""

    wait = ""
    """Where the time is kept that a writer waits for another."""

    @pytest.fixture
    def libraries(self) -> Callable[[], Opener]:
        raise NotImplementedError

    @pytest.fixture
    def library(self, libraries: Callable[[], Opener]) -> Opener:
        return libraries()

    def test_a_passage_comes_back_as_it_was(self, library: Opener) -> None:
        kept = Passage("a", "A title", "Some text.\n雨", replace(passage("x").place, unit="page", first=3, last=4), "k")
        with library(create=True) as index:
            index.put(source("a"), [kept])
        with library() as index:
            assert [found.passage for found in index.search("text", 3)] == [kept]
            assert index.sources() == [replace(source("a"), passages=1)]

    def test_words_are_stemmed_folded_and_weighed(self, library: Opener) -> None:
        texts = "running quickly", "Café menu", "the the the the", "東京に雨が降る", "don't panic", "filler one", "filler two"
        with filled(library, *texts) as index:
            assert keys(index, "who runs?") == ["0"]
            assert keys(index, "CAFE\u0301") == keys(index, "cafe") == ["1"]
            assert keys(index, "the") == ["2"]  # nothing else was asked
            assert keys(index, "the filler") == ["5", "6"]
            assert keys(index, "雨") == ["3"]
            assert keys(index, "don't") == ["4"]
            assert keys(index, "filler", 1) == ["5"]
            assert keys(index, "") == keys(index, '" OR * NEAR( ^') == keys(index, "unknown") == []

    def test_a_title_weighs_twice(self, library: Opener) -> None:
        with library(create=True) as index:
            texts = [("other", "lion"), ("lion", "other"), ("x", "y"), ("x", "y"), ("x", "y")]
            index.put(source("a"), [passage(text, title=title, key=title) for title, text in texts])
            assert keys(index, "lion") == ["lion", "other"]

    def test_any_question_is_searched_for(self, library: Opener) -> None:
        long = " ".join(f"word{number}" for number in range(5000))
        with filled(library, "word3 and more", "x") as index:
            assert keys(index, long) == ["0"]
            assert set(keys(index, "a\x00b NOT ( : - + {x} \ud800 word3")) == {"1", "0"}
            with pytest.raises(UsageError, match="at least one"):
                index.search("x", 0)

    def test_scaled_scores_do_not_depend_on_the_size_of_the_library(self, libraries: Callable[[], Opener]) -> None:
        scores = {}
        for scaled in (True, False):
            for size in (1, 2, 50, 2000):
                texts = ["the red lion", *(f"filler number n{number}" for number in range(size - 1))]
                with filled(libraries(), *texts, options=SearchOptions(scaled=scaled)) as index:
                    scores[scaled, size] = index.search("lion", 1)[0].score
        assert all(5 < score < 10 for (scaled, _), score in scores.items() if scaled)
        assert min(scores.values()) > 4

    def test_a_word_of_every_passage_still_counts(self, library: Opener) -> None:
        texts = "the mill burned down in 1911", "a mill by the river", "the miller of the mill", "a museum is in the mill"
        with filled(library, *texts) as index:
            assert keys(index, "mill") == ["0", "1", "2", "3"] or len(keys(index, "mill")) == 4
            assert all(found.score > 1 for found in index.search("mill", 10))
            assert keys(index, "when did the mill burn?")[0] == "0"

    def test_copies_count_once_and_are_found_until_the_last_is_gone(self, libraries: Callable[[], Opener]) -> None:
        texts = {
            "/d/notes.txt": "the mill burned down",
            "/d/other.txt": "a lake freezes",
            "/d/copy.txt": "the mill  burned down",
        }

        def put(index: Index, path: str, title: str = "") -> None:
            index.put(source(path), [passage(texts[path], path, title or path[3:-4], key=path)])

        with libraries()(create=True) as once, libraries()(create=True) as twice:
            for path in ("/d/notes.txt", "/d/other.txt"):
                put(once, path)
                put(twice, path)
            put(twice, "/d/copy.txt")
            assert (twice.stats().passages, twice.stats().copies) == (3, 1)
            here, there = (index.search("when did the mill burn", 5) for index in (once, twice))
            assert [(item.passage.text, item.score) for item in here] == [(item.passage.text, item.score) for item in there]
            assert twice.delete(["/d/notes.txt"]) == 1
            assert keys(twice, "mill") == ["/d/copy.txt"]
            assert twice.stats().copies == 0
            put(twice, "/d/notes.txt")
            put(twice, "/d/copy.txt", "a title of its own")  # which makes it another passage
            assert set(keys(twice, "mill")) == {"/d/notes.txt", "/d/copy.txt"}
            assert twice.delete(list(texts)) == 3
            assert keys(twice, "mill lake") == []
            put(twice, "/d/other.txt")
            assert len(keys(twice, "lake")) == 1

    def test_a_copy_inherits_the_vector(self, library: Opener) -> None:
        with library(embedder=LetterEmbedder(), options=SearchOptions("dense"), create=True) as index:
            for name in ("a", "b", "c"):
                index.put(source(name), [passage("aab", name, key=name), passage("aab", name), passage(f"zz{name}", name)])
            assert index.embed(no_progress) == 4
            assert keys(index, "aab", 1) == ["a"]
            assert index.delete(["a"]) == 1
            assert index.embed(no_progress) == 0
            assert keys(index, "aab", 1) == ["b"]
            assert (index.stats().vectors, index.stats().passages, index.stats().copies) == (3, 6, 3)

    def test_vectors_and_fusion(self, library: Opener) -> None:
        texts = "aab", "abb", "zzz lion", "lion king", "qqq", "www"
        with filled(library, *texts) as index:
            assert index.embed(no_progress) == 0
        steps = []
        dense = SearchOptions("dense")
        with library(embedder=LetterEmbedder(), options=dense) as index:
            with pytest.raises(UsageError, match="6 passages have no vectors yet"):
                index.search("aab", 1)
            assert index.embed(lambda done, total: steps.append((done, total))) == 6
            assert index.embed(no_progress) == 0
            assert index.stats().vectors == 6
            assert keys(index, "aab", 2) == ["0", "1"]
            found = index.search("name. aab", 1)[0]
            assert found.score == pytest.approx(1.0, abs=1e-3)
            assert index.scorer.scorer_id == "cosine letters; temperature=0.3"
            index.put(source("b"), [passage("aabb", key="new")])
            with pytest.raises(UsageError, match="1 passages have no vectors"):
                index.search("aab", 1)
            index.embed(no_progress)
            assert keys(index, "aabb name", 1) == ["new"]
            assert index.delete(["b"]) == 1
            assert keys(index, "aab", 2) == ["0", "1"]
        assert steps == [(6, 6)]
        with library(embedder=LetterEmbedder()) as index:
            assert set(keys(index, "lion zzz", 2)) == {"2", "3"}
            results = index.search("lion zzz", 7)
            cosines = {found.passage.key: found.score for found in results}
            assert len(results) == 6  # all that have a vector, though only two have a word
            assert cosines["2"] > cosines["3"] > cosines["4"]
        with library() as index:
            assert keys(index, "lion") == ["2", "3"]
            assert index.stats().embedder == "letters"

    def test_vectors_are_made_in_batches_that_are_kept(self, library: Opener) -> None:
        class BrokenOffError(Exception):
            pass

        def interrupt(done: int, total: int) -> None:
            raise BrokenOffError

        filled(library, *map(str, range(300))).close()
        embedder = LetterEmbedder()
        with pytest.raises(BrokenOffError), library(embedder=embedder) as index:
            index.embed(interrupt)
        with library(embedder=embedder) as index:
            done = index.stats().vectors
            assert 0 < done < 300
            assert index.embed(no_progress) == 300 - done
            assert len(index.search("name", 300)) == 300

    def test_an_empty_library_finds_nothing(self, library: Opener) -> None:
        with library(embedder=LetterEmbedder(), create=True) as index:
            assert index.embed(no_progress) == 0
            assert index.search("lion", 3) == []
            assert index.stats().passages == 0
        with library() as index:
            assert index.search("lion", 3) == []

    def test_another_embedder_is_refused(self, library: Opener) -> None:
        with filled(library, "x", embedder=LetterEmbedder()) as index:
            index.embed(no_progress)
        with pytest.raises(UsageError, match=r"of another embedder \(letters\)"):
            library(embedder=LetterEmbedder("others"))
        with pytest.raises(UsageError, match="dense ranking needs an embedder"):
            library(options=SearchOptions("dense"))

    def test_a_reader_sees_what_another_connection_writes(self, library: Opener) -> None:
        with filled(library, "lion") as writer, library(options=SearchOptions(scaled=False)) as reader:
            before = reader.search("lion", 5)[0].score
            writer.put(source("b"), [passage(f"lion{number}", key="new") for number in range(100)])
            assert reader.stats().passages == 101
            assert reader.search("lion", 5)[0].score != before
            assert writer.delete(["a"]) == 1
            assert keys(reader, "lion") == []

    def test_it_may_be_used_in_another_thread_than_it_was_opened_in(self, library: Opener) -> None:
        with filled(library, "lion") as index:
            found = []
            thread = threading.Thread(target=lambda: found.extend(keys(index, "lion")))
            thread.start()
            thread.join()
            assert found == ["0"]

    def test_a_library_that_is_being_written(self, library: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(self.wait, 0.05)
        with filled(library, "lion") as index, library() as other:

            def passages() -> Iterator[Passage]:
                with pytest.raises(UsageError, match="in use by another program"):
                    other.put(source("c"), [passage("x")])
                assert keys(other, "lion") == ["0"]  # reading goes on
                yield passage("tiger", key="1")

            index.put(source("b"), passages())
            assert keys(other, "tiger") == ["1"]

    def test_options_of_a_source_come_back(self, library: Opener) -> None:
        given = replace(source("a"), options=PassageOptions(50, 7), passages=0)
        with library(create=True) as index:
            index.put(given, [])
            index.touch(replace(given, size=9, modified_ns=2**62))
            assert index.sources() == [replace(given, size=9, modified_ns=2**62)]


class AgainstADictionary(RuleBasedStateMachine):
    """Any order of put, touch, delete, embed, erase and reopening: the index holds what a dictionary holds."""

    def __init__(self, library: Opener) -> None:
        super().__init__()
        self.library = library
        self.model: dict[str, tuple[str, list[str]]] = {}
        self.number = 0
        self.index = self.opened()

    def opened(self) -> Index:
        return self.library(embedder=LetterEmbedder(), options=SearchOptions("lexical"), create=True)

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
        assert stats.vectors == stats.passages - stats.copies

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
        different = {text for texts in texts.values() for text in texts}
        assert stats.passages - stats.copies == len(different)
        assert stats.vectors <= len(different)
        for word in VOCABULARY:
            found = self.index.search(word, 1000)
            expected = sorted(text for text in different if word in text.split())
            assert sorted(item.passage.text for item in found) == expected
            assert all(item.passage.text in texts[item.passage.source] for item in found)
            assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)

    def teardown(self) -> None:
        self.index.close()

"""The embedded index: one SQLite file with the passages, their words (FTS5) and, beside them, their vectors."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from antiphon.errors import UsageError
from antiphon.retrieval.database import Database
from antiphon.retrieval.documents import Place
from antiphon.retrieval.embedding import Embedder, passage_text
from antiphon.retrieval.fusion import DEPTH, fused
from antiphon.retrieval.index import Found, Source, Stats
from antiphon.retrieval.options import PassageOptions, Ranking, SearchOptions
from antiphon.retrieval.passages import Passage
from antiphon.retrieval.weights import bm25_scale, scorer_of
from antiphon.retrieval.words import TITLE_WEIGHT, TOKENIZER, expression, indexed

_VERSION = 1
_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sources (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, modified_ns INTEGER NOT NULL,
    digest TEXT NOT NULL, words INTEGER NOT NULL, overlap INTEGER NOT NULL, passages INTEGER NOT NULL);
CREATE TABLE passages (id INTEGER PRIMARY KEY, source INTEGER NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL,
    unit TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, key TEXT NOT NULL);
CREATE INDEX passages_by_source ON passages (source);
CREATE TABLE vectors (passage INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE VIRTUAL TABLE words USING fts5 (title, text, content='', tokenize='TOKENIZER');
INSERT INTO words (words, rank) VALUES ('rank', 'bm25(TITLE_WEIGHT, 1.0)')
"""
_BATCH = 128
_LEFTOVERS, _EMBEDDER = "leftovers", "embedder"


class SqliteIndex:
    """An `Index` in one file. Others may search it while one writes."""

    def __init__(
        self,
        path: Path,
        *,
        key: str | None = None,
        embedder: Embedder | None = None,
        options: SearchOptions | None = None,
        create: bool = False,
    ) -> None:
        """Open the library, or make it if `create`. key: of an encrypted one. Raises UsageError."""
        options = options or SearchOptions()
        self._embedder = embedder
        self._ranking: Ranking = options.ranking or ("lexical" if embedder is None else "hybrid")
        self._scaled = options.scaled
        self.scorer = scorer_of(self._ranking, None if embedder is None else embedder.identity, options)
        self._kept: tuple[tuple[int, int], dict[str, Any]] | None = None
        self._database = Database(path, _schema(), _VERSION, key, create)
        try:
            self._database.function("indexed", indexed)
            self._require_same_embedder(path)
        except UsageError:
            self._database.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back."""
        self._database.close()

    def put(self, source: Source, passages: Iterable[Passage]) -> int:
        """Add or replace a source in one transaction; how many passages it has."""
        with self._database.transaction():
            self._remove(source.path)
            values = source.size, source.modified_ns, source.digest, source.options.words, source.options.overlap
            number, _ = self._database.run("INSERT INTO sources VALUES (NULL, ?, ?, ?, ?, ?, ?, 0)", (source.path, *values))
            rows = (_row(number, passage) for passage in passages)
            count = self._database.run_many("INSERT INTO passages VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", rows)
            self._database.run(_ADD_WORDS, (number,))
            self._database.run("UPDATE sources SET passages = ? WHERE id = ?", (count, number))
        return count

    def touch(self, source: Source) -> None:
        """Record size and time."""
        values = source.size, source.modified_ns, source.path
        self._database.run("UPDATE sources SET size = ?, modified_ns = ? WHERE path = ?", values)

    def sources(self) -> list[Source]:
        """Every source, by path."""
        rows = self._database.rows(
            "SELECT path, size, modified_ns, digest, words, overlap, passages FROM sources ORDER BY path"
        )
        return [_source(*row) for row in rows]

    def delete(self, paths: Collection[str]) -> int:
        """Remove sources and every trace of them; how many there were."""
        with self._database.transaction():
            count = sum(self._remove(path) for path in paths)
        self.erase()
        return count

    def erase(self) -> None:
        """Forget the words of deleted passages and write the file anew, if anything was deleted since."""
        if not self._fact(_LEFTOVERS):
            return
        self._database.run("INSERT INTO words (words) VALUES ('optimize')")  # forgets the words of deleted passages
        self._database.rewrite()
        self._database.run("DELETE FROM facts WHERE name = ?", (_LEFTOVERS,))

    def embed(self, progress: Callable[[int, int], None]) -> int:
        """Vectors for passages without one, 128 at a time, each batch committed; how many."""
        if self._embedder is None:
            return 0
        self._set_fact(_EMBEDDER, self._embedder.identity)
        ((missing,),) = self._database.rows(_COUNT_WITHOUT_VECTOR)
        done = last = 0
        while batch := self._database.rows(_NEXT_WITHOUT_VECTOR, (last, _BATCH)):
            vectors = self._embedder.embed([passage_text(title, text) for _, title, text in batch])
            rows = ((row[0], vector.astype("<f2").tobytes()) for row, vector in zip(batch, vectors, strict=True))
            with self._database.transaction():
                self._database.run_many("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
            done, last = done + len(batch), batch[-1][0]
            progress(done, missing)
        return done

    def search(self, question: str, count: int) -> list[Found]:
        """The best passages by the ranking that the index was opened with."""
        if count < 1:
            raise UsageError(f"at least one passage must be asked for, not {count}")
        if self._ranking == "lexical":
            return self._found(self._by_words(question, count))
        return self._found(self._by_vectors(question, count))

    def stats(self) -> Stats:
        """Counts, size, embedder and scorer."""
        ((sources, vectors),) = self._database.rows("SELECT (SELECT count(*) FROM sources), (SELECT count(*) FROM vectors)")
        embedder, size = self._fact(_EMBEDDER), self._database.bytes
        return Stats(sources, self._passages(), vectors, embedder, size, self.scorer.scorer_id)

    def _require_same_embedder(self, path: Path) -> None:
        known = self._fact(_EMBEDDER)
        if self._embedder is not None and known not in ("", self._embedder.identity):
            raise UsageError(f"the vectors of {path} are of another embedder ({known}): name that one, or make a new library")

    def _remove(self, path: str) -> int:
        rows = self._database.rows("SELECT id FROM sources WHERE path = ?", (path,))
        for row in rows:
            self._database.run(_DELETE_WORDS, row)
            self._database.run("DELETE FROM vectors WHERE passage IN (SELECT id FROM passages WHERE source = ?)", row)
            self._database.run("DELETE FROM passages WHERE source = ?", row)
            self._database.run("DELETE FROM sources WHERE id = ?", row)
            self._set_fact(_LEFTOVERS, "yes")
        return len(rows)

    def _by_words(self, question: str, count: int) -> list[tuple[int, float]]:
        """Ids and BM25 scores, best first."""
        wanted = expression(question)
        if not wanted:
            return []
        statement = "SELECT rowid, -rank FROM words WHERE words MATCH ? ORDER BY rank, rowid LIMIT ?"
        scale = bm25_scale(self._passages()) if self._scaled else 1.0
        return [(number, score * scale) for number, score in self._database.rows(statement, (wanted, count))]

    def _by_vectors(self, question: str, count: int) -> list[tuple[int, float]]:
        """Ids and cosines; by cosine, or fused with the ranking by words."""
        numbers, cosines = self._cosines(question)
        depth = max(count, DEPTH) if self._ranking == "hybrid" else count
        nearest = np.lexsort((numbers, -cosines))[:depth]
        chosen = [int(number) for number in numbers[nearest]]
        if self._ranking == "hybrid":
            chosen = fused([chosen, [number for number, _ in self._by_words(question, depth)]])
        at = np.searchsorted(numbers, chosen[:count])
        return [(number, float(cosine)) for number, cosine in zip(chosen, cosines[at], strict=False)]

    def _cosines(self, question: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        if self._embedder is None:
            raise UsageError("searching by vectors needs an embedder: give --embedder DIR")
        numbers, vectors = self._keep("vectors", self._load_vectors)
        return numbers, vectors @ self._embedder.embed([question])[0]

    def _load_vectors(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Ids, rising, and one row of unit length each."""
        rows = self._database.rows("SELECT passage, vector FROM vectors ORDER BY passage")
        if missing := self._passages() - len(rows):
            raise UsageError(f"{missing} passages have no vectors yet: run `antiphon library update` with --embedder")
        width = 0 if self._embedder is None else self._embedder.width
        vectors = np.frombuffer(b"".join(vector for _, vector in rows), "<f2").reshape(-1, width)
        return np.array([number for number, _ in rows], np.int64), vectors.astype(np.float32)

    def _passages(self) -> int:
        return int(self._keep("passages", lambda: self._database.rows("SELECT count(*) FROM passages")[0][0]))

    def _keep(self, name: str, load: Callable[[], Any]) -> Any:
        """What `load` returns, loaded again only after the file has changed."""
        version = self._database.version
        if self._kept is None or self._kept[0] != version:
            self._kept = version, {}
        kept = self._kept[1]
        if name not in kept:
            kept[name] = load()
        return kept[name]

    def _found(self, scored: list[tuple[int, float]]) -> list[Found]:
        passages = {number: self._database.rows(_PASSAGE, (number,)) for number, _ in scored}
        return [Found(_passage(*row), score) for number, score in scored for row in passages[number]]

    def _fact(self, name: str) -> str:
        rows = self._database.rows("SELECT value FROM facts WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else ""

    def _set_fact(self, name: str, value: str) -> None:
        self._database.run("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))


def _schema() -> str:
    return _SCHEMA.replace("TOKENIZER", TOKENIZER).replace("TITLE_WEIGHT", str(TITLE_WEIGHT))


_ADD_WORDS = """INSERT INTO words (rowid, title, text)
    SELECT id, indexed(title), indexed(text) FROM passages WHERE source = ?"""
_DELETE_WORDS = """INSERT INTO words (words, rowid, title, text)
    SELECT 'delete', id, indexed(title), indexed(text) FROM passages WHERE source = ?"""
_COUNT_WITHOUT_VECTOR = "SELECT count(*) FROM passages WHERE NOT EXISTS (SELECT 1 FROM vectors WHERE passage = passages.id)"
_NEXT_WITHOUT_VECTOR = """SELECT id, title, text FROM passages
    WHERE id > ? AND NOT EXISTS (SELECT 1 FROM vectors WHERE passage = passages.id) ORDER BY id LIMIT ?"""
_PASSAGE = """SELECT sources.path, title, text, unit, first, last, key FROM passages JOIN sources ON sources.id = source
    WHERE passages.id = ?"""


def _source(path: str, size: int, modified_ns: int, digest: str, words: int, overlap: int, passages: int) -> Source:
    return Source(path, size, modified_ns, digest, PassageOptions(words, overlap), passages)


def _row(source: int, passage: Passage) -> tuple[Any, ...]:
    place = passage.place
    return source, passage.title, passage.text, place.unit, place.first, place.last, passage.key


def _passage(path: str, title: str, text: str, unit: Any, first: int, last: int, key: str) -> Passage:
    return Passage(path, title, text, Place(unit, first, last), key)

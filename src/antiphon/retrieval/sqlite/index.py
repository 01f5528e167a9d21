"""The embedded index: one SQLite file with the passages, their words with counts and, beside them, their vectors."""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import repeat
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from antiphon.errors import UsageError
from antiphon.retrieval import postings
from antiphon.retrieval.documents import Place
from antiphon.retrieval.embedding import Embedder, passage_text
from antiphon.retrieval.fusion import DEPTH, fused
from antiphon.retrieval.index import Found, Renewing, Source, Stats
from antiphon.retrieval.options import PassageOptions, Ranking, Reading, SearchOptions
from antiphon.retrieval.passages import Passage, batches
from antiphon.retrieval.sqlite import tables
from antiphon.retrieval.sqlite.database import Database
from antiphon.retrieval.weights import scorer_of
from antiphon.retrieval.words import Words

_BATCH, _VECTOR_BATCH = 4000, 128


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
        renew: Renewing | None = None,
    ) -> None:
        """Open the library, or make it if `create`. key: of an encrypted one. Raises UsageError.

        renew: is told how far it is where a library of before is indexed anew, which happens only if it or `create` is given.
        """
        options = options or SearchOptions()
        self._embedder = embedder
        self._ranking: Ranking = options.ranking or ("lexical" if embedder is None else "hybrid")
        self._scaled = options.scaled
        self.scorer = scorer_of(self._ranking, None if embedder is None else embedder.identity, options)
        self._kept: tuple[tuple[int, int], dict[str, Any]] | None = None
        self._database, self._words = Database(path, tables.SCHEMA, tables.VERSION, key, create), Words()
        try:
            self._require_same_scoring(path, renew or (_unseen if create else None))
            self._require_same_embedder(path)
        except UsageError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back."""
        self._words.close()
        self._database.close()

    def put(self, source: Source, passages: Iterable[Passage]) -> int:
        """Add or replace a source in one transaction; how many passages it has."""
        with self._database.transaction():
            # In the same transaction as what takes its place: a reading that fails midway leaves the old passages.
            self._remove(source.path)
            values = source.size, source.modified_ns, source.digest, source.options.words, source.options.overlap
            read = source.reading.encoding or "", source.reading.text_field, source.real
            number, _ = self._database.run(_ADD_SOURCE, (source.path, *values, *read))
            count = sum(self._write(number, batch) for batch in batches(passages, _BATCH))
            self._database.run("UPDATE sources SET passages = ? WHERE id = ?", (count, number))
        return count

    def touch(self, source: Source) -> None:
        """Record size and time."""
        values = source.size, source.modified_ns, source.path
        self._database.run("UPDATE sources SET size = ?, modified_ns = ? WHERE path = ?", values)

    def sources(self) -> list[Source]:
        """Every source, by path."""
        return [_source(row) for row in self._database.rows(_SOURCES)]

    def delete(self, paths: Collection[str]) -> int:
        """Remove sources and every trace of them; how many there were."""
        with self._database.transaction():
            count = sum(self._remove(path) for path in paths)
        self.erase()
        return count

    def erase(self) -> None:
        """Write the file anew, if anything was deleted since."""
        if not tables.fact(self._database, tables.LEFTOVERS):
            return
        self._database.rewrite()
        # After the file is written anew, so that a death in between leads to once more and never to never.
        self._database.run("DELETE FROM facts WHERE name = ?", (tables.LEFTOVERS,))

    def embed(self, progress: Callable[[int, int], None]) -> int:
        """Vectors for passages without one, 128 at a time, each batch committed; how many."""
        if self._embedder is None:
            return 0
        tables.set_fact(self._database, tables.EMBEDDER, self._embedder.identity)
        ((missing,),) = self._database.rows(_COUNT_WITHOUT_VECTOR)
        done = last = 0
        while batch := self._database.rows(_NEXT_WITHOUT_VECTOR, (last, _VECTOR_BATCH)):
            vectors = self._embedder.embed([passage_text(title, text) for _, title, text in batch])
            # In half precision, as a server has them: both kinds of index have the same cosines.
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
        ((sources, passages, counted, vectors),) = self._database.rows(_STATS)
        embedder, size = tables.fact(self._database, tables.EMBEDDER), self._database.bytes
        return Stats(sources, passages, vectors, embedder, size, self.scorer.scorer_id, passages - counted)

    def _require_same_scoring(self, path: Path, renew: Renewing | None) -> None:
        """What was indexed by another version of this program is indexed anew, from its own passages."""
        if tables.fact(self._database, tables.SCORING) == postings.identity():
            return
        if renew is None:
            raise UsageError(f"{path} is of an earlier version: run `antiphon library update` once, which indexes it anew")
        with self._database.transaction():
            if tables.fact(self._database, tables.SCORING) == postings.identity():
                return  # another program was faster
            if self._database.found < tables.VERSION or tables.fact(self._database, tables.SCORING):
                tables.prepare(self._database)
                tables.set_fact(self._database, tables.LEFTOVERS, "yes")
            self._index_anew(renew)
            tables.set_fact(self._database, tables.SCORING, postings.identity())

    def _index_anew(self, renew: Renewing) -> None:
        ((left,),) = self._database.rows("SELECT count(*) FROM passages")
        done = last = 0
        while rows := self._database.rows(_NEXT, (last, _BATCH)):
            last, paths = rows[-1][0], [row[-1] for row in rows]
            found = [Passage(path, row[2], row[3], Place("line", 1, 1)) for row, path in zip(rows, paths, strict=True)]
            self._database.run_many(
                "UPDATE passages SET digest = ? WHERE id = ?",
                [(passage.digest, row[0]) for passage, row in zip(found, rows, strict=True)],
            )
            for source in dict.fromkeys(row[1] for row in rows):
                self._count([row[0] for row in rows if row[1] == source], source)
            done += len(rows)
            renew(done, left)
        self._database.run("DELETE FROM vectors WHERE passage NOT IN (SELECT id FROM passages WHERE counted)")

    def _require_same_embedder(self, path: Path) -> None:
        known = tables.fact(self._database, tables.EMBEDDER)
        if self._embedder is not None and known not in ("", self._embedder.identity):
            raise UsageError(f"the vectors of {path} are of another embedder ({known}): name that one, or make a new library")

    def _write(self, source: int, passages: Sequence[Passage]) -> int:
        """Add passages to a source; how many."""
        ((last,),) = self._database.rows("SELECT coalesce(max(id), 0) FROM passages")
        numbers = range(last + 1, last + len(passages) + 1)
        rows = (_row(number, source, passage) for number, passage in zip(numbers, passages, strict=True))
        self._database.run_many("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)", rows)
        self._count(numbers, source)
        return len(passages)

    def _count(self, numbers: Sequence[int], source: int) -> None:
        """Make these passages of a source findable, except for copies of passages that are."""
        rows = self._database.rows(_NEW, (numbers[0], numbers[-1], source))
        counted = postings.counted(self._words, rows)
        self._database.run_many("UPDATE passages SET counted = 1 WHERE id = ?", [(row[0],) for row in rows])
        self._database.run_many("INSERT INTO postings VALUES (?, ?, ?)", zip(counted.words, repeat(source), counted.entries))
        added = len(rows), sum(counted.lengths), source
        self._database.run("UPDATE sources SET counted = counted + ?, all_words = all_words + ? WHERE id = ?", added)

    def _remove(self, path: str) -> int:
        rows = self._database.rows("SELECT id FROM sources WHERE path = ?", (path,))
        for (number,) in rows:
            # Of copies one passage is counted and has a vector. If it goes, the first copy that stays inherits both, or a text
            # that is still in the library could not be found.
            heirs = self._database.rows(_HEIRS, (number,))
            self._database.run_many("UPDATE OR REPLACE vectors SET passage = ? WHERE passage = ?", (row[:2] for row in heirs))
            self._database.run("DELETE FROM vectors WHERE passage IN (SELECT id FROM passages WHERE source = ?)", (number,))
            for table in ("postings", "passages"):
                self._database.run(f"DELETE FROM {table} WHERE source = ?", (number,))  # noqa: S608
            self._database.run("DELETE FROM sources WHERE id = ?", (number,))
            for heir, _, source in heirs:
                self._count([heir], source)
            # In the same transaction: if the program dies before `erase`, the next run knows that bytes are left.
            tables.set_fact(self._database, tables.LEFTOVERS, "yes")
        return len(rows)

    def _by_words(self, question: str, count: int) -> list[tuple[int, float]]:
        """Ids and BM25 scores, best first."""
        asked = [postings.stored(word) for word in self._words.asked(question)]
        found = {word: self._entries(word) for word in asked}
        known = {word: entries for word, entries in found.items() if len(entries)}
        return postings.best(asked, known, self._totals(), count, self._scaled)

    def _entries(self, word: str) -> postings.Entries:
        """Of a word of a question, or of all words that begin so."""
        if between := postings.beginning(word):
            return postings.joined(data for (data,) in self._database.rows(_ENTRIES_BETWEEN, between))
        return postings.unpacked(b"".join(data for (data,) in self._database.rows(_ENTRIES, (word,))))

    def _by_vectors(self, question: str, count: int) -> list[tuple[int, float]]:
        """Ids and cosines; by cosine, or fused with the ranking by words."""
        numbers, cosines = self._cosines(question)
        depth = max(count, DEPTH) if self._ranking == "hybrid" else count
        # By cosine, then by id: both kinds of index rank equal passages alike.
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
        if missing := self._totals().passages - len(rows):
            raise UsageError(f"{missing} passages have no vectors yet: run `antiphon library update` with --embedder")
        width = 0 if self._embedder is None else self._embedder.width
        vectors = np.frombuffer(b"".join(vector for _, vector in rows), "<f2").reshape(-1, width)
        return np.array([number for number, _ in rows], np.int64), vectors.astype(np.float32)

    def _totals(self) -> postings.Totals:
        found: postings.Totals = self._keep("totals", lambda: postings.Totals(*self._database.rows(_TOTALS)[0]))
        return found

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


_ADD_SOURCE = """INSERT INTO sources (path, size, modified_ns, digest, words, overlap, encoding, text_field, led_to, passages)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)"""
_SOURCES = """SELECT path, size, modified_ns, digest, words, overlap, passages, encoding, text_field, led_to FROM sources
    ORDER BY path"""
_NEW = """SELECT min(id), title, text FROM passages AS new WHERE id BETWEEN ? AND ? AND source = ?
    AND NOT EXISTS (SELECT 1 FROM passages AS old WHERE old.digest = new.digest AND old.counted) GROUP BY digest ORDER BY 1"""
_NEXT = """SELECT passages.id, source, title, text, path FROM passages JOIN sources ON sources.id = source
    WHERE passages.id > ? ORDER BY passages.id LIMIT ?"""
_HEIRS = """SELECT min(heir.id), gone.id, heir.source FROM passages AS gone JOIN passages AS heir ON heir.digest = gone.digest
    WHERE gone.source = ? AND gone.counted AND heir.source <> gone.source GROUP BY gone.id ORDER BY 1"""
_ENTRIES = "SELECT entries FROM postings WHERE term = ?"
_ENTRIES_BETWEEN = "SELECT entries FROM postings WHERE term >= ? AND term < ?"
_TOTALS = "SELECT coalesce(sum(counted), 0), coalesce(sum(all_words), 0) FROM sources"
_STATS = """SELECT count(*), coalesce(sum(passages), 0), coalesce(sum(counted), 0), (SELECT count(*) FROM vectors)
    FROM sources"""
_COUNT_WITHOUT_VECTOR = """SELECT count(*) FROM passages
    WHERE counted AND NOT EXISTS (SELECT 1 FROM vectors WHERE passage = passages.id)"""
_NEXT_WITHOUT_VECTOR = """SELECT id, title, text FROM passages WHERE id > ? AND counted
    AND NOT EXISTS (SELECT 1 FROM vectors WHERE passage = passages.id) ORDER BY id LIMIT ?"""
_PASSAGE = """SELECT sources.path, title, text, unit, first, last, key FROM passages JOIN sources ON sources.id = source
    WHERE passages.id = ?"""


def _unseen(done: int, total: int) -> None:
    """Nobody looks on."""


def _source(row: tuple[Any, ...]) -> Source:
    path, size, modified_ns, digest, words, overlap, passages, encoding, field, real = row
    reading = Reading(encoding or None, field)
    return Source(path, size, modified_ns, digest, PassageOptions(words, overlap), passages, reading, real)


def _row(number: int, source: int, passage: Passage) -> tuple[Any, ...]:
    place = passage.place
    return number, source, passage.title, passage.text, place.unit, place.first, place.last, passage.key, passage.digest


def _passage(path: str, title: str, text: str, unit: Any, first: int, last: int, key: str) -> Passage:
    return Passage(path, title, text, Place(unit, first, last), key)

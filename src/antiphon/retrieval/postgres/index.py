"""The cloud's index: a PostgreSQL database with the passages, the words of their text with counts, and vectors by pgvector.

It ranks and scores as the SQLite index does: BM25 from the same counts by the same formula, cosines of the same half-precision
vectors. Only the nearest vectors are found by an approximate graph (HNSW), which may miss one.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import repeat
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
from antiphon.retrieval.postgres import statements as sql
from antiphon.retrieval.postgres import tables
from antiphon.retrieval.postgres.server import Server, ServerLostError
from antiphon.retrieval.weights import scorer_of
from antiphon.retrieval.words import Words

_BATCH, _VECTOR_BATCH = 2000, 128
_SPARE, _LEAST_LOOK, _MOST_LOOK = 10, 200, 1000  # vectors that a search looks at; the last is pgvector's bound


@dataclass(frozen=True, slots=True)
class _Totals:
    """What the library holds, as a search sees it."""

    passages: int
    words: int
    vectors: int


class PostgresIndex:
    """An `Index` in a database of a server, in its schema `antiphon`. Any number may search it while one writes."""

    def __init__(
        self,
        url: str,
        *,
        embedder: Embedder | None = None,
        options: SearchOptions | None = None,
        create: bool = False,
        renew: Renewing | None = None,
    ) -> None:
        """Open the library, or make it if `create`. url: `postgresql://user@host/database`. Raises UsageError.

        renew: is told how far it is where a library of before is indexed anew, which happens only if it or `create` is given.
        """
        options = options or SearchOptions()
        self._embedder = embedder
        self._ranking: Ranking = options.ranking or ("lexical" if embedder is None else "hybrid")
        self._scaled = options.scaled
        self.scorer = scorer_of(self._ranking, None if embedder is None else embedder.identity, options)
        self._server, self._words = Server(url), Words()
        try:
            tables.prepare(self._server, create)
            self._require_of_today(renew or (_unseen if create else None))
            if embedder is not None:
                tables.require_same_embedder(self._server, embedder)
        except UsageError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._words.close()
        self._server.close()

    def put(self, source: Source, passages: Iterable[Passage]) -> int:
        """Add or replace a source in one transaction; how many passages it has."""
        with self._server.writing():
            # First of all: ids follow the last one of the library, and two writers would give the same.
            last, with_vectors = tables.lock(self._server)
            self._remove(source.path, with_vectors)
            values = source.size, source.modified_ns, source.digest, source.options.words, source.options.overlap
            read = source.reading.encoding or "", source.reading.text_field, source.real
            ((number,),) = self._server.rows(sql.ADD_SOURCE, (source.path, *values, *read))
            count = 0
            for batch in batches(passages, _BATCH):
                self._write(number, last + count + 1, batch)
                count += len(batch)
            self._server.run(sql.FILL_SOURCE, (count, number))
            self._server.run("UPDATE antiphon.library SET last = last + %s", (count,))
        return count

    def touch(self, source: Source) -> None:
        """Record size and time."""
        values = source.size, source.modified_ns, source.path
        self._server.run("UPDATE antiphon.sources SET size = %s, modified_ns = %s WHERE path = %s", values)

    def sources(self) -> list[Source]:
        """Every source, by path."""
        return [_source(row) for row in self._server.rows(sql.SOURCES)]

    def delete(self, paths: Collection[str]) -> int:
        """Remove sources, and erase them; how many there were."""
        with self._server.writing():
            _, with_vectors = tables.lock(self._server)
            count = sum(self._remove(path, with_vectors) for path in paths)
        self.erase()
        return count

    def erase(self) -> None:
        """Write the tables that hold text anew, if anything was deleted since; searches wait until that is done.

        Out of reach are what the server keeps beside its tables (the log of changes until it is used again, copies, backups)
        and the numbers of a vector, which stay in its page until another one needs the place.
        """
        tables.erase(self._server)

    def embed(self, progress: Callable[[int, int], None]) -> int:
        """Vectors for passages without one, 128 at a time, each batch committed; then a graph of them. How many."""
        if self._embedder is None:
            return 0
        tables.prepare_vectors(self._server, self._embedder)
        ((missing,),) = self._server.rows(sql.COUNT_WITHOUT_VECTOR)
        done = last = 0
        while batch := self._server.rows(sql.NEXT_WITHOUT_VECTOR, (last, _VECTOR_BATCH)):
            vectors = self._embedder.embed([passage_text(title, text) for _, title, text in batch])
            self._add_vectors([(vector.tolist(), row[0]) for row, vector in zip(batch, vectors, strict=True)])
            done, last = done + len(batch), batch[-1][0]
            progress(done, missing)
        tables.link_vectors(self._server, self._embedder)
        return done

    def search(self, question: str, count: int) -> list[Found]:
        """The best passages by the ranking that the index was opened with."""
        if count < 1:
            raise UsageError(f"at least one passage must be asked for, not {count}")
        asked = [postings.stored(word) for word in self._words.asked(question)]
        query = None if self._embedder is None or self._ranking == "lexical" else self._embedder.embed([question])[0]
        try:
            return self._search(asked, query, count)
        # Once more, for a search changes nothing; a write is never tried again by itself.
        except ServerLostError:  # the server was restarted since the last question
            return self._search(asked, query, count)

    def stats(self) -> Stats:
        """Counts, size, embedder and scorer."""
        ((sources, counted, vectors, embedder, passages, size),) = self._server.rows(sql.STATS)
        return Stats(sources, passages, vectors, embedder, size, self.scorer.scorer_id, passages - counted)

    def _require_of_today(self, renew: Renewing | None) -> None:
        """What was indexed by another version of this program is indexed anew, from its own passages."""
        if tables.is_of_today(self._server):
            return
        if renew is None:
            raise UsageError(
                f"the library in {self._server.name} is of an earlier version: run `antiphon library update` once, "
                "which indexes it anew"
            )
        with self._server.writing():
            _, with_vectors = tables.lock(self._server)
            if not tables.is_of_today(self._server):  # else another program was faster
                tables.forget_words(self._server)
                self._index_anew(renew)
                if with_vectors:
                    gone = self._server.run(sql.DELETE_COPIES)
                    self._server.run("UPDATE antiphon.library SET vectors = vectors - %s", (gone,))

    def _index_anew(self, renew: Renewing) -> None:
        ((left,),) = self._server.rows("SELECT count(*) FROM antiphon.passages")
        done = last = 0
        while rows := self._server.rows(sql.NEXT, (last, _BATCH)):
            found = [(Passage(row[4], row[2], row[3], Place("line", 1, 1)).digest, row[0]) for row in rows]
            self._server.run_many("UPDATE antiphon.passages SET digest = %s WHERE id = %s", found)
            for source in dict.fromkeys(row[1] for row in rows):
                self._count([row[0] for row in rows if row[1] == source], source)
            done, last = done + len(rows), rows[-1][0]
            renew(done, left)

    def _remove(self, path: str, with_vectors: bool) -> int:
        rows = self._server.rows("SELECT id, counted, all_words FROM antiphon.sources WHERE path = %s", (path,))
        for number, counted, words in rows:
            heirs = self._server.rows(sql.HEIRS, (number,))
            vectors = 0
            if with_vectors:
                self._server.run_many("UPDATE antiphon.vectors SET passage = %s WHERE passage = %s", [row[:2] for row in heirs])
                vectors = self._server.run(sql.DELETE_VECTORS, (number,))
            for table in ("postings", "passages"):
                self._server.run(f"DELETE FROM antiphon.{table} WHERE source = %s", (number,))  # noqa: S608
            self._server.run("DELETE FROM antiphon.sources WHERE id = %s", (number,))
            self._server.run(sql.SHRINK, (counted, words, vectors))
            for heir, _, source in heirs:
                self._count([heir], source)
        return len(rows)

    def _write(self, source: int, first: int, passages: list[Passage]) -> None:
        """Passages with ids from `first` on, and their words."""
        rows = (_row(number, source, passage) for number, passage in enumerate(passages, first))
        self._server.copy("antiphon.passages", sql.PASSAGE_TYPES, rows)
        self._count(list(range(first, first + len(passages))), source)

    def _count(self, numbers: list[int], source: int) -> None:
        """Make these passages of a source findable, except for copies of passages that are."""
        rows = sorted(self._server.rows(sql.NEW, (numbers,)))
        counted = postings.counted(self._words, rows)
        new, words = [row[0] for row in rows], sum(counted.lengths)
        self._server.run("UPDATE antiphon.passages SET counted = true WHERE id = ANY(%s)", (new,))
        entries = zip(counted.words, repeat(source), counted.entries)
        self._server.copy("antiphon.postings", ("text", "int4", "bytea"), entries)
        self._server.run(sql.GROW_SOURCE, (len(new), words, source))
        self._server.run(sql.GROW, (len(new), words))

    def _add_vectors(self, rows: list[tuple[list[float], int]]) -> None:
        with self._server.writing():
            tables.lock(self._server)
            added = self._server.run_many(sql.ADD_VECTOR, rows)
            self._server.run("UPDATE antiphon.library SET vectors = vectors + %s", (added,))

    def _search(self, asked: list[str], query: NDArray[np.float32] | None, count: int) -> list[Found]:
        # One snapshot for totals, postings and passages: a writer between them would make scores of two libraries.
        with self._server.reading():
            totals = _Totals(*self._server.rows(sql.TOTALS)[0])
            if query is None:
                return self._found(self._by_words(asked, count, totals))
            return self._found(self._by_vectors(asked, query, count, totals))

    def _by_words(self, asked: list[str], count: int, totals: _Totals) -> list[tuple[int, float]]:
        """Ids and BM25 scores, best first."""
        between = [postings.beginning(word) or (None, None) for word in asked]
        firsts, lasts = [first for first, _ in between], [last for _, last in between]
        rows = dict(self._server.rows(sql.ENTRIES, (asked, firsts, lasts)))
        found = {
            word: postings.joined([data]) if first else postings.unpacked(data)
            for word, first in zip(asked, firsts, strict=True)
            if (data := rows.get(word))
        }
        return postings.best(asked, found, postings.Totals(totals.passages, totals.words), count, self._scaled)

    def _by_vectors(self, asked: list[str], query: NDArray[np.float32], count: int, totals: _Totals) -> list[tuple[int, float]]:
        """Ids and cosines; by cosine, or fused with the ranking by words."""
        if missing := totals.passages - totals.vectors:
            raise UsageError(f"{missing} passages have no vectors yet: run `antiphon library update` with --embedder")
        if not totals.vectors:
            return []
        depth = max(count, DEPTH) if self._ranking == "hybrid" else count
        cosines = self._nearest(query, depth)
        chosen = list(cosines)
        if self._ranking == "hybrid":
            others = [number for number, _ in self._by_words(asked, depth, totals)]
            chosen = fused([chosen, others])
            # What only words found needs a cosine too: that is the score, and the ranking is only the order.
            cosines |= self._cosines(query, sql.VECTORS, [number for number in others if number not in cosines])
        return [(number, cosines[number]) for number in chosen[:count]]

    def _nearest(self, query: NDArray[np.float32], depth: int) -> dict[int, float]:
        """Ids and cosines of the nearest, best first. The graph compares rounded vectors, so a few more are compared again."""
        look = min(max(_LEAST_LOOK, 2 * depth), _MOST_LOOK)
        # LOCAL, so that it ends with the transaction and says nothing to whoever has the connection next.
        self._server.run(f"SET LOCAL hnsw.ef_search = {look}; SET LOCAL hnsw.iterative_scan = strict_order")
        cosines = self._cosines(query, sql.NEAREST, query.tolist(), depth + _SPARE)
        return dict(sorted(cosines.items(), key=lambda item: (-item[1], item[0]))[:depth])

    def _cosines(self, query: NDArray[np.float32], statement: str, *parameters: Any) -> dict[int, float]:
        """Of the ids and vectors that a statement gives."""
        rows = self._server.rows(statement, parameters)
        vectors = np.array([vector for _, vector in rows], np.float32).reshape(len(rows), len(query))
        return dict(zip([number for number, _ in rows], (vectors @ query).tolist(), strict=True))

    def _found(self, scored: list[tuple[int, float]]) -> list[Found]:
        rows = self._server.rows(sql.PASSAGES, ([number for number, _ in scored],))
        passages = {number: _passage(*row) for number, *row in rows}
        return [Found(passages[number], score) for number, score in scored]


def _unseen(done: int, total: int) -> None:
    """Nobody looks on."""


def _source(row: tuple[Any, ...]) -> Source:
    path, size, modified_ns, digest, words, overlap, passages, encoding, field, real = row
    reading = Reading(encoding or None, field)
    return Source(path, size, modified_ns, digest, PassageOptions(words, overlap), passages, reading, real)


def _row(number: int, source: int, passage: Passage) -> tuple[Any, ...]:
    place = passage.place
    where = place.unit, place.first, place.last
    return number, source, passage.title, passage.text, *where, passage.key, passage.digest, False


def _passage(path: str, title: str, text: str, unit: Any, first: int, last: int, key: str) -> Passage:
    return Passage(path, title, text, Place(unit, first, last), key)

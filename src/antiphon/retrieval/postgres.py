"""The cloud's index: a PostgreSQL database with the passages, the words of their text with counts, and vectors by pgvector.

It ranks and scores as the SQLite index does: BM25 from the same counts by the same formula, cosines of the same half-precision
vectors. Only the nearest vectors are found by an approximate graph (HNSW), which may miss one.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from antiphon.errors import UsageError
from antiphon.retrieval import postgres_tables as tables
from antiphon.retrieval.documents import Place
from antiphon.retrieval.embedding import Embedder, passage_text
from antiphon.retrieval.fusion import DEPTH, fused
from antiphon.retrieval.index import Found, Source, Stats
from antiphon.retrieval.options import PassageOptions, Ranking, SearchOptions
from antiphon.retrieval.passages import Passage
from antiphon.retrieval.postgres_server import Server, ServerLostError
from antiphon.retrieval.postings import Tokenizer, best, unpacked
from antiphon.retrieval.weights import bm25_scale, scorer_of

_BATCH, _VECTOR_BATCH = 2000, 128
_SPARE, _LEAST_LOOK, _MOST_LOOK = 10, 200, 1000  # vectors that a search looks at; the last is pgvector's bound
_ADD_SOURCE = """INSERT INTO antiphon.sources (path, size, modified_ns, digest, words, overlap)
    VALUES (%s, %s, %s, %s, %s, %s) RETURNING id"""
_SOURCES = "SELECT path, size, modified_ns, digest, words, overlap, passages FROM antiphon.sources ORDER BY path"
_FILL_SOURCE = "UPDATE antiphon.sources SET passages = %s, all_words = %s WHERE id = %s"
_GROW = "UPDATE antiphon.library SET passages = passages + %s, words = words + %s, last = last + %s"
_SHRINK = """UPDATE antiphon.library SET passages = passages - %s, words = words - %s, vectors = vectors - %s,
    deleted = pg_current_xact_id()"""
_DELETE_VECTORS = """DELETE FROM antiphon.vectors USING antiphon.passages WHERE passage = passages.id AND source = %s"""
_PASSAGE_TYPES = "int4", "int4", "text", "text", "text", "int4", "int4", "text"
_COUNT_WITHOUT_VECTOR = """SELECT count(*) FROM antiphon.passages
    WHERE NOT EXISTS (SELECT 1 FROM antiphon.vectors WHERE passage = passages.id)"""
_NEXT_WITHOUT_VECTOR = """SELECT id, title, text FROM antiphon.passages
    WHERE id > %s AND NOT EXISTS (SELECT 1 FROM antiphon.vectors WHERE passage = passages.id) ORDER BY id LIMIT %s"""
_ADD_VECTOR = """INSERT INTO antiphon.vectors SELECT id, %s::real[]::halfvec FROM antiphon.passages WHERE id = %s
    ON CONFLICT DO NOTHING"""
_TOTALS = "SELECT passages, words, vectors FROM antiphon.library"
_ENTRIES = """SELECT term, string_agg(entries, '') FROM antiphon.postings WHERE term = ANY(%s) GROUP BY term"""
_NEAREST = "SELECT passage, vector::real[] FROM antiphon.vectors ORDER BY vector <#> %s::real[]::halfvec LIMIT %s"
_VECTORS = "SELECT passage, vector::real[] FROM antiphon.vectors WHERE passage = ANY(%s)"
_PASSAGES = """SELECT passages.id, path, title, text, unit, first, last, key
    FROM antiphon.passages JOIN antiphon.sources ON sources.id = source WHERE passages.id = ANY(%s)"""
_STATS = """SELECT (SELECT count(*) FROM antiphon.sources), passages, vectors, embedder,
    (SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
        WHERE relnamespace = 'antiphon'::regnamespace AND relkind = 'r')
    FROM antiphon.library"""


@dataclass(frozen=True, slots=True)
class _Totals:
    """What the library holds, as a search sees it."""

    passages: int
    words: int
    vectors: int


class PostgresIndex:
    """An `Index` in a database of a server, in its schema `antiphon`. Any number may search it while one writes."""

    def __init__(
        self, url: str, *, embedder: Embedder | None = None, options: SearchOptions | None = None, create: bool = False
    ) -> None:
        """Open the library, or make it if `create`. url: `postgresql://user@host/database`. Raises UsageError."""
        options = options or SearchOptions()
        self._embedder = embedder
        self._ranking: Ranking = options.ranking or ("lexical" if embedder is None else "hybrid")
        self._scaled = options.scaled
        self.scorer = scorer_of(self._ranking, None if embedder is None else embedder.identity, options)
        self._server, self._tokenizer = Server(url), Tokenizer()
        try:
            tables.prepare(self._server, create)
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
        self._tokenizer.close()
        self._server.close()

    def put(self, source: Source, passages: Iterable[Passage]) -> int:
        """Add or replace a source in one transaction; how many passages it has."""
        with self._server.writing():
            last, with_vectors = tables.lock(self._server)
            self._remove(source.path, with_vectors)
            values = source.size, source.modified_ns, source.digest, source.options.words, source.options.overlap
            ((number,),) = self._server.rows(_ADD_SOURCE, (source.path, *values))
            count = words = 0
            for batch in _batches(passages):
                words += self._write(number, last + count + 1, batch)
                count += len(batch)
            self._server.run(_FILL_SOURCE, (count, words, number))
            self._server.run(_GROW, (count, words, count))
        return count

    def touch(self, source: Source) -> None:
        """Record size and time."""
        values = source.size, source.modified_ns, source.path
        self._server.run("UPDATE antiphon.sources SET size = %s, modified_ns = %s WHERE path = %s", values)

    def sources(self) -> list[Source]:
        """Every source, by path."""
        return [_source(*row) for row in self._server.rows(_SOURCES)]

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
        ((missing,),) = self._server.rows(_COUNT_WITHOUT_VECTOR)
        done = last = 0
        while batch := self._server.rows(_NEXT_WITHOUT_VECTOR, (last, _VECTOR_BATCH)):
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
        stems = self._tokenizer.stems(question)
        query = None if self._embedder is None or self._ranking == "lexical" else self._embedder.embed([question])[0]
        try:
            return self._search(stems, query, count)
        except ServerLostError:  # the server was restarted since the last question
            return self._search(stems, query, count)

    def stats(self) -> Stats:
        """Counts, size, embedder and scorer."""
        ((sources, passages, vectors, embedder, size),) = self._server.rows(_STATS)
        return Stats(sources, passages, vectors, embedder, size, self.scorer.scorer_id)

    def _remove(self, path: str, with_vectors: bool) -> int:
        statement = "DELETE FROM antiphon.sources WHERE path = %s RETURNING id, passages, all_words"
        rows = self._server.rows(statement, (path,))
        for number, passages, words in rows:
            vectors = self._server.run(_DELETE_VECTORS, (number,)) if with_vectors else 0
            self._server.run("DELETE FROM antiphon.postings WHERE source = %s", (number,))
            self._server.run("DELETE FROM antiphon.passages WHERE source = %s", (number,))
            self._server.run(_SHRINK, (passages, words, vectors))
        return len(rows)

    def _write(self, source: int, first: int, passages: list[Passage]) -> int:
        """Passages with ids from `first` on, and their words; how many words."""
        words, postings = self._tokenizer.count([(passage.title, passage.text) for passage in passages], first)
        rows = (_row(number, source, passage) for number, passage in enumerate(passages, first))
        self._server.copy("antiphon.passages", _PASSAGE_TYPES, rows)
        self._server.copy("antiphon.postings", ("text", "int4", "bytea"), ((term, source, data) for term, data in postings))
        return words

    def _add_vectors(self, rows: list[tuple[list[float], int]]) -> None:
        with self._server.writing():
            tables.lock(self._server)
            added = self._server.run_many(_ADD_VECTOR, rows)
            self._server.run("UPDATE antiphon.library SET vectors = vectors + %s", (added,))

    def _search(self, stems: list[str], query: NDArray[np.float32] | None, count: int) -> list[Found]:
        with self._server.reading():
            totals = _Totals(*self._server.rows(_TOTALS)[0])
            if query is None:
                return self._found(self._by_words(stems, count, totals))
            return self._found(self._by_vectors(stems, query, count, totals))

    def _by_words(self, stems: list[str], count: int, totals: _Totals) -> list[tuple[int, float]]:
        """Ids and BM25 scores, best first."""
        found = {term: unpacked(data) for term, data in self._server.rows(_ENTRIES, (stems,))}
        scored = best([found[term] for term in stems if term in found], totals.passages, totals.words, count)
        scale = bm25_scale(totals.passages) if self._scaled else 1.0
        return [(number, score * scale) for number, score in scored]

    def _by_vectors(self, stems: list[str], query: NDArray[np.float32], count: int, totals: _Totals) -> list[tuple[int, float]]:
        """Ids and cosines; by cosine, or fused with the ranking by words."""
        if missing := totals.passages - totals.vectors:
            raise UsageError(f"{missing} passages have no vectors yet: run `antiphon library update` with --embedder")
        if not totals.vectors:
            return []
        depth = max(count, DEPTH) if self._ranking == "hybrid" else count
        cosines = self._nearest(query, depth)
        chosen = list(cosines)
        if self._ranking == "hybrid":
            others = [number for number, _ in self._by_words(stems, depth, totals)]
            chosen = fused([chosen, others])
            cosines |= self._cosines(query, _VECTORS, [number for number in others if number not in cosines])
        return [(number, cosines[number]) for number in chosen[:count]]

    def _nearest(self, query: NDArray[np.float32], depth: int) -> dict[int, float]:
        """Ids and cosines of the nearest, best first. The graph compares rounded vectors, so a few more are compared again."""
        look = min(max(_LEAST_LOOK, 2 * depth), _MOST_LOOK)
        self._server.run(f"SET LOCAL hnsw.ef_search = {look}; SET LOCAL hnsw.iterative_scan = strict_order")
        cosines = self._cosines(query, _NEAREST, query.tolist(), depth + _SPARE)
        return dict(sorted(cosines.items(), key=lambda item: (-item[1], item[0]))[:depth])

    def _cosines(self, query: NDArray[np.float32], statement: str, *parameters: Any) -> dict[int, float]:
        """Of the ids and vectors that a statement gives."""
        rows = self._server.rows(statement, parameters)
        vectors = np.array([vector for _, vector in rows], np.float32).reshape(len(rows), len(query))
        return dict(zip([number for number, _ in rows], (vectors @ query).tolist(), strict=True))

    def _found(self, scored: list[tuple[int, float]]) -> list[Found]:
        rows = self._server.rows(_PASSAGES, ([number for number, _ in scored],))
        passages = {number: _passage(*row) for number, *row in rows}
        return [Found(passages[number], score) for number, score in scored]


def _batches(passages: Iterable[Passage]) -> Iterator[list[Passage]]:
    left = iter(passages)
    while batch := list(islice(left, _BATCH)):
        yield batch


def _source(path: str, size: int, modified_ns: int, digest: str, words: int, overlap: int, passages: int) -> Source:
    return Source(path, size, modified_ns, digest, PassageOptions(words, overlap), passages)


def _row(number: int, source: int, passage: Passage) -> tuple[Any, ...]:
    place = passage.place
    return number, source, passage.title, passage.text, place.unit, place.first, place.last, passage.key


def _passage(path: str, title: str, text: str, unit: Any, first: int, last: int, key: str) -> Passage:
    return Passage(path, title, text, Place(unit, first, last), key)

"""An index in memory, which ends with the process: passages are scored by the share of the question's words that they have."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from types import TracebackType
from typing import ClassVar, Self

from antiphon.retrieval.index import Found, Source, Stats
from antiphon.retrieval.passages import Passage
from antiphon.retrieval.weights import Scorer

_SCORER = Scorer("share of the question's words", 0.3)


class MemoryIndex:
    """The index of a name; two of one name are one."""

    _held: ClassVar[dict[str, dict[str, tuple[Source, list[Passage]]]]] = {}

    def __init__(self, name: str) -> None:
        self._sources = self._held.setdefault(name, {})

    @property
    def scorer(self) -> Scorer:
        """By words alone."""
        return _SCORER

    def put(self, source: Source, passages: Iterable[Passage]) -> int:
        """Add or replace a source."""
        found = list(passages)
        self._sources[source.path] = replace(source, passages=len(found)), found
        return len(found)

    def touch(self, source: Source) -> None:
        """Its new size and time."""
        before, passages = self._sources[source.path]
        self._sources[source.path] = replace(before, size=source.size, modified_ns=source.modified_ns), passages

    def sources(self) -> list[Source]:
        """By path."""
        return [self._sources[path][0] for path in sorted(self._sources)]

    def delete(self, paths: Collection[str]) -> int:
        """Remove sources."""
        return sum(self._sources.pop(path, None) is not None for path in list(paths))

    def erase(self) -> None:
        """Memory keeps nothing of what was deleted."""

    def embed(self, progress: Callable[[int, int], None]) -> int:
        """There are no vectors."""
        return 0

    def search(self, question: str, count: int) -> list[Found]:
        """Those with the most of the question's words."""
        wanted = set(question.lower().split())
        passages = [passage for _, found in self._sources.values() for passage in found]
        scored = [Found(passage, len(wanted & set(passage.text.lower().split())) / len(wanted)) for passage in passages]
        return sorted((found for found in scored if found.score > 0), key=lambda found: -found.score)[:count]

    def stats(self) -> Stats:
        """Counts."""
        count = sum(source.passages for source in self.sources())
        return Stats(len(self._sources), count, 0, "", 0, _SCORER.scorer_id, 0)

    def close(self) -> None:
        """What is held stays for whoever opens it next."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

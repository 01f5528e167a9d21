"""The one interface of an index: what the device's SQLite file and a cloud's database both do."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self, TypeAlias

from antiphon.retrieval.options import PassageOptions, Reading
from antiphon.retrieval.passages import Passage
from antiphon.retrieval.weights import Scorer

Renewing: TypeAlias = Callable[[int, int], None]
"""renewing(done, of): how many passages of a library of before are indexed anew."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file in an index, as it was when it was read, and how it was.

    digest: SHA-256 of its bytes, hexadecimal; passages: how many it gave. real: where its path led when
    it was read, all links followed; empty if that is not known.
    """

    path: str
    size: int
    modified_ns: int
    digest: str
    options: PassageOptions
    passages: int = 0
    reading: Reading = field(default_factory=Reading)
    real: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A passage and its score R (METHODS 4) under the index's scorer. Results come in the order of the ranking, best first."""

    passage: Passage
    score: float


@dataclass(frozen=True, slots=True)
class Stats:
    """What an index holds. vectors: passages that have one; embedder: whose, or empty; bytes: of the index itself.

    copies: passages with the text of another, which count once: they are found, counted and embedded as that one.
    """

    sources: int
    passages: int
    vectors: int
    embedder: str
    bytes: int
    scorer_id: str
    copies: int


class Index(Protocol):
    """Sources and their passages, to be searched. A `with` block owns it; one thread uses it at a time.

    Every method raises UsageError where the index cannot be used: one sentence, what is wrong and what to do.
    """

    @property
    def scorer(self) -> Scorer:
        """How passages are scored; its `scorer_id` goes into the handshake."""
        ...

    def put(self, source: Source, passages: Iterable[Passage]) -> int:
        """Add a source, or update it: its passages are replaced all at once or, if `passages` raises, not at all.

        Returns how many there are. What was replaced is gone for good after `erase`.
        """
        ...

    def touch(self, source: Source) -> None:
        """Record the new size and time of a source whose bytes are the same."""
        ...

    def sources(self) -> list[Source]:
        """Every source, by path."""
        ...

    def delete(self, paths: Collection[str]) -> int:
        """Remove these sources for good, as `erase` does; unknown ones count for nothing. Returns how many there were."""
        ...

    def erase(self) -> None:
        """Make what was deleted or replaced unrecoverable from the index, also what an interrupted run left."""
        ...

    def embed(self, progress: Callable[[int, int], None]) -> int:
        """Give each passage that has no vector one, batch by batch; progress(done, of).

        Returns how many there were; 0 without an embedder.
        """
        ...

    def search(self, question: str, count: int) -> list[Found]:
        """The `count` best passages, best first; fewer where fewer have anything of the question."""
        ...

    def stats(self) -> Stats:
        """What the index holds."""
        ...

    def close(self) -> None:
        """Give it back; the last thing done with it."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

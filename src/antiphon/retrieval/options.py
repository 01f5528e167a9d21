"""The options of libraries, with their defaults: how documents are cut, and how passages are ranked and scored."""

import codecs
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from antiphon.errors import UsageError

Ranking: TypeAlias = Literal["lexical", "dense", "hybrid"]
"""By words (BM25), by vectors (cosine), or by both (reciprocal rank fusion)."""

MAX_WORDS = 2000
"""Words of a passage at most: more than any small model reads at once."""


@dataclass(frozen=True, slots=True)
class PassageOptions:
    """How documents are cut: words of a passage aimed at, and words at most that it shares with the one before.

    Raises UsageError if a value is out of range.
    """

    words: int = 100
    overlap: int = 20

    def __post_init__(self) -> None:
        if not 1 <= self.words <= MAX_WORDS:
            raise UsageError(f"words of a passage must be 1 to {MAX_WORDS}, not {self.words}")
        if not 0 <= self.overlap <= self.words // 2:
            raise UsageError(f"the overlap must be 0 to {self.words // 2} words, half a passage, not {self.overlap}")

    @property
    def whole(self) -> int:
        """Words up to which a document, or what is left of one, stays one passage: no short tails."""
        return self.words + self.words // 2

    @property
    def whole_row(self) -> int:
        """Words up to which a row of JSON lines stays one passage: rows mostly are passages already."""
        return 3 * self.words


@dataclass(frozen=True, slots=True)
class Reading:
    """What a person says of files, where they do not say it themselves.

    encoding: of text that is not UTF-8; None is UTF-8. text_field: which field of a row is its text.
    """

    encoding: str | None = None
    text_field: str = "text"

    def __post_init__(self) -> None:
        try:
            codecs.lookup(self.encoding or "utf-8")
        except LookupError as error:
            raise UsageError(f"there is no encoding {self.encoding!r}: name one that Python knows, such as cp1252") from error


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How passages are ranked. `ranking` None is lexical without an embedder and hybrid with one.

    temperature: tau of the weights (METHODS 4); None is the scorer's own default. scaled: BM25 scores are made comparable
    between libraries of different sizes (`postings.LARGEST_IDF`). Raises UsageError if a value is out of range.
    """

    ranking: Ranking | None = None
    temperature: float | None = None
    scaled: bool = True

    def __post_init__(self) -> None:
        if self.ranking is not None and self.ranking not in get_args(Ranking):
            raise UsageError(f"ranking must be one of {', '.join(get_args(Ranking))}, not {self.ranking!r}")
        if self.temperature is not None and not 1e-3 <= self.temperature <= 1e6:
            raise UsageError(f"the temperature of weights must be between 0.001 and 1,000,000, not {self.temperature}")

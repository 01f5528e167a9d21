"""Recall in languages other than English: short passages, and questions that have other forms of their words."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from rich import box
from rich.table import Table

from antiphon.retrieval.documents import Place
from antiphon.retrieval.index import Index, Source
from antiphon.retrieval.opening import open_library
from antiphon.retrieval.options import PassageOptions
from antiphon.retrieval.passages import Passage

FILE = Path(__file__).with_name("languages.jsonl")
DEPTHS = (1, 4)


@dataclass(frozen=True, slots=True)
class Spoken:
    """Recall at DEPTHS in one language, all passages of all languages being in one library."""

    language: str
    questions: int
    recall: tuple[float, ...]


class Row(msgspec.Struct, frozen=True):
    """A passage, and a question that it answers."""

    language: str
    text: str
    question: str


def rows() -> list[Row]:
    """The set, which was written for this: 30 passages in each of eight languages."""
    return [msgspec.json.decode(line, type=Row) for line in FILE.read_bytes().splitlines()]


def understood(library: Path) -> Iterator[Spoken]:
    """What a new library finds, by language."""
    asked = rows()
    with open_library(str(library), create=True) as index:
        index.put(Source("languages", 0, 0, "", PassageOptions()), [_passage(at, row) for at, row in enumerate(asked)])
        places = [_place(index, row.question, str(at)) for at, row in enumerate(asked)]
    for language in dict.fromkeys(row.language for row in asked):
        own = [place for place, row in zip(places, asked, strict=True) if row.language == language]
        yield Spoken(language, len(own), tuple(sum(place < depth for place in own) / len(own) for depth in DEPTHS))


def _passage(at: int, row: Row) -> Passage:
    return Passage("languages", "languages", row.text, Place("row", at + 1, at + 1), str(at))


def _place(index: Index, question: str, key: str) -> int:
    found = [item.passage.key for item in index.search(question, max(DEPTHS))]
    return found.index(key) if key in found else max(DEPTHS)


def table_of_languages(spoken: tuple[Spoken, ...]) -> Table:
    """For a person."""
    names = "language", "questions", *(f"recall@{depth}" for depth in DEPTHS)
    table = Table(*names, title="Other languages", box=box.SIMPLE)
    for row in spoken:
        table.add_row(row.language, f"{row.questions}", *(f"{value:.3f}" for value in row.recall))
    return table

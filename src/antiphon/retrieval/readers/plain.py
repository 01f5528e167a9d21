"""Text and Markdown. Markdown stays as it is written: models read it, and its marks are no words to an index."""

import re
from collections.abc import Iterator
from pathlib import Path

from antiphon.retrieval.documents import Document
from antiphon.retrieval.readers.decoding import decoded, read_whole

_HEADING = re.compile(r"^#{1,6}[ \t]+(.*?)[ \t#]*$|^(\S[^\n]*)\n=+[ \t]*$", re.MULTILINE)
_TITLE_BYTES = 10_000
"""How far a title is looked for."""


def read_text(path: Path) -> Iterator[Document]:
    """One document; its title is the file's name without the ending."""
    yield _lines(path.stem, decoded(read_whole(path)))


def read_markdown(path: Path) -> Iterator[Document]:
    """One document; its title is the first heading, else the file's name without the ending."""
    text = decoded(read_whole(path))
    found = _HEADING.search(text[:_TITLE_BYTES])
    yield _lines((found[1] or found[2] if found else "") or path.stem, text)


def _lines(title: str, text: str) -> Document:
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    return Document(title, text, "line", starts, range(1, len(starts) + 1))

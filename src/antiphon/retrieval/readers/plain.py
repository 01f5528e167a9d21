"""Text, Markdown, reStructuredText and source code. They stay as they are written: models read them, and marks are no words."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from antiphon.retrieval.documents import Document, require_units, titled
from antiphon.retrieval.options import Reading
from antiphon.retrieval.readers.decoding import text_of

_HEADING = re.compile(r"#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_MARKUP_TITLE = re.compile(
    r"^([=~*#^\"'`.:+_-])\1*\n[ \t]*(\S[^\n]*)\n\1{2,}[ \t]*$|^(\S[^\n]*)\n([=~*#^\"'`.:+_-])\4{2,}[ \t]*$", re.M
)
_YAML_TITLE = re.compile(r"^title[ \t]*:[ \t]*(.+?)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_TITLE_CHARACTERS = 10_000
"""How far a title is looked for."""


def read_text(path: Path, reading: Reading) -> Iterator[Document]:
    """One document; its title is the file's name without the ending."""
    yield _lines(path.stem, text_of(path, reading.encoding))


def read_source(path: Path, reading: Reading) -> Iterator[Document]:
    """One document; its title is the file's name, with the ending."""
    yield _lines(path.name, text_of(path, reading.encoding))


def read_markdown(path: Path, reading: Reading) -> Iterator[Document]:
    """One document; its title is that of its front matter, else the first heading, else the file's name without the ending."""
    text = text_of(path, reading.encoding)
    mark, front, body = _front(text)
    title = titled(_front_title(mark, front), _heading(text[body : body + _TITLE_CHARACTERS]), path.stem)
    whole = _lines(title, text)
    line = text.count("\n", 0, body)
    starts = [start - body for start in whole.starts[line:]]
    yield Document(title, text[body:], "line", starts, range(line + 1, line + 1 + len(starts)))


def read_markup(path: Path, reading: Reading) -> Iterator[Document]:
    """reStructuredText: one document; its title is the first heading, else the file's name without the ending."""
    text = text_of(path, reading.encoding)
    found = _MARKUP_TITLE.search(text[:_TITLE_CHARACTERS])
    yield _lines(titled(found[2] or found[3] if found else "", path.stem), text)


def _front(text: str) -> tuple[str, str, int]:
    """The mark and the text of the front matter, and where the body begins."""
    for mark in ("---", "+++"):
        if text.startswith(mark + "\n"):
            end = re.compile(rf"^{re.escape(mark)}[ \t]*$\n?", re.MULTILINE).search(text, len(mark) + 1)
            if end is not None:
                return mark, text[len(mark) + 1 : end.start()], end.end()
    return "", "", 0


def _front_title(mark: str, front: str) -> str:
    if mark == "+++":
        try:
            return str(tomllib.loads(front).get("title", ""))
        except (tomllib.TOMLDecodeError, RecursionError):
            return ""
    found = _YAML_TITLE.search(front)
    title = found[1] if found else ""
    return title[1:-1] if len(title) > 1 and title[0] == title[-1] and title[0] in "\"'" else title


def _heading(text: str) -> str:
    """The first one that stands in no block of code."""
    fence, before = "", ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]) else fence
        elif mark:
            fence = mark[1]
        elif found := _HEADING.fullmatch(line):
            return found[1]
        elif before.strip() and line.strip() and not line.strip().strip("="):
            return before
        before = line
    return ""


def _lines(title: str, text: str) -> Document:
    require_units(text.count("\n"), "line")
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    return Document(title, text, "line", starts, range(1, len(starts) + 1))

"""ODT and PPTX: paragraphs of a text, slides of a presentation with their notes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from antiphon.retrieval.documents import Document, Scroll, titled
from antiphon.retrieval.options import Reading
from antiphon.retrieval.readers.archive import opened
from antiphon.retrieval.readers.docx import core_title

_UNSEEN = frozenset(("tracked-changes", "annotation", "forms"))
_NUMBER = re.compile(r"(\d+)\.xml$")


def read_odt(path: Path, reading: Reading) -> Iterator[Document]:
    """One document; its title is the file's own, else its first heading, else the file's name without the ending."""
    scroll, body, title = Scroll("paragraph"), _Paragraphs(("p", "h"), "tr"), _Paragraphs(("title",), "")
    with opened(path, "ODT") as archive:
        if "content.xml" not in archive.names:
            raise ValueError("it has no content.xml")
        archive.events("content.xml", body.start, body.end, body.text)
        archive.events("meta.xml", title.start, title.end, title.text)
    for number, text in enumerate(body.found, 1):
        scroll.write(text + "\n\n", number)
    yield scroll.document(titled(*title.found[:1], body.heading, path.stem))


def read_pptx(path: Path, reading: Reading) -> Iterator[Document]:
    """One document; a slide is a page. Its title is the file's own, else the first words, else the file's name."""
    scroll, first = Scroll("page"), ""
    with opened(path, "PPTX") as archive:
        for number, name in enumerate(_numbered(archive.names, "ppt/slides/slide"), 1):
            slide = _Paragraphs(("p",), "tr")
            notes = f"ppt/notesSlides/notesSlide{number}.xml"
            for part in (name, notes):
                archive.events(part, slide.start, slide.end, slide.text)
            first = first or next(iter(slide.found), "")
            scroll.write("\n".join(slide.found) + "\n\n", number)
        own = core_title(archive)
    # What the program itself writes there is no title.
    yield scroll.document(titled("" if own == "PowerPoint Presentation" else own, first, path.stem))


def _numbered(names: set[str], beginning: str) -> list[str]:
    found = [(int(match[1]), name) for name in names if name.startswith(beginning) and (match := _NUMBER.search(name))]
    return [name for _, name in sorted(found)]


@dataclass(slots=True)
class _Paragraphs:
    """Takes the events of a part; `found` has its paragraphs. tags: of a paragraph; row: of a row, which is one as well."""

    tags: tuple[str, ...]
    row: str
    found: list[str] = field(default_factory=list)
    heading: str = ""
    _open: list[list[str]] = field(default_factory=list)
    _cells: list[str] | None = None
    _unseen: int = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        if self._unseen or tag in _UNSEEN:
            self._unseen += 1
        elif tag in self.tags:
            self._open.append([])
        elif tag in (self.row, "table-row"):
            self._cells = []
        elif self._open and tag in ("tab", "line-break", "br", "s"):
            self._open[-1].append({"tab": "\t", "s": " " * min(int(attributes.get("c", "1")), 100)}.get(tag, "\n"))

    def end(self, tag: str) -> None:
        """An element ends."""
        if self._unseen:
            self._unseen -= 1
        elif tag in self.tags and self._open:
            text = "".join(self._open.pop()).strip()
            self.heading = self.heading or (text if tag == "h" else "")
            if self._open and text:
                self._open[-1].append(f" {text} ")
            elif text:
                (self.found if self._cells is None else self._cells).append(text)
        elif tag in (self.row, "table-row") and self._cells is not None:
            self.found += [" | ".join(self._cells)] if self._cells else []
            self._cells = None

    def text(self, text: str) -> None:
        """What stands in a paragraph."""
        if self._open and not self._unseen:
            self._open[-1].append(text)

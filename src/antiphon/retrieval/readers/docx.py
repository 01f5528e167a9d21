"""DOCX: what a reader of the page sees. Deletions of tracked changes, comments and hidden text are left out."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from antiphon.retrieval.documents import Document, Scroll, titled
from antiphon.retrieval.options import Reading
from antiphon.retrieval.readers.archive import Archive, opened

_UNSEEN = frozenset(("del", "moveFrom", "Fallback", "instrText", "delText", "pPrChange", "rPrChange", "sectPrChange"))
_CHARACTERS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}
_AROUND = ("header", "footer")


def read_docx(path: Path, reading: Reading) -> Iterator[Document]:
    """One document; its title is the file's own, else its first heading, else the file's name without the ending."""
    with opened(path, "DOCX") as archive:
        if "word/document.xml" not in archive.names:
            raise ValueError("it has no word/document.xml")
        body = _Body(_styles(archive))
        for name in _parts(archive):
            body.around = name.startswith(tuple(f"word/{kind}" for kind in _AROUND))
            archive.events(name, body.start, body.end, body.text)
        own = core_title(archive)
    yield body.scroll.document(titled(own, body.heading, path.stem))


def _parts(archive: Archive) -> Iterator[str]:
    """The text, its notes, then what stands above and below its pages."""
    yield from ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")
    for kind in _AROUND:
        yield from sorted(name for name in archive.names if name.startswith(f"word/{kind}") and name.endswith(".xml"))


def core_title(archive: Archive) -> str:
    """The title among the properties of an office file."""
    found: list[str] = []
    inside = [False]

    def start(tag: str, attributes: dict[str, str]) -> None:
        inside[0] = tag == "title"

    def end(tag: str) -> None:
        inside[0] = False

    archive.events("docProps/core.xml", start, end, lambda text: found.append(text) if inside[0] else None)
    return "".join(found)


def _styles(archive: Archive) -> set[str]:
    """The ids of styles that are headings, whatever language they are named in."""
    headings, current = set(), [""]

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "style":
            current[0] = attributes.get("styleId", "")
        elif tag == "name" and attributes.get("val", "").lower().startswith(("heading", "title")):
            headings.add(current[0])

    archive.events("word/styles.xml", start, lambda tag: None, lambda text: None)
    return headings


@dataclass(slots=True)
class _Body:
    """Takes the events of the parts; `scroll` has the text, `heading` the first heading."""

    headings: set[str]
    scroll: Scroll = field(default_factory=lambda: Scroll("paragraph"))
    heading: str = ""
    around: bool = False
    _number: int = 0
    _unseen: int = 0
    _stack: list[str] = field(default_factory=list)
    _paragraphs: list[list[str]] = field(default_factory=list)
    _rows: list[list[list[str]]] = field(default_factory=list)
    _is_heading: bool = False
    _hidden: bool = False
    _seen: set[str] = field(default_factory=set)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        parent = self._stack[-1] if self._stack else ""
        self._stack.append(tag)
        # Counted, not flagged: what is unseen may hold more of its kind. Below rPr `del` marks a paragraph's end and hides no
        # text.
        if self._unseen or (tag in _UNSEEN and parent != "rPr"):
            self._unseen += 1
        elif tag == "p":
            self._paragraphs.append([])
        elif tag == "tr":
            self._rows.append([])
        elif tag == "tc" and self._rows:
            self._rows[-1].append([])
        elif tag == "r":
            self._hidden = False
        elif tag == "vanish" and parent == "rPr":
            self._hidden = attributes.get("val", "true") not in ("0", "false", "off")
        elif tag == "pStyle":
            self._is_heading = attributes.get("val", "") in self.headings
        elif tag == "sym":
            self._write(_symbol(attributes.get("char", "")))
        elif tag in _CHARACTERS and parent == "r":
            self._write(_CHARACTERS[tag])

    def end(self, tag: str) -> None:
        """An element ends."""
        self._stack.pop()
        if self._unseen:
            self._unseen -= 1
        elif tag == "p" and self._paragraphs:
            self._paragraph("".join(self._paragraphs.pop()).strip())
        elif tag == "tr" and self._rows:
            cells = (" ".join(cell) for cell in self._rows.pop())
            self._put(" | ".join(text for text in cells if text))

    def text(self, text: str) -> None:
        """What stands in an element: of a run or an equation it is seen."""
        if not self._unseen and self._stack and self._stack[-1] == "t":
            self._write(text)

    def _write(self, text: str) -> None:
        if self._paragraphs and not self._hidden:
            self._paragraphs[-1].append(text)

    def _paragraph(self, text: str) -> None:
        if self._is_heading and not self.heading:
            self.heading = text
        self._is_heading = False
        if self._paragraphs and text:  # a text box stands in a paragraph
            self._paragraphs[-1].append(f"\n{text}\n")
        else:
            self._put(text)

    def _put(self, text: str) -> None:
        if not text or (self.around and text in self._seen):
            return
        if self._rows and self._rows[-1]:
            self._rows[-1][-1].append(text)
            return
        self._number += 1
        # A header stands once for each section and kind of page: said once is enough.
        self._seen |= {text} if self.around else set()
        self.scroll.write(text + "\n\n", self._number)


def _symbol(code: str) -> str:
    """A character of a symbol font; of those in the private area nobody knows what they show."""
    try:
        character = chr(int(code, 16))
    except (ValueError, OverflowError):
        return ""
    return "" if "\ue000" <= character <= "\uf8ff" else character

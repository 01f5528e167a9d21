"""EPUB: the chapters of a book in its reading order; a chapter is a page."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from antiphon.retrieval.documents import Document, Scroll, titled
from antiphon.retrieval.options import Reading
from antiphon.retrieval.readers.archive import Archive, opened
from antiphon.retrieval.readers.html import page_in


@dataclass(slots=True)
class _Package:
    """What the package file of a book says: its title, its files by their ids, and the ids in reading order."""

    title: str = ""
    files: dict[str, str] = field(default_factory=dict)
    spine: list[str] = field(default_factory=list)
    _inside: bool = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self._inside = tag == "title" and not self.title
        if tag == "item":
            self.files[attributes.get("id", "")] = attributes.get("href", "")
        elif tag == "itemref":
            self.spine.append(attributes.get("idref", ""))

    def end(self, tag: str) -> None:
        """An element ends."""
        self._inside = False

    def text(self, text: str) -> None:
        """What stands in an element."""
        self.title += text if self._inside else ""


def read_epub(path: Path, reading: Reading) -> Iterator[Document]:
    """One document; its title is the book's, else the file's name without the ending."""
    scroll = Scroll("page")
    with opened(path, "EPUB") as archive:
        where = _package(archive)
        package = _Package()
        archive.events(where, package.start, package.end, package.text)
        folder = PurePosixPath(where).parent
        for number, name in enumerate(package.spine, 1):
            page = page_in(archive.read(_within(folder, package.files.get(name, ""))), None)
            scroll.write("\n\n".join([*page.blocks, ""]), number)
    yield scroll.document(titled(package.title, path.stem))


def _package(archive: Archive) -> str:
    """Where the package file is. Raises ValueError without one."""
    found: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "rootfile":
            found.append(attributes.get("full-path", ""))

    archive.events("META-INF/container.xml", start, lambda tag: None, lambda text: None)
    if not found:
        raise ValueError("it names no package file")
    return found[0]


def _within(folder: PurePosixPath, name: str) -> str:
    parts: list[str] = []
    for part in (folder / unquote(name.partition("#")[0])).parts:
        # Names of an archive are no paths: only what a part is called in it counts, and above its root there is nothing.
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)

"""DOCX, by python-docx: paragraphs and tables in their order; headers, footnotes and comments are left out."""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from antiphon.retrieval.documents import Document, DocumentError, Scroll, first_line
from antiphon.retrieval.readers.decoding import MAX_BYTES, require_size

_BROKEN_ARCHIVE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)
_BROKEN_CONTENT = (ValueError, LookupError, TypeError, AttributeError, SyntaxError)
"""What is raised besides python-docx's own errors for a file that is no DOCX, or a broken one; SyntaxError is for its XML."""


def read_docx(path: Path) -> Iterator[Document]:
    """One document; its title is the file's own, else its first heading, else the file's name without the ending."""
    try:
        import docx
        from docx.opc.exceptions import OpcError
    except ImportError as error:
        raise DocumentError("reading DOCX needs python-docx: pip install 'antiphon[documents]'") from error
    require_size(path)
    try:
        _require_unpacked_size(path)
        with path.open("rb") as file:
            document = _document(docx.Document(file), path.stem)
    except (OpcError, *_BROKEN_ARCHIVE, *_BROKEN_CONTENT) as error:
        raise DocumentError(f"it is no sound DOCX, or it is encrypted ({first_line(error)})") from error
    yield document


def _require_unpacked_size(path: Path) -> None:
    """A few kilobytes may unpack to gigabytes."""
    with zipfile.ZipFile(path) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > 2 * MAX_BYTES:
            raise DocumentError(f"it unpacks to more than {2 * MAX_BYTES >> 20} MiB: split it")


def _document(source: Any, name: str) -> Document:
    scroll, heading = Scroll("paragraph"), ""
    for number, (text, style) in enumerate(_paragraphs(source), 1):
        scroll.write(text + "\n\n", number)
        if style.startswith(("Title", "Heading")):
            heading = heading or text
    title = source.core_properties.title or heading or name
    return scroll.document(" ".join(title.split()))


def _paragraphs(container: Any) -> Iterator[tuple[str, str]]:
    """Text and style of each paragraph with text; each row of a table is one."""
    for block in container.iter_inner_content():
        if hasattr(block, "rows"):
            yield from ((text, "") for text in _rows(block))
        elif block.text.strip():
            yield block.text, (block.style.name or "") if block.style is not None else ""


def _rows(table: Any) -> Iterator[str]:
    for row in table.rows:
        cells = list(dict.fromkeys(cell._tc for cell in row.cells))  # a merged cell is listed once a column
        texts = ("".join(part.text or "" for part in cell.iter("{*}t")).strip() for cell in cells)
        if line := " | ".join(text for text in texts if text):
            yield line

"""Files to documents, by the ending of their names. A reader yields documents, or raises DocumentError: one sentence, why."""

from collections.abc import Callable, Iterator
from pathlib import Path

from antiphon.retrieval.documents import Document, DocumentError
from antiphon.retrieval.readers.docx import read_docx
from antiphon.retrieval.readers.html import read_html
from antiphon.retrieval.readers.jsonl import read_jsonl
from antiphon.retrieval.readers.pdf import read_pdf
from antiphon.retrieval.readers.plain import read_markdown, read_text

READERS: dict[str, Callable[[Path], Iterator[Document]]] = {
    ".txt": read_text,
    ".text": read_text,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
    ".pdf": read_pdf,
    ".docx": read_docx,
    ".jsonl": read_jsonl,
}
"""By the ending of a file's name, in small letters."""


def readable(path: Path) -> bool:
    """Is there a reader for files of this name?"""
    return path.suffix.lower() in READERS


def read(path: Path) -> Iterator[Document]:
    """The documents of a file, one by one; at least one. Raises DocumentError, also midway."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise DocumentError(f"there is no reader for {path.suffix or 'files without an ending'}: known are {' '.join(READERS)}")
    empty = True
    try:
        for document in reader(path):
            if document.text.strip():
                empty = False
                yield document
    except OSError as error:
        raise DocumentError(f"it cannot be read ({(error.strerror or str(error)).lower()})") from error
    if empty:
        raise DocumentError("there is no text in it" + (" (scanned pages?)" if reader is read_pdf else ""))

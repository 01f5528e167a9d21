"""PDF, by pypdf: the text of each page. Pages that are pictures have none."""

import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from antiphon.retrieval.documents import Document, DocumentError, Scroll, first_line
from antiphon.retrieval.readers.decoding import require_size

_BROKEN_WORD = re.compile(r"(?<=[^\W\d_])[-\u00ad]\n(?=[a-zà-öø-ÿ])")

_BROKEN_CONTENT = (ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError)
_BROKEN_STREAM = (zlib.error, struct.error, ArithmeticError)
"""What pypdf raises besides its own errors where a file's structure is not what it expects; found by mutating files."""


def read_pdf(path: Path) -> Iterator[Document]:
    """One document; its title is the file's own, else the file's name without the ending."""
    try:
        import pypdf
        from pypdf.errors import DependencyError, PyPdfError
    except ImportError as error:
        raise DocumentError("reading PDF needs pypdf: pip install 'antiphon[documents]'") from error
    require_size(path)
    try:
        with path.open("rb") as file:
            document = _document(_opened(pypdf.PdfReader(file)), path.stem)
    except DependencyError as error:
        raise DocumentError("it is encrypted, and reading it needs one more package: pip install cryptography") from error
    except (PyPdfError, *_BROKEN_CONTENT, *_BROKEN_STREAM) as error:
        raise DocumentError(f"it is no sound PDF ({first_line(error)})") from error
    yield document


def _opened(reader: Any) -> Any:
    if reader.is_encrypted and not reader.decrypt(""):
        raise DocumentError("it is encrypted with a password: save it without one")
    return reader


def _document(reader: Any, name: str) -> Document:
    scroll = Scroll("page")
    for number, page in enumerate(reader.pages, 1):
        scroll.write(_BROKEN_WORD.sub("", page.extract_text()) + "\n", number)
    metadata = reader.metadata
    title = metadata.title if metadata else None
    return scroll.document(" ".join(str(title or "").split()) or name)

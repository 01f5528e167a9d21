"""PDF, by pypdfium2 (the engine of Chromium): the text of each page. Pages that are pictures have none, and are counted."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from antiphon.retrieval.documents import Document, DocumentError, Scroll, first_line, titled
from antiphon.retrieval.options import Reading
from antiphon.retrieval.readers.decoding import require_size

_BROKEN_WORD = re.compile(r"([^\W\d_]+)(?:[\ufffe\x02]|[-\u00ad\u2010][^\S\n\f]*[\n\f])\s*([^\W\d_]+)")
"""A word that a line breaks: the engine marks the hyphen, except at the end of a page."""
_COMPOUND = re.compile(r"[^\W\d_]+-[^\W\d_]+")
_PAGE = "\f"


def read_pdf(path: Path, reading: Reading) -> Iterator[Document]:
    """One document; its title is the file's own, else the file's name without the ending."""
    try:
        import pypdfium2
    except ImportError as error:
        raise DocumentError("reading PDF needs pypdfium2: pip install 'antiphon[documents]'") from error
    require_size(path)
    try:
        source = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise DocumentError("it is encrypted with a password: save it without one") from error
        raise DocumentError(f"it is no sound PDF ({first_line(error)})") from error
    try:
        yield _document(source, path.stem)
    except pypdfium2.PdfiumError as error:
        raise DocumentError(f"it is no sound PDF ({first_line(error)})") from error
    finally:
        source.close()


def _document(source: Any, name: str) -> Document:
    pages = [_page(source[number]) for number in range(len(source))]
    empty = sum(not page.strip() for page in pages)
    if empty == len(pages):
        raise DocumentError("there is no text in it: its pages are pictures")
    told = (f"{empty} of {len(pages)} pages are pictures: no text",) if empty else ()
    scroll = Scroll("page")
    for number, text in enumerate(_joined(_PAGE.join(pages)).split(_PAGE), 1):
        scroll.write(text + "\n", number)
    return scroll.document(titled(str(source.get_metadata_dict().get("Title", "")), name), told)


def _page(page: Any) -> str:
    text = page.get_textpage().get_text_bounded()
    return str(text).replace("\r\n", "\n").replace("\r", "\n").replace(_PAGE, "\n").replace("\x00", "")


def _joined(text: str) -> str:
    """Words that lines or pages break are put together, where their first part stood. A hyphen of a compound stays."""
    # The document tells by itself which hyphens are of words: one that is written with it elsewhere, in the middle of a line.
    compounds = Counter(word.lower() for word in _COMPOUND.findall(text))

    def join(match: re.Match[str]) -> str:
        first, second = match[1], match[2]
        page = _PAGE * match[0].count(_PAGE)
        compound = not second[0].islower() or compounds[f"{first}-{second}".lower()] > 0
        return f"{first}{'-' * compound}{second}{page}"

    return _BROKEN_WORD.sub(join, text).replace("\ufffe", "").replace("\x02", "")

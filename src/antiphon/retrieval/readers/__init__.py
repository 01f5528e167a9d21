"""Files to documents, by their names. A reader yields documents, or raises DocumentError: one sentence, why."""

from collections.abc import Callable, Iterator
from pathlib import Path

from antiphon.retrieval.documents import Document, DocumentError
from antiphon.retrieval.options import Reading
from antiphon.retrieval.readers.docx import read_docx
from antiphon.retrieval.readers.epub import read_epub
from antiphon.retrieval.readers.html import read_html
from antiphon.retrieval.readers.mail import read_mail
from antiphon.retrieval.readers.office import read_odt, read_pptx
from antiphon.retrieval.readers.pdf import read_pdf
from antiphon.retrieval.readers.plain import read_markdown, read_markup, read_source, read_text
from antiphon.retrieval.readers.rows import read_csv, read_json, read_jsonl

Reader = Callable[[Path, Reading], Iterator[Document]]

READERS: dict[str, Reader] = {
    ".txt": read_text, ".text": read_text, ".md": read_markdown, ".markdown": read_markdown, ".rst": read_markup,
    ".html": read_html, ".htm": read_html, ".xhtml": read_html, ".pdf": read_pdf, ".docx": read_docx, ".odt": read_odt,
    ".pptx": read_pptx, ".epub": read_epub, ".eml": read_mail, ".jsonl": read_jsonl, ".json": read_json, ".csv": read_csv,
    ".tsv": read_csv,
}  # fmt: skip
"""By the ending of a file's name, in small letters."""

_SOURCE = """
adoc bash bat bib c cc cfg clj cmake conf cpp cs css dart erl ex f90 fs go gradle graphql h hpp hs ini java jl js jsx kt less
lisp log lua m make ml mm nim org patch php pl proto ps1 py r rb rs scala scss sh sql swift tcl tex tf toml ts tsx vb vim vue
yaml yml zig
"""
SOURCE_ENDINGS = frozenset(f".{ending}" for ending in _SOURCE.split())
"""Source code and its like, which are read as text."""
_NAMES = frozenset(
    ("readme", "license", "licence", "copying", "changelog", "changes", "authors", "news", "todo", "makefile", "dockerfile")
)
APART = frozenset((read_html, read_pdf, read_docx, read_odt, read_pptx, read_epub, read_mail))
"""Readers of forms that a stranger may have made to harm: a process of its own runs them (`readers.apart`)."""


def reader_of(path: Path) -> Reader | None:
    """The reader for files of this name, if there is one."""
    ending = path.suffix.lower()
    if ending in SOURCE_ENDINGS:
        return read_source
    if not ending and path.name.lower() in _NAMES:
        return read_text
    return READERS.get(ending)


def readable(path: Path) -> bool:
    """Is there a reader for files of this name?"""
    return reader_of(path) is not None


def read(path: Path, reading: Reading = Reading()) -> Iterator[Document]:  # noqa: B008
    """The documents of a file, one by one; at least one with text. Raises DocumentError, also midway."""
    reader = reader_of(path)
    if reader is None:
        known = " ".join(READERS)
        raise DocumentError(
            f"there is no reader for {path.suffix or 'files without an ending'}: known are {known}, and source code"
        )
    empty = True
    try:
        for document in reader(path, reading):
            empty = empty and not document.text.strip()
            # A document without text may still have something to tell, such as how many of its pages are pictures.
            if document.text.strip() or document.told:
                yield document
    except OSError as error:
        raise DocumentError(f"it cannot be read ({(error.strerror or str(error)).lower()})") from error
    # What parsers of foreign libraries raise for broken files. Bugs of ours are among them, but one bad file of thousands must
    # not end a run, and its name and the kind of error are told.
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        if isinstance(error, DocumentError):
            raise
        raise DocumentError(f"it is no sound {path.suffix[1:].upper() or 'text'} ({type(error).__name__})") from error
    if empty:
        raise DocumentError("there is no text in it")

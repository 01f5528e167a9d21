"""HTML: what a browser shows as text, by blocks, each with its line in the source."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from antiphon.retrieval.documents import Document, DocumentError, Scroll
from antiphon.retrieval.readers.decoding import decoded, read_whole

_BLOCK_TAGS = """
address article aside blockquote body caption dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5
h6 header hr legend li main nav ol p pre section summary table tbody tfoot thead tr ul
"""
_BLOCKS = frozenset(_BLOCK_TAGS.split())
_GAPS = ("", " ", "\n", "\n\n")
_GAPS_OF_TAGS = {"br": "\n", "td": " ", "th": " "}
_HIDDEN = frozenset(("script", "style", "template", "title"))
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
_LATIN = frozenset(("iso-8859-1", "iso8859-1", "latin1", "latin-1", "us-ascii", "ascii"))
_HEAD = 4096
"""Bytes in which a page says its encoding."""


def read_html(path: Path) -> Iterator[Document]:
    """One document; its title is the page's, else its first heading, else the file's name without the ending."""
    data = read_whole(path)
    page = _Page()
    try:
        page.feed(decoded(data, _encoding(data)))
        page.close()
    except AssertionError as error:  # how the parser of some Python versions refuses a malformed declaration
        raise DocumentError(f"it is no HTML ({error})") from error
    title = page.title.strip() or page.heading.strip() or path.stem
    yield page.scroll.document(" ".join(title.split()))


def _encoding(data: bytes) -> str:
    found = _CHARSET.search(data[:_HEAD])
    name = found[1].decode("ascii").lower() if found else "utf-8"
    return "cp1252" if name in _LATIN else name  # as every browser reads it


class _Page(HTMLParser):
    """Collects text; `scroll` has the document, `title` and `heading` what may be its title."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.scroll = Scroll("line")
        self.title = self.heading = ""
        self._hidden: list[str] = []
        self._preformatted = self._in_heading = False
        self._gap: str = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden.append(tag)
        self._space("\n\n" if tag in _BLOCKS else _GAPS_OF_TAGS.get(tag, ""))
        self._preformatted = self._preformatted or tag == "pre"
        self._in_heading = self._in_heading or (tag == "h1" and not self.heading)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _HIDDEN:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self._hidden and tag == self._hidden[-1]:
            self._hidden.pop()
        self._space("\n\n" if tag in _BLOCKS else "")
        self._preformatted = self._preformatted and tag != "pre"
        self._in_heading = self._in_heading and tag != "h1"

    def handle_data(self, data: str) -> None:
        if self._hidden:
            self.title += data if self._hidden == ["title"] else ""
            return
        self.heading += data if self._in_heading else ""
        first = self.getpos()[0]
        for number, text in enumerate(data.split("\n"), first):
            if number > first:
                self._space("\n" if self._preformatted else " ")
            self._write(text, number)

    def _write(self, text: str, number: int) -> None:
        self._space(" " if text[:1].isspace() else "")
        if words := text.rstrip() if self._preformatted else " ".join(text.split()):
            self.scroll.write(self._gap + words, number)
            self._gap = ""
        self._space(" " if text[-1:].isspace() else "")

    def _space(self, gap: str) -> None:
        """At least this much before the next word."""
        self._gap = max(self._gap, gap, key=_GAPS.index)

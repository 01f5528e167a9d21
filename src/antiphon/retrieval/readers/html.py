"""HTML, by selectolax (the Lexbor engine, which parses as browsers do): the main text of a page, by blocks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from antiphon.retrieval.documents import Document, DocumentError, Scroll, titled
from antiphon.retrieval.options import Reading
from antiphon.retrieval.readers.decoding import page_decoded, read_whole

_BLOCK_TAGS = """
address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure footer form h1
h2 h3 h4 h5 h6 header hgroup hr legend li listing main menu nav ol optgroup option p pre search section summary table tbody
tfoot thead tr ul
"""
_BLOCKS = frozenset(_BLOCK_TAGS.split())
_GAPS = ("", " ", "\n", "\n\n")
_GAPS_OF_TAGS = {"br": "\n", "td": " ", "th": " ", "button": " ", "img": " "}
_UNSEEN_TAGS = """
script style template title noscript head svg iframe object embed canvas audio video datalist select textarea noembed noframes
"""
_UNSEEN = frozenset(_UNSEEN_TAGS.split())
_AROUND = frozenset(("nav", "aside", "footer"))
_ROLES = frozenset(("navigation", "banner", "contentinfo", "complementary", "search"))
_FORMULA = "annotation-xml annotation"
_ENOUGH = 0.3
"""A part that is marked as the main one is taken for it if it has this share of the text."""
_CHARSET = re.compile(rb"""<meta\b[^>]{0,500}?\bcharset\s*=\s*["']?\s*([^\s"'/>;]{1,40})""", re.IGNORECASE)
_XML = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_.:-]{1,40})""")
_HEAD = 4096
"""Bytes in which a page says its encoding."""


def read_html(path: Path, reading: Reading) -> Iterator[Document]:
    """One document; its title is the page's, else its first heading, else the file's name without the ending."""
    page = page_in(read_whole(path), reading.encoding)
    scroll = Scroll("paragraph")
    for number, text in enumerate(page.blocks, 1):
        scroll.write(text + "\n\n", number)
    yield scroll.document(titled(page.title, page.heading, path.stem))


def page_in(data: bytes, encoding: str | None) -> "Page":
    """The page of a file or of a part of one. encoding: what the person says it has. Raises DocumentError."""
    return page_of(page_decoded(data, declared(data), encoding))


def declared(data: bytes) -> str | None:
    """The encoding that a page says it has, if it does."""
    found = _XML.search(data[:_HEAD]) or _CHARSET.search(re.sub(rb"<!--.{0,4096}?-->", b"", data[:_HEAD], flags=re.DOTALL))
    return found[1].decode("latin-1") if found else None


@dataclass(frozen=True, slots=True)
class Page:
    """What a person sees of a page."""

    title: str
    heading: str
    blocks: list[str]


def page_of(text: str) -> Page:
    """The main text of a page, without what stands around it where that leaves enough. Raises DocumentError."""
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ImportError as error:
        raise DocumentError("reading HTML needs selectolax: pip install 'antiphon[documents]'") from error
    tree = LexborHTMLParser(text)
    root = tree.root
    title, heading = tree.css_first("head > title"), tree.css_first("h1")
    own, first = ("" if node is None else node.text(deep=True) for node in (title, heading))
    return Page(own, first, [] if root is None else _main(root, tree.css("main, [role=main], article")))


def _main(root: Any, marked: list[Any]) -> list[str]:
    """The blocks of the page without its surroundings, of one part alone where it is marked as the main one and is large."""
    whole = _blocks(root, around=True)
    chosen = _blocks(root, around=False)
    # Some pages are all within what others use for surroundings: better too much than nothing.
    chosen = chosen if _size(chosen) >= _ENOUGH * _size(whole) else whole
    # Several articles are a list of them, of which none is the main one.
    if len(marked) == 1:
        main = _blocks(marked[0], around=True)
        chosen = main if _size(main) >= _ENOUGH * _size(chosen) else chosen
    return chosen


def _size(blocks: list[str]) -> int:
    return sum(map(len, blocks))


def _blocks(root: Any, around: bool) -> list[str]:
    """around: with what stands around the main text. Goes from node to node, so however deep they are nested."""
    writer, node, preformatted = _Writer(), root, 0
    while True:
        seen = not _is_unseen(node, around)
        tag = node.tag
        if tag == "-text" and seen:
            writer.text(node.text_content or "", preformatted > 0)
        writer.space(_gap(tag))
        preformatted += tag == "pre"
        if seen and node.child is not None:
            node = node.child
            continue
        while True:
            preformatted -= node.tag == "pre"
            writer.space("\n\n" if node.tag in _BLOCKS else "")
            # Not at the end of the page: the root may be a part of it, with more behind.
            if node.mem_id == root.mem_id:
                return writer.blocks()
            if node.next is not None:
                node = node.next
                break
            node = node.parent


def _gap(tag: str) -> str:
    return "\n\n" if tag in _BLOCKS else _GAPS_OF_TAGS.get(tag, "")


def _is_unseen(node: Any, around: bool) -> bool:
    tag = node.tag
    if tag == "-text":
        return False
    if tag in _UNSEEN or tag in _FORMULA.split() or tag.startswith(("-", "!", "_")):
        return tag not in ("-document", "-undef")
    if not around and tag in _AROUND:
        return True
    attributes = node.attributes
    if "hidden" in attributes or "display:none" in (attributes.get("style") or "").replace(" ", "").lower():
        return True
    return not around and attributes.get("role") in _ROLES


@dataclass(slots=True)
class _Writer:
    """Joins text as a page shows it: runs of spaces are one, outside of preformatted text."""

    _pieces: list[str] = field(default_factory=list)
    _space: str = ""

    def text(self, text: str, preformatted: bool) -> None:
        """Add text of a node."""
        if preformatted:
            self._add(text.strip("\n") if self._space == "\n\n" else text)
            return
        self.space(" " if text[:1].isspace() else "")
        if words := " ".join(text.split()):
            self._add(words)
            self.space(" " if text[-1:].isspace() else "")

    def space(self, gap: str) -> None:
        """At least this much before the next word."""
        self._space = max(self._space, gap, key=_GAPS.index)

    def blocks(self) -> list[str]:
        """What was written, split at the gaps between blocks."""
        return [block for text in "".join(self._pieces).split("\0") if (block := text.strip())]

    def _add(self, text: str) -> None:
        if text:
            # NUL marks the gaps between blocks, for a preformatted block may hold empty lines of its own.
            self._pieces += ["\0" if self._space == "\n\n" else self._space, text.replace("\0", "\ufffd")]
            self._space = ""

"""Files and passages for the tests of retrieval."""

import io
import json
from collections.abc import Sequence
from pathlib import Path

import docx

from antiphon.retrieval.documents import Place
from antiphon.retrieval.index import Source
from antiphon.retrieval.options import PassageOptions
from antiphon.retrieval.passages import Passage


def pdf(*pages: str) -> bytes:
    """A PDF of plain text, written by hand: one line of a page a line."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, page in enumerate(pages):
        lines = b" ".join(b"(%s) Tj T*" % line.encode("ascii") for line in page.split("\n"))
        content = b"BT /F1 12 Tf 50 700 Td 14 TL %s ET" % lines
        resources = b"/Resources << /Font << /F1 3 0 R >> >>"
        page_object = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] %s /Contents %d 0 R >>"
        objects.append(page_object % (resources, 5 + 2 * number))
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
    return _assembled(objects)


def _assembled(objects: list[bytes]) -> bytes:
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    count, start = len(objects) + 1, len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n%s" % (count, table)
    return out + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (count, start)


def word(*paragraphs: str, heading: str = "", rows: Sequence[Sequence[str]] = ()) -> bytes:
    """A DOCX with these paragraphs and a table behind them."""
    document = docx.Document()
    if heading:
        document.add_heading(heading)
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    if rows:
        table = document.add_table(len(rows), len(rows[0]))
        for number, row in enumerate(rows):
            for column, text in enumerate(row):
                table.cell(number, column).text = text
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def lines_of(*rows: dict) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def source(path: str, digest: str = "") -> Source:
    return Source(path, 1, 2, digest, PassageOptions())


def passage(text: str, path: str = "a", title: str = "name", key: str = "") -> Passage:
    return Passage(path, title, text, Place("line", 1, 2), key)


def everything_in(folder: Path, library: Path) -> bytes:
    """All bytes of a library's files, the log beside it too."""
    return b"".join(file.read_bytes() for file in sorted(folder.glob(library.name + "*")))

"""Files of each kind, written and read."""

import io
import zipfile
from pathlib import Path

import pytest

from antiphon.retrieval.documents import Document, DocumentError
from antiphon.retrieval.readers import read


def written(folder: Path, name: str, data: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    return file


def only(folder: Path, name: str, data: str | bytes) -> Document:
    (document,) = read(written(folder, name, data))
    return document


def complaint(folder: Path, name: str, data: str | bytes) -> str:
    with pytest.raises(DocumentError) as caught:
        list(read(written(folder, name, data)))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def place(document: Document, text: str) -> str:
    at = document.text.index(text)
    return str(document.place(at, at + len(text)))


PAGE = """<!doctype html>
<html><head><title>T &amp; u</title><style>p { color: red }</style>
<script>var hidden = "<p>secret</p>"</script></head>
<body><h1>A head</h1><p>One <b>bold</b>word,
and <i>more</i> &eacute;.</p>
<ul><li>first<li>second</ul>
<table><tr><td>left</td><td>right</td></tr></table>
<pre>x   y
  z</pre>line<br>break<!-- no --></body></html>"""


def packed(**parts: str) -> bytes:
    """An archive; two underscores in a name are a slash, the last one a dot."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            folder, _, file = name.rpartition("__")
            archive.writestr(f"{folder.replace('__', '/')}{'/' if folder else ''}{file.replace('_', '.')}", data)
    return out.getvalue()


ODT = (
    "<o xmlns:text='t' xmlns:table='b' xmlns:office='f'><text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
    "<text:h>Head</text:h><text:p>One<text:s text:c='2'/>two<text:tab/>three<text:line-break/>four"
    "<text:note><text:p>note</text:p></text:note></text:p><table:table-row><table:table-cell><text:p>a</text:p>"
    "</table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></o>"
)


def book(*chapters: str, folder: str = "OEBPS") -> bytes:
    items = "".join(f"<item id='c{at}' href='c%20{at}.xhtml'/>" for at in range(len(chapters)))
    spine = "".join(f"<itemref idref='c{at}'/>" for at in reversed(range(len(chapters))))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("META-INF/container.xml", f"<c><rootfile full-path='{folder}/book.opf'/></c>")
        opf = f"<package xmlns:dc='d'><dc:title>A book</dc:title>{items}<spine>{spine}</spine></package>"
        archive.writestr(f"{folder}/book.opf", opf)
        for at, text in enumerate(chapters):
            archive.writestr(f"{folder}/c {at}.xhtml", f"<html><head><title>x</title></head><body><p>{text}</p></body></html>")
    return out.getvalue()


MAIL = (
    "From: Ada <ada@example.org>\nSubject: =?utf-8?q?The_old_m=C3=BChle?=\nDate: Mon, 1 Jan 2024 10:00:00 +0000\n"
    'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: {kind}; charset=utf-8\n\n{body}\n'
    "--b\nContent-Type: application/pdf\nContent-Disposition: attachment; filename=a.pdf\n\nx\n--b--\n"
)

W = 'xmlns:w="w" xmlns:mc="mc" xmlns:m="m"'

BOMB = "<w:document xmlns:w='w'>" + "<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 900_000 + "</w:document>"
LAUGHS = "<!DOCTYPE a [<!ENTITY b 'lol'><!ENTITY c '&b;&b;&b;'>]><a>&c;</a>"

"""Each kind of file to text, titles and places; and one sentence for each that cannot be read."""

import io
import random
import sys
import zipfile
from pathlib import Path

import docx
import pypdf
import pytest

from antiphon.retrieval.documents import Document, DocumentError
from antiphon.retrieval.options import PassageOptions
from antiphon.retrieval.passages import cut
from antiphon.retrieval.readers import READERS, decoding, jsonl, read, readable
from retrieval.samples import lines_of, pdf, word


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


def test_text(tmp_path: Path) -> None:
    document = only(tmp_path, "my notes.txt", "One.\r\nTwo.\rThree.\n")
    assert (document.title, document.text) == ("my notes", "One.\nTwo.\nThree.\n")
    assert place(document, "Two.") == "line 2"
    assert place(document, "Two.\nThree.") == "lines 2-3"
    assert only(tmp_path, "a.TXT", "\ufeffé".encode()).text == "é"
    assert only(tmp_path, "a.text", "é\n".encode("utf-16")).text == "é\n"


@pytest.mark.parametrize(
    ("text", "title"),
    [("intro\n\n## A *title* ##\n# other", "A *title*"), ("A title\n=====\n", "A title"), ("no heading", "f"), ("#hash", "f")],
)
def test_markdown(tmp_path: Path, text: str, title: str) -> None:
    document = only(tmp_path, "f.md", text)
    assert (document.title, document.text) == (title, text)


PAGE = """<!doctype html>
<html><head><title>T &amp; u</title><style>p { color: red }</style>
<script>var hidden = "<p>secret</p>"</script></head>
<body><h1>A head</h1><p>One <b>bold</b>word,
and <i>more</i> &eacute;.</p>
<ul><li>first<li>second</ul>
<table><tr><td>left</td><td>right</td></tr></table>
<pre>x   y
  z</pre>line<br>break<!-- no --></body></html>"""


def test_html(tmp_path: Path) -> None:
    document = only(tmp_path, "f.html", PAGE)
    assert document.title == "T & u"
    assert document.text.strip() == (
        "A head\n\nOne boldword, and more é.\n\nfirst\n\nsecond\n\nleft right\n\nx   y\n  z\n\nline\nbreak"
    )
    assert place(document, "boldword") == "line 4"
    assert place(document, "and more") == "line 5"
    assert place(document, "right") == "line 7"
    assert place(document, "z") == "line 9"


def test_titles_of_html(tmp_path: Path) -> None:
    assert only(tmp_path, "f.htm", "<h1>A <b>head</b>\nline</h1><h1>no</h1>text").title == "A head line"
    assert only(tmp_path, "f.htm", "text").title == "f"


def test_html_says_its_encoding(tmp_path: Path) -> None:
    assert "é€" in only(tmp_path, "a.html", b'<meta charset="iso-8859-1">\xe9\x80').text
    assert "д" in only(tmp_path, "a.html", '<meta content="text/html; charset=koi8-r">д'.encode("koi8-r")).text
    assert "unknown encoding, 'x-none'" in complaint(tmp_path, "a.html", "<meta charset=x-none>text")


def test_pdf(tmp_path: Path) -> None:
    document = only(tmp_path, "f.pdf", pdf("Hello world, an exam-\nple of a page.", "Page two."))
    assert document.title == "f"
    assert "an example of a page." in document.text
    assert place(document, "Page two.") == "page 2"
    assert place(document, document.text.strip()) == "pages 1-2"


def test_the_title_of_a_pdf(tmp_path: Path) -> None:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("Text.")))
    writer.add_metadata({"/Title": " The\ntitle "})
    writer.write(tmp_path / "f.pdf")
    (document,) = read(tmp_path / "f.pdf")
    assert document.title == "The title"


def test_encrypted_pdfs(tmp_path: Path) -> None:
    assert "encrypted with a password" in complaint(tmp_path, "f.pdf", encrypted("secret"))
    assert "Text." in only(tmp_path, "f.pdf", encrypted("")).text  # it may be read by all, and changed by its owner


def encrypted(password: str) -> bytes:
    writer, out = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("Text."))), io.BytesIO()
    writer.encrypt(password, "owner", algorithm="RC4-128")
    writer.write(out)
    return out.getvalue()


def test_docx(tmp_path: Path) -> None:
    data = word("First paragraph.", "", "Second.", heading="A heading", rows=[("a", "b"), ("c", "")])
    document = only(tmp_path, "f.docx", data)
    assert document.title == "A heading"
    assert document.text == "A heading\n\nFirst paragraph.\n\nSecond.\n\na | b\n\nc\n\n"
    assert place(document, "Second.") == "paragraph 3"
    assert place(document, "a | b\n\nc") == "paragraphs 4-5"


def test_a_merged_cell_is_read_once(tmp_path: Path) -> None:
    document = docx.Document(io.BytesIO(word("x", rows=[("wide", ""), ("a", "b")])))
    table = document.tables[0]
    table.cell(0, 0).merge(table.cell(0, 1))
    document.save(tmp_path / "f.docx")
    (found,) = read(tmp_path / "f.docx")
    assert found.text == "x\n\nwide\n\na | b\n\n"


def test_json_lines(tmp_path: Path) -> None:
    rows = lines_of({"id": 5, "title": "T", "text": "One."}, {"text": "Two.", "extra": [1]}, {"id": "x", "text": ""})
    documents = list(read(written(tmp_path, "f.jsonl", "\ufeff" + rows.replace("\n", "\n\n", 1))))
    assert [(item.title, item.text, item.key, str(item.place(0, 1))) for item in documents] == [
        ("T", "One.", "5", "row 1"),
        ("f", "Two.", "", "row 3"),
    ]


def test_what_is_no_file_of_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not UTF-8 (byte 1)" in complaint(tmp_path, "a.txt", b"a\xff")
    assert "NUL" in complaint(tmp_path, "a.md", b"a\x00b")
    assert "not UTF-16" in complaint(tmp_path, "a.txt", b"\xff\xfea")
    for name in READERS:
        assert any(words in complaint(tmp_path, "a" + name, b"") for words in ("no text in it", "no sound"))
    assert "no text in it" in complaint(tmp_path, "a.html", "<script>x</script>")
    assert "scanned pages?" in complaint(tmp_path, "a.pdf", pdf(""))
    assert "no sound PDF" in complaint(tmp_path, "a.pdf", b"%PDF-1.4\ngarbage")
    assert "no sound DOCX" in complaint(tmp_path, "a.docx", b"PK garbage")
    assert "line 2 is no row with `text`" in complaint(tmp_path, "a.jsonl", '{"text": "x"}\n{"txt": "x"}\n')
    assert "line 1 is no row" in complaint(tmp_path, "a.jsonl", b'{"text": "\xff"}\n')
    assert "no reader for .exe: known are .txt" in complaint(tmp_path, "a.exe", b"x")
    monkeypatch.setattr(decoding, "MAX_BYTES", 8)
    monkeypatch.setattr(jsonl, "MAX_LINE", 8)
    for name in READERS:
        assert any(words in complaint(tmp_path, "a" + name, b"x" * 9) for words in ("larger than", "longer than"))


def test_a_docx_that_unpacks_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.retrieval.readers.docx.MAX_BYTES", 1000)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", "x" * 100_000)
    assert "unpacks to more" in complaint(tmp_path, "a.docx", out.getvalue())


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="cannot be read"):
        list(read(tmp_path / "none.txt"))
    assert readable(Path("A.Pdf"))
    assert not readable(Path("pdf"))


@pytest.mark.parametrize(("module", "name"), [("pypdf", "a.pdf"), ("docx", "a.docx")])
def test_a_reader_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, name: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert "pip install 'antiphon[documents]'" in complaint(tmp_path, name, b"x")


def mutated(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice([1, 2, 8])):
        at, kind = chance.randrange(len(changed)), chance.random()
        if kind < 0.4:
            changed[at] = chance.randrange(256)
        elif kind < 0.6:
            del changed[at : at + chance.choice([1, 40])]
        elif kind < 0.9:
            changed[at:at] = chance.choice([b"0", b"-1", b"9999999999", b"<<", b"[", b"(", b"<![", b"&#x110000;", b"</"])
        else:
            del changed[at + 1 :]
        changed = changed or bytearray(b"x")
    return bytes(changed)


def repacked(data: bytes, chance: random.Random) -> bytes:
    """A DOCX with one of its parts mutated, so that the archive itself is sound."""
    archive, out = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    chosen = chance.choice([name for name in archive.namelist() if name.endswith((".xml", ".rels"))])
    with zipfile.ZipFile(out, "w") as written_archive:
        for name in archive.namelist():
            part = archive.read(name)
            written_archive.writestr(name, mutated(part, chance) if name == chosen else part)
    return out.getvalue()


@pytest.mark.parametrize("seed", range(3))
def test_broken_files_give_a_sentence_or_passages_and_nothing_else(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    office = word("First.", heading="H", rows=[("a", "b")])
    originals = {
        ".pdf": pdf("One.", "Two."),
        ".docx": office,
        ".html": PAGE.encode(),
        ".jsonl": b'{"text": "a"}\n{"text": "b"}',
    }
    read_well = 0
    for number in range(240):
        name = chance.choice(list(originals))
        data = repacked(office, chance) if name == ".docx" and number % 3 else mutated(originals[name], chance)
        try:
            documents = list(read(written(tmp_path, "f" + name, data)))
        except DocumentError:
            continue
        read_well += all(list(cut(document, "f", PassageOptions())) for document in documents)
    assert read_well > 20

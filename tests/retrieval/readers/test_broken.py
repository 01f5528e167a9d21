"""What is no file of its kind, is made to harm, or is broken, is one sentence."""

import io
import random
import sys
import zipfile
from pathlib import Path

import pytest

from antiphon.retrieval.documents import DocumentError
from antiphon.retrieval.options import PassageOptions
from antiphon.retrieval.passages import cut
from antiphon.retrieval.readers import READERS, decoding, read, readable, rows
from retrieval.readers.files import BOMB, LAUGHS, MAIL, ODT, PAGE, book, complaint, packed, written
from retrieval.samples import pdf, word
from support.examples import seeds


def test_what_is_no_file_of_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not UTF-8 (byte 1)" in complaint(tmp_path, "a.txt", b"a\xff")
    assert "NUL" in complaint(tmp_path, "a.md", b"a\x00b")
    assert "not UTF-16" in complaint(tmp_path, "a.txt", b"\xff\xfea")
    for name in READERS:
        assert any(
            words in complaint(tmp_path, "a" + name, b"") for words in ("no text in it", "no sound", "no JSON", "no mail")
        )
    assert "no text in it" in complaint(tmp_path, "a.html", "<script>x</script>")
    assert "its pages are pictures" in complaint(tmp_path, "a.pdf", pdf(""))
    assert "no sound PDF" in complaint(tmp_path, "a.pdf", b"%PDF-1.4\ngarbage")
    assert "no sound DOCX" in complaint(tmp_path, "a.docx", b"PK garbage")
    assert "row 1 has no text in 'text', and no other row fits" in complaint(tmp_path, "a.jsonl", '{"txt": "x"}\n')
    assert "row 1 is no JSON" in complaint(tmp_path, "a.jsonl", b'{"text": "\xff"}\n')
    assert "no reader for .exe: known are .txt" in complaint(tmp_path, "a.exe", b"x")
    monkeypatch.setattr(decoding, "MAX_BYTES", 8)
    monkeypatch.setattr(rows, "MAX_LINE", 8)
    for name in READERS:
        assert any(words in complaint(tmp_path, "a" + name, b"x" * 9) for words in ("larger than", "longer than"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["f.docx", "f.odt", "f.pptx", "f.epub"])
def test_archives_that_are_made_to_harm(tmp_path: Path, name: str) -> None:
    parts = ("word__document_xml", "content_xml", "ppt__slides__slide1_xml", "META-INF__container_xml")
    for data, words in (
        (BOMB, "unpacks to much more"),
        (LAUGHS, "document type"),
        ("<a>" * 5000, "nested more than 1000 deep"),
    ):
        assert words in complaint(tmp_path, name, packed(**dict.fromkeys(parts, data)))


def test_a_document_of_too_many_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.retrieval.documents.MAX_UNITS", 5)
    assert "more than 5 lines: split it" in complaint(tmp_path, "a.txt", "x\n" * 6)
    assert "more than 5 lines" in complaint(tmp_path, "a.md", "\n" * 9)
    assert "more than 5 paragraphs" in complaint(tmp_path, "a.docx", word(*"abcdefg"))
    assert "more than 5 paragraphs" in complaint(tmp_path, "a.html", "<p>x" * 9)
    assert "more than 5 pages" in complaint(tmp_path, "a.pdf", pdf(*"abcdefg"))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="cannot be read"):
        list(read(tmp_path / "none.txt"))
    assert readable(Path("A.Pdf"))
    assert not readable(Path("pdf"))


@pytest.mark.parametrize(("module", "name"), [("pypdfium2", "a.pdf"), ("selectolax.lexbor", "a.html")])
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


@pytest.mark.medium
@pytest.mark.parametrize("seed", seeds(3))
def test_broken_files_give_a_sentence_or_passages_and_nothing_else(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    office = word("First.", heading="H", rows=[("a", "b")])
    originals = {
        ".pdf": pdf("One.", "Two."),
        ".docx": office,
        ".html": PAGE.encode(),
        ".jsonl": b'{"text": "a"}\n{"text": "b"}',
        ".odt": packed(content_xml=ODT),
        ".epub": book("One.", "Two."),
        ".eml": MAIL.format(kind="text/html", body="<p>x").encode(),
        ".csv": b"text,title\na,b\n",
    }
    read_well = 0
    for number in range(240):
        name = chance.choice(list(originals))
        data = repacked(office, chance) if name == ".docx" and number % 3 else mutated(originals[name], chance)
        try:
            documents = list(read(written(tmp_path, "f" + name, data)))
        except DocumentError:
            continue
        read_well += any(list(cut(document, "f", PassageOptions())) for document in documents)
    assert read_well > 20

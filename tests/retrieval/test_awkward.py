"""A folder of awkward files, several of every kind: each is in, or is named with the reason, and nothing else happens."""

import json
import os
import re
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from antiphon.cli import main
from antiphon.retrieval.documents import DocumentError
from antiphon.retrieval.options import Reading
from antiphon.retrieval.readers import READERS, apart, read
from antiphon.retrieval.readers.apart import Reader
from retrieval.readers.files import BOMB, LAUGHS, MAIL, ODT, W, book, packed
from retrieval.samples import lines_of, pdf, word

SLIDE = "<s xmlns:a='a'><a:p><a:r><a:t>otter</a:t></a:r></a:p></s>"
DOCUMENT = f"<w:d {W}><w:p><w:r><w:t>otter</w:t></w:r></w:p></w:d>"


def encrypted_zip() -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("word/document.xml", DOCUMENT)
    data = bytearray(out.getvalue())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + at] |= 1
    return bytes(data)


GOOD: dict[str, bytes | str] = {
    "plain.txt": "otter", "utf16.txt": "otter".encode("utf-16"), "mark.text": "\ufeffotter",
    "returns.txt": "otter\r\rotter\r\n",
    "long line.txt": "otter" * 60_000, "controls.txt": "otter \x1b[2J\x07", "two\nlines.txt": "otter",
    "ünïcödé 雨.txt": "otter",
    "front.md": "---\ntitle: [broken\n---\notter", "fence.md": "```\n# no\notter", "toml.markdown": "+++\nx\n+++\notter",
    "a.rst": "====\nHead\n====\notter", "b.rst": "otter", "c.rst": "..\n  otter\n",
    "undefined.html": '<meta charset="undefined">otter', "comments.html": "<!-- " * 100_000 + "--> otter <p>otter",
    "unclosed.htm": "<p><b>otter<table><tr><td>x", "gb.html": "<meta charset=gb2312>otter 朱镕基".encode("gbk"),
    "attributes.xhtml": "<p " + "a=1 " * 50_000 + ">otter", "deep.html": "<b>" * 3000 + "otter",
    "a.pdf": pdf("otter"), "half.pdf": pdf("otter", "", ""), "tail.pdf": pdf("otter") + b"garbage" * 100,
    "a.docx": word("otter"), "table.docx": word("x", rows=[("otter", "b")]), "bare.docx": packed(word__document_xml=DOCUMENT),
    "a.odt": packed(content_xml=ODT.replace("One", "otter")),
    "b.odt": packed(content_xml="<a xmlns:t='t'><t:p>otter</t:p></a>"),
    "c.odt": packed(content_xml="<a xmlns:t='t'><t:h>otter</t:h></a>", meta_xml="<a/>"),
    "a.pptx": packed(ppt__slides__slide1_xml=SLIDE), "b.pptx": packed(ppt__slides__slide7_xml=SLIDE, docProps__core_xml="<a/>"),
    "a.epub": book("otter"), "b.epub": book("", "otter", ""), "c.epub": book("otter", folder="a/b"),
    "a.eml": MAIL.format(kind="text/plain", body="otter"), "b.eml": MAIL.format(kind="text/html", body="<p>otter"),
    "c.eml": "Subject: otter\n\nx",
    "rows.jsonl": '{"text": "otter"}\n{bad\n[]\n', "null.jsonl": lines_of({"text": "otter", "title": None, "id": None}),
    "deep.jsonl": '{"text": "otter"}\n' + "[" * 100_000 + "\n",
    "a.json": '[{"text": "otter"}]', "b.json": '{"a": {"b": ["otter"]}}', "c.json": '"otter"',
    "a.csv": "text\notter\n", "b.csv": "a;b\n1;otter\n", "c.tsv": "x\ty\notter\t2\n",
    "code.py": "otter = 1", "README": "otter", "settings.toml": "otter = 2",
}  # fmt: skip
BAD: dict[str, bytes | str] = {
    "latin.txt": b"ot\xe9", "nul.txt": b"a\x00b", "empty.txt": "", "empty.html": "", "script.html": "<script>otter</script>",
    "picture.pdf": pdf("", ""), "cut.pdf": pdf("otter")[:200], "no.pdf": "text", "empty.docx": "", "no.docx": "PK garbage",
    "bomb.docx": packed(word__document_xml=BOMB), "entities.docx": packed(word__document_xml=LAUGHS),
    "secret.docx": encrypted_zip(),
    "deep.odt": packed(content_xml="<a>" * 5000), "no.odt": packed(x_xml="<a/>"),
    "entities.pptx": packed(ppt__slides__slide1_xml=LAUGHS),
    "no.pptx": "x", "no.epub": packed(x_xml="<a/>"), "bomb.epub": packed(**{"META-INF__container_xml": BOMB}),
    "no.eml": "otter",
    "deep.json": "[" * 100_000, "no.json": "{", "none.jsonl": "[1]\n2\n", "no.md": b"\xff\xfe\xff",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "awkward"
    folder.mkdir()
    for name, data in {**GOOD, **BAD}.items():
        (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
    os.mkfifo(folder / "pipe.txt")
    return folder


@pytest.mark.slow
def test_each_is_in_or_named_with_its_reason(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    endings = [os.path.splitext(name)[1] for name in (*GOOD, *BAD)]
    assert len(endings) >= 60
    kinds = [{".txt", ".text"}, {".md", ".markdown"}, {".html", ".htm", ".xhtml"}, {".csv", ".tsv"}]
    kinds += [{ending} for ending in READERS if not any(ending in kind for kind in kinds)]
    assert all(sum(ending in kind for ending in endings) >= 3 for kind in kinds)
    monkeypatch.setattr(sys, "argv", ["antiphon", "library", "add", str(folder), "--library", str(tmp_path / "l"), "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    out, error = capsys.readouterr()
    assert not ended.value.code, error
    assert "Traceback" not in error
    report = json.loads(out.splitlines()[-1])
    assert {os.path.basename(path) for path in report["added"]} == set(GOOD)
    assert {os.path.basename(path) for path in report["failed"]} == {*BAD, "pipe.txt"}
    assert all(reason and "\n" not in reason for reason in report["failed"].values())
    assert {os.path.basename(path) for path in report["told"]} == {"half.pdf", "rows.jsonl", "deep.jsonl", "a.eml", "b.eml"}
    assert "\x1b" not in error


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("secret.docx", "it is encrypted with a password: save it without one"),
        ("no.eml", "it is no mail: it has none of the headers Subject, From, To, Cc, Date"),
        ("no.odt", "it is no sound ODT, or it is encrypted (it has no content.xml)"),
        ("deep.json", "it is no JSON (nested too deeply)"),
        ("picture.pdf", "there is no text in it: its pages are pictures"),
        ("none.jsonl", "row 1 is no object with 'text', and no other row fits"),
    ],
)
def test_a_reason_is_a_sentence(folder: Path, name: str, sentence: str) -> None:
    with pytest.raises(DocumentError, match=re.escape(sentence)):
        list(read(folder / name))


def test_every_good_one_is_found(folder: Path) -> None:
    for name in GOOD:
        documents = list(read(folder / name))
        assert any("otter" in document.text for document in documents), name
        assert all(len(document.title) <= 300 and "\n" not in document.title for document in documents if "\n" not in name)


def test_a_file_that_takes_too_long_is_ended_and_the_next_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "slow.html").write_text("<div>" * 200_000)
    with Reader() as reader:
        assert list(reader.read(folder / "a.pdf", Reading()))
        monkeypatch.setattr(apart, "SECONDS", 0.5)
        with pytest.raises(DocumentError, match=r"took more than 0.5 seconds"):
            list(reader.read(folder / "slow.html", Reading()))
        monkeypatch.setattr(apart, "SECONDS", 60.0)
        assert list(reader.read(folder / "a.docx", Reading()))


@pytest.mark.medium
def test_a_file_that_needs_too_much_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("resource")
    (folder / "large.html").write_text("<p>x" * 3_000_000)
    monkeypatch.setattr(apart, "_CODE", apart._CODE.replace("import serve;", "import serve; m.MEMORY = 4 * 10**8;").replace(
        "; from", "; import antiphon.retrieval.readers.apart as m; from"))  # fmt: skip
    with Reader() as reader:
        with pytest.raises(DocumentError, match=r"memory"):
            list(reader.read(folder / "large.html", Reading()))
        assert list(reader.read(folder / "a.docx", Reading()))


def test_a_program_that_reads_and_dies_harms_nobody(folder: Path) -> None:
    with Reader() as reader:
        assert list(reader.read(folder / "a.pdf", Reading()))
        reader._process.kill()
        reader._process.wait()
        assert list(reader.read(folder / "a.docx", Reading()))
        assert list(reader.read(folder / "plain.txt", Reading()))


def test_a_document_comes_through_the_pipe_as_it_was(folder: Path) -> None:
    with Reader() as reader:
        for name in ("half.pdf", "a.epub", "table.docx", "a.eml"):
            assert list(reader.read(folder / name, Reading())) == list(read(folder / name))

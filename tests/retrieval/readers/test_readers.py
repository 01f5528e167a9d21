"""Each kind of file to text, titles and places; and one sentence for each that cannot be read."""

import io
import random
import sys
import zipfile
from pathlib import Path

import docx
import pypdf
import pytest

from antiphon.errors import UsageError
from antiphon.retrieval.documents import Document, DocumentError
from antiphon.retrieval.options import PassageOptions, Reading
from antiphon.retrieval.passages import cut
from antiphon.retrieval.readers import READERS, decoding, read, readable, rows
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
    assert place(document, "boldword") == "paragraph 2"
    assert place(document, "first\n\nsecond") == "paragraphs 3-4"


def test_titles_of_html(tmp_path: Path) -> None:
    assert only(tmp_path, "f.htm", "<h1>A <b>head</b>\nline</h1><h1>no</h1>text").title == "A head line"
    assert only(tmp_path, "f.htm", "text").title == "f"
    assert only(tmp_path, "f.htm", "<svg><title>icon</title></svg><p>text").title == "f"
    page = "<title>own</title><body><svg><title>icon</title><text>drawn</text></svg>text<object><title>x</title></object>"
    document = only(tmp_path, "f.htm", page)
    assert (document.title, document.text.strip()) == ("own", "text")
    assert len(only(tmp_path, "f.htm", f"<title>{'long ' * 60_000}</title>text").title) <= 300


@pytest.mark.parametrize(
    ("label", "encoding", "text"),
    [
        ("iso-8859-1", "cp1252", "é€ naïve"), ("latin1", "cp1252", "“quoted”"), ("koi8-r", "koi8-r", "дом у реки"),
        ("gb2312", "gbk", "朱镕基 東京"), ("gb2312", "gb18030", "𠀀 㐀"), ("Shift_JIS", "cp932", "①髙﨑"),
        ("x-sjis", "cp932", "水車小屋 ㈱"), ("euc-kr", "cp949", "똠방각하 펲"), ("ks_c_5601-1987", "cp949", "방앗간 뷁"),
        ("windows-1251", "cp1251", "мельница"), ("big5", "big5", "水車小屋"), ("utf8", "utf-8", "“é”"),
        ("x-mac-cyrillic", "mac-cyrillic", "мельница"), ("unicode-1-1-utf-8", "utf-8", "é"),
    ],
)  # fmt: skip
def test_html_in_the_encoding_that_it_names(tmp_path: Path, label: str, encoding: str, text: str) -> None:
    for head in (f'<meta charset="{label}">', f"<meta content='text/html; charset={label}' http-equiv=content-type>"):
        assert text in only(tmp_path, "a.html", f"<html>{head}<p>{text}".encode(encoding)).text
    assert text in only(tmp_path, "a.xhtml", f'<?xml version="1.0" encoding="{label}"?><p>{text}</p>'.encode(encoding)).text


@pytest.mark.parametrize("label", ["undefined", "x-none", "", "none", "UTF-7", "{{charset}}", "x-user-defined", "é"])
def test_html_with_a_label_that_nobody_knows(tmp_path: Path, label: str) -> None:
    page = f'<meta charset="{label}"><p>The mill “by” the river.'
    assert "“by”" in only(tmp_path, "a.html", page).text
    assert (
        "café"
        in only(tmp_path, "a.html", (f'<meta charset="{label}">' + "<p>Le café est fermé, déjà." * 9).encode("cp1252")).text
    )


def test_html_with_a_wrong_label(tmp_path: Path) -> None:
    russian = "<p>Старая мельница у реки сгорела в прошлом году. " * 20
    assert "мельница" in only(tmp_path, "a.html", ("<meta charset=x>" + russian).encode()).text
    assert "мельница" in only(tmp_path, "a.html", ("<meta charset=utf-8>" + russian).encode("cp1251")).text
    assert "мельница" in only(tmp_path, "a.html", ("<meta charset=euc-kr>" + russian).encode()).text
    assert "мельница" in only(tmp_path, "a.html", ("<meta charset=utf-16>" + russian).encode()).text
    assert "мельница" in only(tmp_path, "a.html", ("<meta charset=koi8-r>" + russian).encode("utf-8-sig")).text
    assert "мельница" in only(tmp_path, "a.html", ("<!-- <meta charset=koi8-r> -->" + russian).encode()).text


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<nav>Home About</nav><main><p>The story of the mill.</p></main><footer>Imprint</footer>", "The story of the mill."),
        (
            "<header role=banner>Site</header><p>Long enough text of a page.</p><aside>Ads</aside>",
            "Long enough text of a page.",
        ),
        ("<nav><p>All that there is on this page is here.</p></nav><p>x</p>", "All that there is on this page is here.\n\nx"),
        ("<article>One.</article><article>Two.</article>", "One.\n\nTwo."),
        ("<p hidden>no</p><p style='display: none'>no</p><p>yes<script>no</script><noscript>no</noscript>", "yes"),
        ("<p>a<br>b<table><tr><td>c<td>d<tr><td>e</table>", "a\nb\n\nc d\n\ne"),
    ],
)
def test_the_main_text_of_a_page(tmp_path: Path, page: str, text: str) -> None:
    assert only(tmp_path, "a.html", page).text.strip() == text


def test_pdf(tmp_path: Path) -> None:
    document = only(tmp_path, "f.pdf", pdf("Hello world, an exam-\nple of a page.", "Page two."))
    assert document.title == "f"
    assert "an example of a page." in document.text
    assert place(document, "Page two.") == "page 2"
    assert place(document, document.text.strip()) == "pages 1-2"


def test_words_of_a_pdf_that_lines_and_pages_break(tmp_path: Path) -> None:
    document = only(tmp_path, "f.pdf", pdf("A well-known mill, a Nobel-\nPrize, well-\nknown too, and im-", "portant words"))
    for text in ("well-known mill", "Nobel-Prize", "well-known too", "and important"):
        assert text in document.text
    assert place(document, "important") == "page 1"
    assert place(document, "words") == "page 2"


@pytest.mark.parametrize(("pages", "told"), [(("a", ""), "1 of 2"), (("", "", "text"), "2 of 3"), (("a", "b"), "")])
def test_pages_without_text_are_counted(tmp_path: Path, pages: tuple[str, ...], told: str) -> None:
    document = only(tmp_path, "f.pdf", pdf(*pages))
    assert list(document.told) == [f"{told} pages are pictures: no text"] * bool(told)


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


W = 'xmlns:w="w" xmlns:mc="mc" xmlns:m="m"'
SEEN_OF_WORD = [
    ("<w:p><w:ins><w:r><w:t>in</w:t></w:r></w:ins><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>", "in"),
    ("<w:p><w:moveTo><w:r><w:t>moved</w:t></w:r></w:moveTo></w:p><w:p><w:moveFrom><w:r><w:t>from</w:t></w:r></w:moveFrom></w:p>",
     "moved"),
    ("<w:sdt><w:sdtContent><w:p><w:r><w:t>control</w:t></w:r></w:p></w:sdtContent></w:sdt>", "control"),
    ("<w:p><w:sdt><w:sdtContent><w:r><w:t>inline</w:t></w:r></w:sdtContent></w:sdt></w:p>", "inline"),
    ("<w:p><w:fldSimple><w:r><w:t>7</w:t></w:r></w:fldSimple><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>", "7"),
    ("<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t></w:r></w:p>", "a\tb\nc-d"),
    ("<w:p><m:oMath><m:r><m:t>E=mc</m:t></m:r></m:oMath></w:p>", "E=mc"),
    ("<w:p><mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></mc:Choice>"
     "<mc:Fallback><w:p><w:r><w:t>box</w:t></w:r></w:p></mc:Fallback></mc:AlternateContent><w:r><w:t>beside</w:t></w:r></w:p>",
     "box\nbeside"),
    ("<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r><w:r><w:t>seen</w:t></w:r></w:p>", "seen"),
    ("<w:p><w:hyperlink><w:r><w:t>link</w:t></w:r></w:hyperlink><w:r><w:sym w:char='03B1'/></w:r></w:p>", "linkα"),
    ("<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc><w:tc><w:tbl><w:tr><w:tc>"
     "<w:p><w:r><w:t>c</w:t></w:r></w:p></w:tc></w:tr></w:tbl><w:p/></w:tc></w:tr></w:tbl>", "a b | c"),
]  # fmt: skip


def packed(**parts: str) -> bytes:
    """An archive; two underscores in a name are a slash, the last one a dot."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            folder, _, file = name.rpartition("__")
            archive.writestr(f"{folder.replace('__', '/')}{'/' if folder else ''}{file.replace('_', '.')}", data)
    return out.getvalue()


@pytest.mark.parametrize(("body", "text"), SEEN_OF_WORD)
def test_docx_has_what_a_reader_sees(tmp_path: Path, body: str, text: str) -> None:
    data = packed(word__document_xml=f"<w:document {W}><w:body>{body}</w:body></w:document>")
    assert only(tmp_path, "f.docx", data).text.strip() == text


def test_docx_has_its_notes_and_what_stands_around_it_once(tmp_path: Path) -> None:
    def part(text: str) -> str:
        return f"<w:x {W}><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:x>"

    document = only(tmp_path, "f.docx", packed(
        word__document_xml=part("body"), word__footnotes_xml=part("foot"), word__endnotes_xml=part("end"),
        word__header1_xml=part("above"), word__header2_xml=part("above"), word__footer1_xml=part("below"),
        word__comments_xml=part("comment"), docProps__core_xml="<c xmlns:dc='d'><dc:title>Own</dc:title></c>",
    ))  # fmt: skip
    assert document.text.split() == ["body", "foot", "end", "above", "below"]
    assert document.title == "Own"


def test_headings_of_docx_in_any_language(tmp_path: Path) -> None:
    styles = f"<w:styles {W}><w:style w:styleId='berschrift1'><w:name w:val='heading 1'/></w:style></w:styles>"
    body = "<w:p><w:r><w:t>intro</w:t></w:r></w:p>"
    body += "<w:p><w:pPr><w:pStyle w:val='berschrift1'/></w:pPr><w:r><w:t>Kopf</w:t></w:r></w:p>"
    data = packed(word__document_xml=f"<w:document {W}>{body}</w:document>", word__styles_xml=styles)
    assert only(tmp_path, "f.docx", data).title == "Kopf"


ODT = (
    "<o xmlns:text='t' xmlns:table='b' xmlns:office='f'><text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
    "<text:h>Head</text:h><text:p>One<text:s text:c='2'/>two<text:tab/>three<text:line-break/>four"
    "<text:note><text:p>note</text:p></text:note></text:p><table:table-row><table:table-cell><text:p>a</text:p>"
    "</table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></o>"
)


def test_odt(tmp_path: Path) -> None:
    document = only(tmp_path, "f.odt", packed(content_xml=ODT))
    assert document.text == "Head\n\nOne  two\tthree\nfour note\n\na | b\n\n"
    assert document.title == "Head"
    meta = "<m xmlns:dc='d'><dc:title> Own  title</dc:title></m>"
    assert only(tmp_path, "f.odt", packed(content_xml=ODT, meta_xml=meta)).title == "Own title"
    assert "no sound ODT" in complaint(tmp_path, "f.odt", packed(other_xml="<a/>"))


def test_pptx(tmp_path: Path) -> None:
    def slide(*texts: str) -> str:
        return "<s xmlns:a='a'>" + "".join(f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>" for text in texts) + "</s>"

    data = packed(
        ppt__slides__slide2_xml=slide("Second"), ppt__slides__slide10_xml=slide("Tenth"),
        ppt__slides__slide1_xml=slide("Mills", "old"), ppt__notesSlides__notesSlide1_xml=slide("say this"),
    )  # fmt: skip
    document = only(tmp_path, "f.pptx", data)
    assert document.text.split() == ["Mills", "old", "say", "this", "Second", "Tenth"]
    assert (document.title, place(document, "Second"), place(document, "Tenth")) == ("Mills", "page 2", "page 3")


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


def test_epub(tmp_path: Path) -> None:
    document = only(tmp_path, "f.epub", book("Last words.", "First words."))
    assert (document.title, document.text.split("\n\n")[:2]) == ("A book", ["First words.", "Last words."])
    assert place(document, "Last") == "page 2"
    assert "no sound EPUB" in complaint(tmp_path, "f.epub", packed(x_xml="<a/>"))


MAIL = (
    "From: Ada <ada@example.org>\nSubject: =?utf-8?q?The_old_m=C3=BChle?=\nDate: Mon, 1 Jan 2024 10:00:00 +0000\n"
    'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: {kind}; charset=utf-8\n\n{body}\n'
    "--b\nContent-Type: application/pdf\nContent-Disposition: attachment; filename=a.pdf\n\nx\n--b--\n"
)


def test_mail(tmp_path: Path) -> None:
    for kind, body in (("text/plain", "It burned.\n\nBye."), ("text/html", "<p>It burned.</p><p>Bye.</p>")):
        document = only(tmp_path, "f.eml", MAIL.format(kind=kind, body=body))
        assert document.title == "The old mühle"
        assert "From: Ada <ada@example.org>" in document.text
        assert "It burned.\n\nBye." in document.text
        assert list(document.told) == ["1 attachment not read"]
    assert "it is no mail" in complaint(tmp_path, "f.eml", "just text")
    unknown = "Subject: x\nContent-Type: text/plain; charset=nobody-knows\n\nwords"
    assert "words" in only(tmp_path, "f.eml", unknown).text


def test_a_merged_cell_is_read_once(tmp_path: Path) -> None:
    document = docx.Document(io.BytesIO(word("x", rows=[("wide", ""), ("a", "b")])))
    table = document.tables[0]
    table.cell(0, 0).merge(table.cell(0, 1))
    document.save(tmp_path / "f.docx")
    (found,) = read(tmp_path / "f.docx")
    assert found.text == "x\n\nwide\n\na | b\n\n"


def rows_of(folder: Path, name: str, data: str, field: str = "text") -> list[tuple[str, str, str, str]]:
    documents = list(read(written(folder, name, data), Reading(text_field=field)))
    return [(item.title, item.text, item.key, str(item.place(0, 1))) for item in documents if item.text]


def test_json_lines(tmp_path: Path) -> None:
    rows = lines_of({"id": 5, "title": "T", "text": "One."}, {"text": "Two.", "extra": [1]}, {"id": "x", "text": ""})
    found = rows_of(tmp_path, "f.jsonl", "\ufeff" + rows.replace("\n", "\n\n", 1))
    assert found == [("T", "One.", "5", "row 1"), ("f", "Two.", "", "row 3")]
    rows = lines_of(
        {"id": None, "title": None, "text": "a"}, {"id": {"n": 1}, "title": 7, "text": "b"}, {"_id": 1.5, "text": "c"}
    )
    assert rows_of(tmp_path, "f.jsonl", rows) == [
        ("f", "a", "", "row 1"),
        ("7", "b", '{"n": 1}', "row 2"),
        ("f", "c", "1.5", "row 3"),
    ]
    assert rows_of(tmp_path, "f.jsonl", lines_of({"body": "x", "text": 1}), "body") == [("f", "x", "", "row 1")]


def test_rows_that_do_not_fit_are_told_and_the_others_go_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_LINE", 5000)
    bad = ['{"txt": "x"}', "[1]", "no json", '{"text": 5}', "[" * 4000, '{"text": "' + "x" * 9000 + '"}', '{"text": "\\ud800"}']
    for line in bad:
        documents = list(read(written(tmp_path, "f.jsonl", f'{{"text": "a"}}\n{line}\n{{"text": "b"}}\n')))
        assert [item.text for item in documents if item.text][:1] == ["a"]
        assert [item.text for item in documents if item.text][-1] == "b"
        told = [text for item in documents for text in item.told]
        assert len(told) == 1, line
        assert all(text.startswith("row 2 ") for text in told)
    many = '{"text": "a"}\n' + "x\n" * 40
    told = [text for item in read(written(tmp_path, "f.jsonl", many)) for text in item.told]
    assert (len(told), told[-1]) == (6, "35 more rows like these")


def test_json(tmp_path: Path) -> None:
    assert rows_of(tmp_path, "f.json", '[{"text": "a", "id": 1}, {"text": "b"}, 5]') == [
        ("f", "a", "1", "row 1"),
        ("f", "b", "", "row 2"),
    ]
    (document,) = read(written(tmp_path, "f.json", '{"title": "T", "mill": {"year": 1911, "of": ["Ada", null]}}'))
    assert (document.title, document.text) == ("T", "title: T\nmill.year: 1911\nmill.of: Ada")
    for bad in ("{", "[" * 5000, '{"a": 1} x'):
        assert "it is no JSON" in complaint(tmp_path, "f.json", bad)


def test_csv(tmp_path: Path) -> None:
    assert rows_of(tmp_path, "f.csv", 'id,name,year\n1,"The, mill",1911\n\n2,Lake,\n') == [
        ("The, mill", "id: 1\nname: The, mill\nyear: 1911", "1", "row 2"),
        ("Lake", "id: 2\nname: Lake", "2", "row 3"),
    ]
    assert rows_of(tmp_path, "f.csv", "text;title\nburned;Mill\n") == [("Mill", "burned", "", "row 2")]
    assert rows_of(tmp_path, "f.tsv", "a\tb\n1\t2\n") == [("f", "a: 1\nb: 2", "", "row 2")]
    assert "no CSV" in complaint(tmp_path, "f.csv", 'a,b\n1,"' + "x" * 200_000)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: My mill\ntags: [a]\n---\n# Head\n", "My mill"), ('---\ntitle: "A: b"\n---\ntext', "A: b"),
        ("+++\ntitle = 'Toml'\n+++\n# Head\n", "Toml"), ("---\nlayout: x\n---\n# Head\n", "Head"), ("---\n# Head\n", "Head"),
        ("```sh\n# comment\n```\n\n# Real\n", "Real"), ("~~~\n# no\n```\n# no\n~~~~\n## Yes", "Yes"), ("    ```\n# Yes", "Yes"),
        ("+++\nbroken\n+++\n# Head", "Head"),
    ],
)  # fmt: skip
def test_titles_of_markdown(tmp_path: Path, text: str, title: str) -> None:
    document = only(tmp_path, "f.md", text)
    assert document.title == title
    assert "layout:" not in document.text
    assert place(document, document.text.strip()[:3]).startswith("line")


def test_front_matter_keeps_the_lines_of_the_file(tmp_path: Path) -> None:
    assert place(only(tmp_path, "f.md", "---\ntitle: x\n---\n\nThe mill.\nBurned.\n"), "Burned") == "line 6"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("=====\nMills\n=====\n\ntext", "Mills"),
        ("Mills\n-----\ntext", "Mills"),
        ("plain text\n", "f"),
        (".. c\n\nA b\n~~~\n", "A b"),
    ],
)
def test_titles_of_restructured_text(tmp_path: Path, text: str, title: str) -> None:
    assert only(tmp_path, "f.rst", text).title == title


def test_source_code_and_names_without_an_ending(tmp_path: Path) -> None:
    for name in ("a.py", "b.Rs", "c.toml", "d.TEX"):
        assert only(tmp_path, name, "x = 1\n").title == name
    for name in ("README", "Makefile", "licence"):
        assert only(tmp_path, name, "words\n").text == "words\n"
    assert "no reader for files without an ending" in complaint(tmp_path, "binary", "x")


def test_other_encodings_of_text(tmp_path: Path) -> None:
    for name, encoding in (("a.txt", "cp1252"), ("a.md", "koi8-r"), ("a.csv", "utf-16-le"), ("a.py", "shift_jis")):
        text = {"koi8-r": "дом", "shift_jis": "水車"}.get(encoding, "é")
        file = written(tmp_path, name, f"{text},b\n{text},c\n".encode(encoding))
        assert any(text in document.text for document in read(file, Reading(encoding)))
    assert "not UTF-8 (byte 0): name its own by --encoding" in complaint(tmp_path, "a.txt", b"\xe9")
    with pytest.raises(UsageError, match="there is no encoding 'x-none'"):
        Reading("x-none")


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


BOMB = "<w:document xmlns:w='w'>" + "<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 900_000 + "</w:document>"
LAUGHS = "<!DOCTYPE a [<!ENTITY b 'lol'><!ENTITY c '&b;&b;&b;'>]><a>&c;</a>"


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


@pytest.mark.parametrize("seed", range(3))
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

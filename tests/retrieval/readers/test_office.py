"""DOCX, ODT and PPTX: what a reader sees, once."""

from pathlib import Path

import pytest

from retrieval.readers.files import ODT, W, complaint, only, packed, place
from retrieval.samples import word


def test_docx(tmp_path: Path) -> None:
    data = word("First paragraph.", "", "Second.", heading="A heading", rows=[("a", "b"), ("c", "")])
    document = only(tmp_path, "f.docx", data)
    assert document.title == "A heading"
    assert document.text == "A heading\n\nFirst paragraph.\n\nSecond.\n\na | b\n\nc\n\n"
    assert place(document, "Second.") == "paragraph 3"
    assert place(document, "a | b\n\nc") == "paragraphs 4-5"


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

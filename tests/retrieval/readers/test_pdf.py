"""PDF: pages, titles, words that lines break, and files without text."""

import io
from pathlib import Path

import pypdf
import pytest

from antiphon.retrieval.readers import read
from retrieval.readers.files import complaint, only, place
from retrieval.samples import pdf


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

"""EPUB: its pages in the order of reading."""

from pathlib import Path

from retrieval.readers.files import book, complaint, only, packed, place


def test_epub(tmp_path: Path) -> None:
    document = only(tmp_path, "f.epub", book("Last words.", "First words."))
    assert (document.title, document.text.split("\n\n")[:2]) == ("A book", ["First words.", "Last words."])
    assert place(document, "Last") == "page 2"
    assert "no sound EPUB" in complaint(tmp_path, "f.epub", packed(x_xml="<a/>"))

"""Text, Markdown, reStructuredText and source code; encodings."""

from pathlib import Path

import pytest

from antiphon.errors import UsageError
from antiphon.retrieval.options import Reading
from antiphon.retrieval.readers import read
from retrieval.readers.files import complaint, only, place, written


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

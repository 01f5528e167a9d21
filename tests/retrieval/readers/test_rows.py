"""JSON, JSON lines and CSV: a document a row, and the rows that do not fit."""

import io
from pathlib import Path

import docx
import pytest

from antiphon.retrieval.options import Reading
from antiphon.retrieval.readers import read, rows
from retrieval.readers.files import complaint, written
from retrieval.samples import lines_of, word


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

"""JSON lines, JSON and CSV: one document a row, with its text and, if they are there, `title` and `id`.

A row that does not fit is told with its number, and the others go in. JSON lines are read line by line, so of any size.
"""

import codecs
import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from antiphon.retrieval.documents import MAX_TITLE, Document, DocumentError, first_line, titled
from antiphon.retrieval.options import Reading
from antiphon.retrieval.readers.decoding import text_of

MAX_LINE = 64 * 2**20
"""Bytes of a row at most."""
_NAMED = 5
"""Rows that are told by number; of the others how many."""
_TITLES, _IDS = ("title", "Title", "name"), ("id", "_id", "ID")


def read_jsonl(path: Path, reading: Reading) -> Iterator[Document]:
    """One document a row; a row without a title has the file's name without the ending."""
    with path.open("rb") as file:
        yield from _documents(_json_lines(file), path.stem, reading.text_field)


def read_json(path: Path, reading: Reading) -> Iterator[Document]:
    """A list of rows is read as JSON lines are, anything else as one document of its texts, by their names."""
    value = _value(text_of(path, reading.encoding).encode())
    if isinstance(value, Exception):
        raise DocumentError(f"it is no JSON ({first_line(value)})")
    if isinstance(value, list) and any(isinstance(row, dict) and reading.text_field in row for row in value):
        yield from _documents(enumerate(value, 1), path.stem, reading.text_field)
    else:
        title = titled(_plain(value, _TITLES) if isinstance(value, dict) else "", path.stem)
        yield Document(title, "\n".join(_told(value)), "row")


def read_csv(path: Path, reading: Reading) -> Iterator[Document]:
    """One document a row: its text field alone if the first row names one, else all cells with the names of their columns."""
    text = text_of(path, reading.encoding)
    try:
        dialect: Any = csv.Sniffer().sniff(text[:10_000], ",;\t|")
    except csv.Error:
        dialect = "excel-tab" if path.suffix.lower() == ".tsv" else "excel"
    try:
        rows = [row for row in csv.reader(io.StringIO(text), dialect) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise DocumentError(f"it is no CSV ({first_line(error)})") from error
    names = rows[0] if rows else []
    found = (dict(zip(names, row, strict=False)) for row in rows[1:])
    if reading.text_field in names:
        yield from _documents(enumerate(found, 2), path.stem, reading.text_field)
        return
    for number, row in enumerate(found, 2):
        lines = "\n".join(f"{name}: {cell}" for name, cell in row.items() if cell.strip())
        yield Document(titled(_plain(row, _TITLES), path.stem), lines, "row", numbers=(number,), key=_plain(row, _IDS))


def _json_lines(file: io.BufferedReader) -> Iterator[tuple[int, Any]]:
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        if len(line) > MAX_LINE:
            # The rest of the row is read past, or its middle would be taken for the next one.
            while line and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE + 1)
            yield number, ValueError(f"longer than {MAX_LINE >> 20} MiB")
        elif line.strip():
            yield number, _value(line)


def _value(data: bytes) -> Any:
    """What the JSON says, or the error."""
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        return ValueError("nested too deeply")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return error


def _documents(rows: Iterable[tuple[int, Any]], name: str, field: str) -> Iterator[Document]:
    """Raises DocumentError if no row fits."""
    failed: dict[int, str] = {}
    fits = 0
    for number, row in rows:
        document = _document(row, number, name, field)
        if isinstance(document, str):
            failed[number] = document
        else:
            fits += 1
            yield document
    # Not one row fits: it is the file that is of another kind, and not so many rows that are broken.
    if failed and not fits:
        number, reason = next(iter(failed.items()))
        raise DocumentError(f"row {number} {reason}, and no other row fits")
    if failed:
        yield Document(name, "", "row", told=_reasons(failed))


def _reasons(failed: dict[int, str]) -> tuple[str, ...]:
    named = [f"row {number} {reason}" for number, reason in list(failed.items())[:_NAMED]]
    left = len(failed) - len(named)
    return (*named, f"{left} more rows like these") if left else tuple(named)


def _document(row: Any, number: int, name: str, field: str) -> Document | str:
    """The document of a row, or what is wrong with it."""
    if isinstance(row, Exception):
        return f"is no JSON ({first_line(row)})"
    if not isinstance(row, dict):
        return f"is no object with {field!r}"
    text = row.get(field)
    if not isinstance(text, str):
        return f"has no text in {field!r}" if text is None else f"has {field!r}, but it is no text"
    return Document(titled(_plain(row, _TITLES), name), text, "row", numbers=(number,), key=_plain(row, _IDS)[:MAX_TITLE])


def _plain(row: dict[str, Any], names: tuple[str, ...]) -> str:
    """The first of these fields that is there, as text; nested ones as JSON."""
    for name in names:
        if (value := row.get(name)) is not None:
            return value if isinstance(value, str) else _written(value)
    return ""


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:MAX_TITLE]


def _told(value: Any) -> Iterator[str]:
    """The texts and numbers of any JSON, each on a line with the names that lead to it."""
    # A stack of our own: JSON may be nested deeper than Python calls.
    left: list[tuple[str, Any]] = [("", value)]
    visit: Callable[[tuple[str, Any]], None] = left.append
    while left:
        name, item = left.pop()
        if isinstance(item, dict):
            for key, part in reversed(item.items()):
                visit((f"{name}.{key}" if name else str(key), part))
        elif isinstance(item, list):
            for part in reversed(item):
                visit((name, part))
        elif item is not None:
            yield f"{name}: {item}" if name else str(item)

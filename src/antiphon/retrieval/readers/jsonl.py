"""JSON lines: one document a row, with `text` and, if they are there, `title` and `id`. Read line by line, so of any size."""

import codecs
from collections.abc import Iterator
from pathlib import Path

import msgspec

from antiphon.retrieval.documents import Document, DocumentError

MAX_LINE = 64 * 2**20
"""Bytes of a row at most."""


class _Row(msgspec.Struct):
    text: str
    title: str = ""
    id: int | str = ""


def read_jsonl(path: Path) -> Iterator[Document]:
    """One document a row; a row without a title has the file's name without the ending."""
    decoder = msgspec.json.Decoder(_Row)
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise DocumentError(f"line {number} is longer than {MAX_LINE >> 20} MiB")
            line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if line.strip():
                yield _document(decoder, line, number, path.stem)


def _document(decoder: msgspec.json.Decoder[_Row], line: bytes, number: int, name: str) -> Document:
    try:
        row = decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DocumentError(f"line {number} is no row with `text` ({error})") from error
    return Document(row.title or name, row.text, "row", numbers=(number,), key=str(row.id))

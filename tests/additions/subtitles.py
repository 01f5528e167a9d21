"""Subtitles (SubRip): what is said, without numbers and times."""

import re
from collections.abc import Iterator
from pathlib import Path

from antiphon.retrieval.documents import Document, Scroll
from antiphon.retrieval.options import Reading
from antiphon.retrieval.readers.decoding import decoded, read_whole

_UNSAID = re.compile(r"\d+|\d\d:\d\d:\d\d,\d{3} --> \d\d:\d\d:\d\d,\d{3}.*")


def read_subtitles(path: Path, reading: Reading) -> Iterator[Document]:
    """One document; its title is the file's name without the ending."""
    scroll = Scroll("line")
    for number, line in enumerate(decoded(read_whole(path), reading.encoding).splitlines(keepends=True), 1):
        if not _UNSAID.fullmatch(line.strip()):
            scroll.write(line, number)
    yield scroll.document(path.stem)

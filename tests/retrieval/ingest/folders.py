"""Files added to an index, and what is found of them."""

import os
from pathlib import Path

from antiphon.retrieval import ingest
from antiphon.retrieval.ingest import Report
from antiphon.retrieval.options import PassageOptions
from antiphon.retrieval.sqlite.index import SqliteIndex

OPTIONS = PassageOptions()


def silent(done: int, total: int, name: str) -> None:
    pass


def names(paths: list[str]) -> list[str]:
    return [os.path.basename(path) for path in paths]


def add(index: SqliteIndex, *paths: Path, options: PassageOptions = OPTIONS) -> Report:
    return ingest.add(index, paths, options, silent)


def texts(index: SqliteIndex, question: str) -> set[str]:
    return {found.passage.text for found in index.search(question, 100)}

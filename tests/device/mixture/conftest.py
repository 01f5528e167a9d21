"""Two real libraries."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from antiphon.retrieval.index import Index
from antiphon.retrieval.ingest import add
from antiphon.retrieval.opening import open_library
from antiphon.retrieval.options import PassageOptions


@pytest.fixture
def libraries(tmp_path: Path) -> Iterator[list[Index]]:
    """Two real libraries, opened in this thread and searched in the models'."""
    with ExitStack() as stack:
        found: list[Index] = []
        for number, texts in enumerate((["the cat of the device sleeps", "the dog"], ["the cat of the cloud", "a bird"])):
            rows = [json.dumps({"id": str(row), "title": f"t{row}", "text": text}) for row, text in enumerate(texts)]
            (tmp_path / f"{number}.jsonl").write_text("\n".join(rows))
            library = stack.enter_context(open_library(str(tmp_path / f"{number}.db"), create=True))
            add(library, [tmp_path / f"{number}.jsonl"], PassageOptions(), lambda *progress: None)
            found.append(library)
        yield found

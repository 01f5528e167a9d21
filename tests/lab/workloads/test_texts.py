"""Prompts from a text."""

from pathlib import Path

import pytest

from antiphon.errors import UsageError
from antiphon_lab.workloads.texts import read_prompts


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"short\nlines\n", "has no line of over 400 characters: --data names a text such as"),
        (b"\xff" * 500, "is not UTF-8 text"),
    ],
)
def test_a_file_without_prompts(data: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=sentence):
        read_prompts(path, 1)

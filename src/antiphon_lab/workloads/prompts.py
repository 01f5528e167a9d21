"""Prompts of a benchmark from one file: a text, or JSON lines of which each asks something."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from antiphon.errors import UsageError
from antiphon_lab.workloads.texts import read_prompts

ARTICLE_WORDS = 180
"""Words of an article that a model reads."""

FORMS: Mapping[str, Callable[[str], str]] = {
    "prompt": str,
    "question": "Question: {}\nAnswer:".format,
    "source": "German: {}\nEnglish:".format,
    "article": lambda text: f"{' '.join(text.split()[:ARTICLE_WORDS])}\n\nIn short, this article says that",
}
"""What a row asks, by the name of its field; the first that a row has counts."""


def prompts_of(path: Path, count: int) -> list[str]:
    """`count` prompts, evenly spread over a text file or a file of JSON lines (`.jsonl`). Raises UsageError."""
    if count < 1:
        raise UsageError(f"--prompts must be at least 1, not {count}")
    if path.suffix != ".jsonl":
        return read_prompts(path, count)
    rows = _lines(path)
    if count > len(rows):
        raise UsageError(f"--prompts must be at most {len(rows)}, the rows of {path}, not {count}")
    places = [place * len(rows) // count for place in range(count)]
    return [_prompt(rows[place], f"line {place + 1} of {path}") for place in places]


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): --data names a text or a file of JSON lines") from error


def _prompt(line: bytes, where: str) -> str:
    try:
        row = msgspec.json.decode(line, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{where} is no JSON object ({error}): --data names a text or a file of JSON lines") from error
    for field, form in FORMS.items():
        if isinstance(text := row.get(field), str) and text.strip():
            return form(text.strip())
    raise UsageError(f"{where} asks nothing: it has none of the fields {', '.join(FORMS)}")

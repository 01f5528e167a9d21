"""The two tasks of `antiphon-lab bench rag`, and their libraries: public documents in the cloud, private ones on the device.

Which end has a passage is decided by a hash of its name: the same every time, and no passage is on both ends. The libraries are
made once, in the cache folder.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from antiphon.cache import cache_folder, write_cached
from antiphon.errors import UsageError
from antiphon.models.base import Model
from antiphon.retrieval.context import Form
from antiphon.retrieval.index import Index
from antiphon.retrieval.ingest import add
from antiphon.retrieval.opening import open_library
from antiphon.retrieval.options import PassageOptions
from antiphon.retrieval.passages import spans

ENDS = ("device", "cloud")
PREFIX, CONTINUED = 64, 48
"""Tokens of a text that are given, and tokens that follow (CONCORD V-A)."""
HELD_OUT = 8
"""One paragraph of so many is for examples, and in no library."""
_HEADING = re.compile(r"= [^=].*[^=] =")


@dataclass(frozen=True, slots=True)
class Example:
    """A question, or the beginning of a text. name: tells it from others. target: the tokens that follow in the text."""

    name: str
    prompt: str
    references: tuple[str, ...] = ()
    target: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage as a library takes it."""

    id: str
    title: str
    text: str

    @property
    def end(self) -> str:
        """Which end has it."""
        return ENDS[_hash(self.id) % 2]


@dataclass(frozen=True, slots=True)
class RagTask:
    """A task. tokens: of an answer, unless others are asked for."""

    name: str
    form: Form
    tokens: int
    passages: Callable[[Path], Iterator[Passage]]
    examples: Callable[[Path, Model], list[Example]]


def find_task(name: str) -> RagTask:
    """The task of this name. Raises UsageError."""
    if name not in TASKS:
        raise UsageError(f"there is no task {name!r} for two libraries: use one of {', '.join(TASKS)}")
    return TASKS[name]


@contextmanager
def libraries(task: RagTask, data: Path) -> Iterator[tuple[Index, Index]]:
    """The device's library and the cloud's, made if they are not there yet. Raises UsageError."""
    with ExitStack() as stack:
        device, cloud = (stack.enter_context(open_library(str(file))) for file in library_files(task, data))
        yield device, cloud


def library_files(task: RagTask, data: Path) -> tuple[Path, Path]:
    """Where the device's library and the cloud's are; made if they are not there yet. Raises UsageError."""
    shards: dict[str, list[Passage]] = {end: [] for end in ENDS}
    for passage in task.passages(data):
        shards[passage.end].append(passage)
    device, cloud = (_library_file(f"rag-{task.name}-{end}", shards[end]) for end in ENDS)
    return device, cloud


def _library_file(name: str, passages: Iterable[Passage]) -> Path:
    """The library of exactly these passages; one whose making was cut short is completed."""
    rows = (json.dumps({"id": one.id, "title": one.title, "text": one.text}) + "\n" for one in passages)
    content = "".join(rows).encode()
    name = f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
    file = cache_folder() / f"{name}.jsonl"
    if not file.exists():
        write_cached(file.name, content)
    made = file.with_suffix(".db")
    with open_library(str(made), create=True) as library:
        add(library, [file], PassageOptions(), lambda done, total, path: None)
    return made


class _Question(msgspec.Struct):
    id: str
    question: str
    answers: tuple[str, ...]


class _Document(msgspec.Struct):
    id: int
    title: str
    text: str


_Row = TypeVar("_Row")


def _rows(path: Path, kind: type[_Row]) -> list[_Row]:
    try:
        return msgspec.json.Decoder(kind).decode_lines(_read(path))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not the data set that it should be ({error}): get the file again") from error


def _questions(data: Path, model: Model) -> list[Example]:
    return [Example(row.id, row.question, row.answers) for row in _rows(data / "nq_questions.jsonl", _Question)]


def _documents(data: Path) -> Iterator[Passage]:
    for row in _rows(data / "nq_passages.jsonl", _Document):
        yield Passage(f"nq {row.id}", row.title, row.text)


def _texts(data: Path, model: Model) -> list[Example]:
    """Paragraphs that are long enough, but for what stands behind their first tokens."""
    found = []
    for name, _, text in _paragraphs(data):
        tokens = model.tokenize(text) if _is_held_out(name) else []
        if len(tokens) >= PREFIX + CONTINUED and (prompt := _text(model, tokens[:PREFIX])) is not None:
            found.append(Example(name, prompt, target=tuple(tokens[PREFIX : PREFIX + CONTINUED])))
    return found


def _text(model: Model, tokens: list[int]) -> str | None:
    """What tokens spell, if that is text which the tokenizer reads as the same tokens."""
    try:
        text = model.vocabulary.join(tokens).decode()
    except UnicodeDecodeError:
        return None
    return text if model.tokenize(text) == tokens else None


def _extracts(data: Path) -> Iterator[Passage]:
    """Every other paragraph, cut where it is long."""
    options = PassageOptions(overlap=0)
    for name, title, text in _paragraphs(data):
        if not _is_held_out(name):
            for number, (start, end) in enumerate(spans(text, options, options.whole)):
                yield Passage(f"{name}.{number}", title, text[start:end])


def _paragraphs(data: Path) -> Iterator[tuple[str, str, str]]:
    """Name, title of the article, and text of every paragraph."""
    path, title = data / "wikitext2_test.raw", ""
    for number, line in enumerate(_read(path).decode().splitlines(), 1):
        text = line.strip()
        if _HEADING.fullmatch(text):
            title = text.strip("= ")
        elif text and not text.startswith("="):
            yield f"wikitext {number}", title, text


def _is_held_out(name: str) -> bool:
    return _hash(f"held out {name}") % HELD_OUT == 0


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): --data names the folder of the data sets") from error


TASKS: Mapping[str, RagTask] = {
    task.name: task
    for task in (
        RagTask("nq", "question", 10, _documents, _questions),
        RagTask("wikitext", "text", CONTINUED, _extracts, _texts),
    )
}
"""The tasks, by name: Natural Questions and WikiText-2."""

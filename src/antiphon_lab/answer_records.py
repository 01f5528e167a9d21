"""Finished answers in a file of JSON lines, one appended as soon as it is there, so that a run can go on where it stopped.

A last line without its end is what a kill leaves: it is cut off, and that answer is written again. Anything else that does not
fit is for the person to decide, and raises UsageError.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import BinaryIO

import msgspec

from antiphon.errors import UsageError

Key = tuple[str, int, str]
"""Task, row and method: which answer it is."""

_OPENING = b'{"settings":{"version":'
"""How a line begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What shapes an answer besides its question, method and seed. seed: the run's own."""

    version: str
    cloud_model: str
    model: str
    temperature: float
    draft_length: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A finished answer.

    row: its place in the task's file, from 0. asked: a digest of prompt, limit, stop strings and references. statistics: see
    `Task.score`. tokens: those committed, of a stop string too; the bits are a committed token.
    """

    settings: Settings
    task: str
    row: int
    method: str
    seed: int
    asked: str
    text: str
    statistics: tuple[float, ...]
    tokens: int
    uplink_bits_per_token: float
    downlink_bits_per_token: float

    @property
    def key(self) -> Key:
        """Which answer it is."""
        return self.task, self.row, self.method


@dataclass(frozen=True, slots=True)
class Expected:
    """What the answers to one question must agree with: a digest of the question, and how many statistics an answer has."""

    asked: str
    statistics: int


def read_records(
    path: Path, settings: Settings, expected: Mapping[tuple[str, int], Expected]
) -> tuple[dict[Key, Record], bool]:
    """The answers in a file, and whether a torn last line was cut off; no file is no answers.

    expected: by task and row, for every question of this run. Raises UsageError for a damaged line, or one of other settings or
    another question; the file is then left as it is.
    """
    data = _content(path)
    size = data.rfind(b"\n") + 1
    found: dict[Key, Record] = {}
    for number, line in enumerate(data[:size].splitlines(), 1):
        where = f"line {number} of {path}"
        record = _decoded(line, where)
        _check(record, settings, expected.get((record.task, record.row)), where)
        if record.key in found:
            raise UsageError(f"{where} repeats an answer: remove the line, or give another --results")
        found[record.key] = record
    if torn := size < len(data):
        _cut(path, data, size)
    return found, torn


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise _unusable(path, error) from error


def _cut(path: Path, data: bytes, size: int) -> None:
    """Cut a torn last line off; text that is none of ours is not touched."""
    rest = data[size:]
    if not _OPENING.startswith(rest[: len(_OPENING)]):
        raise UsageError(f"the last line of {path} is no answer of this benchmark: give another --results")
    try:
        with path.open("r+b") as file:
            file.truncate(size)
    except OSError as error:
        raise _unusable(path, error) from error


def _decoded(line: bytes, where: str) -> Record:
    try:
        return msgspec.json.decode(line, type=Record)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{where} is damaged ({error}): remove the line, or give another --results") from error


def _check(record: Record, settings: Settings, expected: Expected | None, where: str) -> None:
    for field in fields(Settings):
        theirs, ours = getattr(record.settings, field.name), getattr(settings, field.name)
        if theirs != ours:
            what = f"{field.name.replace('_', ' ')} {theirs}, this run has {ours}"
            raise UsageError(f"{where} was written with {what}: use the same settings, or give another --results")
    if expected is not None and expected != Expected(record.asked, len(record.statistics)):
        raise UsageError(f"{where} answers another question of {record.task} than this run asks: give another --results")


def _unusable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be used for the results ({error.strerror}): give another --results")


class RecordFile:
    """A file that finished answers are appended to."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file

    def add(self, record: Record) -> None:
        """Append a line, in one write. Raises UsageError if it cannot be written."""
        try:
            self._file.write(msgspec.json.encode(record) + b"\n")
        except OSError as error:
            raise _unusable(self._path, error) from error


@contextmanager
def appending(path: Path) -> Iterator[RecordFile]:
    """The file, open for more answers. Raises UsageError if it cannot be written."""
    try:
        file = path.open("ab", buffering=0)
    except OSError as error:
        raise _unusable(path, error) from error
    with file:
        yield RecordFile(path, file)

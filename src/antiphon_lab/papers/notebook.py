"""What was measured, kept as soon as it is there (`antiphon_lab.store`): the same command goes on where it stopped."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from antiphon.errors import UsageError
from antiphon_lab.store import Store

Kind = TypeVar("Kind")


class Entry(msgspec.Struct, frozen=True):
    """A value of any kind, and what it depends on."""

    key: str
    value: msgspec.Raw


class Notebook:
    """Values by key, under settings that every one of them depends on: with other settings nothing is found."""

    def __init__(self, file: Store[Entry], settings: Sequence[str]) -> None:
        self._file, self._settings = file, " | ".join(settings)

    def __contains__(self, key: str) -> bool:
        return self._full(key) in self._file.found

    def get(self, key: str, kind: type[Kind]) -> Kind:
        """What is kept under a key. Raises KeyError if nothing is, UsageError if it is damaged."""
        try:
            return msgspec.json.decode(self._file.found[self._full(key)].value, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"what is kept of {key!r} is damaged ({error}): give another --results") from error

    def keep(self, key: str, value: object) -> None:
        """Keep a value. Raises UsageError if it cannot be written."""
        self._file.add(Entry(self._full(key), msgspec.Raw(msgspec.json.encode(value))))

    def _full(self, key: str) -> str:
        return f"{self._settings} | {key}"


@contextmanager
def notebook(path: Path, settings: Sequence[str]) -> Iterator[Notebook]:
    """A notebook in a file. Raises UsageError."""
    with Store(path, Entry).keeping() as file:
        yield Notebook(file, settings)

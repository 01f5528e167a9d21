"""Finished pieces of work in a file of JSON lines, one appended as soon as it is there, so that a run can go on.

A line is found again by its key, which tells everything that it depends on: other lines are left alone, so that one file can
serve several runs. A last line without its end is what a kill leaves; it is cut off, and done again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from antiphon.errors import UsageError


class Keyed(Protocol):
    """What can be kept."""

    @property
    def key(self) -> str:
        """What tells it from others."""
        ...


Kept = TypeVar("Kept", bound=Keyed)


class Store(Generic[Kept]):
    """What is kept in a file, by key; without a file, in memory only."""

    def __init__(self, path: Path | None, kind: type[Kept]) -> None:
        self._path, self._kind = path, kind
        self.found: dict[str, Kept] = {} if path is None else self._read(path)

    @contextmanager
    def keeping(self) -> Iterator["Store[Kept]"]:
        """Open the file, so that it can be added to. Raises UsageError."""
        if self._path is None:
            self._file: Any = None
            yield self
            return
        try:
            file = self._path.open("ab", buffering=0)
        except OSError as error:
            raise _unusable(self._path, error) from error
        with file:
            self._file = file
            yield self

    def add(self, one: Kept) -> None:
        """Keep it, in one write. Raises UsageError if it cannot be written."""
        self.found[one.key] = one
        if self._file is None or self._path is None:
            return
        try:
            self._file.write(msgspec.json.encode(one) + b"\n")
        except OSError as error:
            raise _unusable(self._path, error) from error

    def _read(self, path: Path) -> dict[str, Kept]:
        data = _content(path)
        size = data.rfind(b"\n") + 1
        decoder = msgspec.json.Decoder(self._kind)
        found = {}
        for number, line in enumerate(data[:size].splitlines(), 1):
            try:
                one = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise UsageError(
                    f"line {number} of {path} is damaged ({error}): remove it, or give another --results"
                ) from error
            found[one.key] = one
        if size < len(data):
            _cut(path, data, size)
        return found


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise _unusable(path, error) from error


def _cut(path: Path, data: bytes, size: int) -> None:
    """Cut a torn last line off; text that is no JSON object is not touched."""
    if data[size : size + 1] != b"{":
        raise UsageError(f"the last line of {path} is none of this benchmark: give another --results")
    try:
        with path.open("r+b") as file:
            file.truncate(size)
    except OSError as error:
        raise _unusable(path, error) from error


def _unusable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be used for the results ({error.strerror}): give another --results")

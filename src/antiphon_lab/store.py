"""Finished pieces of work in a file of JSON lines, one appended as soon as it is there, so that a run can go on.

A line is `{"key": ..., "value": ...}`. The key tells everything that the value depends on, so that one file can serve several
runs: what a run does not ask for it leaves alone, and of lines with one key the last counts. A last line without its end is
what a kill leaves; it is cut off, and done again. One run at a time writes into a file.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from antiphon.errors import UsageError

Kind = TypeVar("Kind")

_OPENING = b'{"key":"'
"""How a line begins."""


class Entry(msgspec.Struct, frozen=True):
    """A value of any kind, and what it depends on."""

    key: str
    value: msgspec.Raw


class Store:
    """Values by key, in a file; without a file, in memory only.

    settings: what every value of this run depends on besides its key; with other settings nothing is found. Raises UsageError
    for a file that cannot be read, or that is none of ours; it is then left as it is.
    """

    def __init__(self, path: Path | None, settings: Sequence[str] = ()) -> None:
        self._path, self._settings = path, settings
        self._file: BinaryIO | None = None
        self._found: dict[str, msgspec.Raw] = {}
        self.was_torn = False
        """Whether the last line was cut short, and has been cut off."""
        if path is not None:
            self._read(path)

    def __contains__(self, key: str) -> bool:
        return self._full(key) in self._found

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: str, kind: type[Kind]) -> Kind:
        """What is kept under a key. Raises KeyError if nothing is, UsageError if it is damaged."""
        try:
            return msgspec.json.decode(self._found[self._full(key)], type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"what is kept of {key!r} is damaged ({error}): give another --results") from error

    def keep(self, key: str, value: object) -> None:
        """Keep a value, in one write. Within `adding` alone, if there is a file. Raises UsageError if it cannot be written."""
        entry = Entry(self._full(key), msgspec.Raw(msgspec.json.encode(value)))
        if self._path is not None:
            self._append(self._path, entry)
        self._found[entry.key] = entry.value

    @contextmanager
    def adding(self) -> Iterator["Store"]:
        """Open the file, so that it can be added to, by this run alone. Raises UsageError."""
        if self._path is None:
            yield self
            return
        try:
            file = self._path.open("ab", buffering=0)
        except OSError as error:
            raise _unusable(self._path, error) from error
        with file:
            _lock(file, self._path)
            self._file = file
            try:
                yield self
            finally:
                self._file = None

    def _full(self, key: str) -> str:
        return " | ".join((*self._settings, key))

    def _append(self, path: Path, entry: Entry) -> None:
        if self._file is None:
            raise ValueError("a store is added to within `adding`")
        try:
            self._file.write(msgspec.json.encode(entry) + b"\n")
        except OSError as error:
            raise _unusable(path, error) from error

    def _read(self, path: Path) -> None:
        data = _content(path)
        size = data.rfind(b"\n") + 1
        for number, line in enumerate(data[:size].splitlines(), 1):
            try:
                entry = msgspec.json.decode(line, type=Entry)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise UsageError(
                    f"line {number} of {path} is damaged ({error}): remove it, or give another --results"
                ) from error
            self._found[entry.key] = entry.value
        if size < len(data):
            _cut(path, data, size)
            self.was_torn = True


def _lock(file: BinaryIO, path: Path) -> None:
    """Keep other runs out, where the operating system can; it lets them in again when the file is closed."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageError(f"another run is writing into {path}: wait until it is done, or give another --results") from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise _unusable(path, error) from error


def _cut(path: Path, data: bytes, size: int) -> None:
    """Cut a torn last line off; text that is none of ours is not touched."""
    if not _OPENING.startswith(data[size : size + len(_OPENING)]):
        raise UsageError(f"the last line of {path} is none of this benchmark: give another --results")
    try:
        with path.open("r+b") as file:
            file.truncate(size)
    except OSError as error:
        raise _unusable(path, error) from error


def _unusable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be used for the results ({error.strerror}): give another --results")

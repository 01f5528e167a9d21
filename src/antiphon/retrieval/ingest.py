"""Files into an index: new and changed ones are read, others are not; a file that cannot be read is reported and skipped.

Each file is committed by itself, so an interrupted run goes on where it stopped.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from antiphon.errors import UsageError
from antiphon.retrieval.documents import DocumentError
from antiphon.retrieval.index import Index, Source
from antiphon.retrieval.options import PassageOptions
from antiphon.retrieval.passages import Passage, cut
from antiphon.retrieval.readers import read, readable

_STAYS = "; what was read of it before stays until it is removed"

Progress: TypeAlias = Callable[[int, int, str], None]
"""progress(bytes read, bytes in all, the file's name)."""


@dataclass(slots=True)
class Report:
    """What became of the files, by path. failed: with one sentence each, why."""

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    passages: int = 0


def add(index: Index, paths: Sequence[Path], options: PassageOptions, progress: Progress) -> Report:
    """Put files, and all readable files in folders, into the index; what is there already is read again only if it has changed.

    Raises UsageError if a path does not exist, or the paths hold no readable file.
    """
    files = [file for path in paths for file in _files(path)]
    if not files:
        raise UsageError(f"there is no file to read in {', '.join(map(str, paths))}")
    return _take(index, [(str(file), options) for file in dict.fromkeys(files)], progress)


def update(index: Index, prune: bool, progress: Progress) -> Report:
    """Read changed files again, each cut as it was. Files that are gone are reported, and with `prune` deleted for good."""
    known = index.sources()
    gone = [source.path for source in known if not os.path.lexists(source.path)]
    left = [(source.path, source.options) for source in known if source.path not in set(gone)]
    report = _take(index, left, progress)
    if prune and gone:
        index.delete(gone)
    (report.deleted if prune else report.vanished).extend(gone)
    return report


def remove(index: Index, paths: Sequence[Path]) -> list[str]:
    """Delete files, and all files under folders, from the index for good; returns which. Raises UsageError for unknown ones."""
    known = [source.path for source in index.sources()]
    chosen: dict[str, None] = {}
    for path in paths:
        name = os.path.abspath(path)
        found = [source for source in known if source == name or source.startswith(name.rstrip(os.sep) + os.sep)]
        if not found:
            raise UsageError(f"the library has no {name}: `antiphon library list` shows what it has")
        chosen |= dict.fromkeys(found)
    index.delete(chosen)
    return list(chosen)


def _files(path: Path) -> Iterator[Path]:
    """The file itself, or the readable files of a folder, hidden ones left out."""
    path = Path(os.path.abspath(path.expanduser()))
    if not path.exists():
        raise UsageError(f"there is no {path}")
    if not path.is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        here = (Path(folder, name) for name in sorted(names) if not name.startswith("."))
        yield from (file for file in here if readable(file) and file.is_file())


def _take(index: Index, files: Sequence[tuple[str, PassageOptions]], progress: Progress) -> Report:
    known = {source.path: source for source in index.sources()}
    counter = _Counter(progress, {path: _size(path) for path, _ in files})
    report = Report()
    for path, options in files:
        counter.begin(path)
        try:
            _take_one(index, path, options, known.get(path), report, counter)
        except DocumentError as error:
            report.failed[path] = str(error) + _STAYS * (path in known)
        except OSError as error:
            report.failed[path] = f"it cannot be read ({(error.strerror or str(error)).lower()})" + _STAYS * (path in known)
        counter.end()
    index.erase()
    return report


def _take_one(
    index: Index, path: str, options: PassageOptions, known: Source | None, report: Report, counter: "_Counter"
) -> None:
    found = _look(path, options)
    if known is not None and known.options == options:
        same = (known.size, known.modified_ns) == (found.size, found.modified_ns)
        if not same and (same := known.digest == _digest(path)):
            index.touch(found)
        if same:
            report.unchanged.append(path)
            return
    report.passages += index.put(replace(found, digest=_digest(path)), counter.counted(_passages(path, options)))
    (report.added if known is None else report.updated).append(path)


def _look(path: str, options: PassageOptions) -> Source:
    """The file as it is now, its bytes not yet read."""
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise DocumentError("its name is not UTF-8: rename it") from error
    if not os.path.isfile(path):
        raise DocumentError("it is no regular file")
    seen = os.stat(path)
    return Source(path, seen.st_size, seen.st_mtime_ns, "", options)


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _passages(path: str, options: PassageOptions) -> Iterator[Passage]:
    for document in read(Path(path)):
        yield from cut(document, path, options)


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.isfile(path) else 0


class _Counter:
    """How far a run is, in bytes: a file counts by its passages while it is read, and by its size when it is done."""

    def __init__(self, progress: Progress, sizes: dict[str, int]) -> None:
        self._progress, self._sizes = progress, sizes
        self._total, self._done, self._path = sum(sizes.values()), 0, ""

    def begin(self, path: str) -> None:
        self._path = path
        self._progress(self._done, self._total, path)

    def counted(self, passages: Iterator[Passage]) -> Iterator[Passage]:
        seen = 0
        for passage in passages:
            yield passage
            seen += len(passage.text)
            self._progress(self._done + min(seen, self._sizes[self._path]), self._total, self._path)

    def end(self) -> None:
        self._done += self._sizes[self._path]
        self._progress(self._done, self._total, self._path)

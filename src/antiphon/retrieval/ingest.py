"""Files into an index: new and changed ones are read, others are not; a file that cannot be read is reported and skipped.

Each file is committed by itself, so an interrupted run goes on where it stopped. A file that became empty or cannot be read any
more loses what was read of it before: gone is gone.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from antiphon import shown
from antiphon.errors import UsageError
from antiphon.retrieval.documents import DocumentError
from antiphon.retrieval.finding import Wanted, find
from antiphon.retrieval.index import Index, Source
from antiphon.retrieval.options import PassageOptions, Reading
from antiphon.retrieval.passages import Passage, cut
from antiphon.retrieval.readers.apart import Reader

_GONE = "; what was read of it before is deleted"

Progress: TypeAlias = Callable[[int, int, str], None]
"""progress(bytes read, bytes in all, the file's name)."""


@dataclass(slots=True)
class Report:
    """What became of the files, by path. failed: with one sentence each, why. told: what is known of them beside their text.

    renamed: new names, each with the one before. left_out: what of the folders was not looked at, and why; kinds: how many
    files of which endings there is no reader for.
    """

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    told: dict[str, list[str]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    passages: int = 0


@dataclass(frozen=True, slots=True)
class _Task:
    """A file to look at, and how it is read and cut. follow: also if its path leads elsewhere than when it was read before."""

    path: str
    options: PassageOptions
    reading: Reading
    follow: bool = True


def add(
    index: Index,
    paths: Sequence[Path],
    options: PassageOptions,
    progress: Progress,
    reading: Reading = Reading(),  # noqa: B008 - it cannot be changed
    wanted: Wanted = Wanted(),  # noqa: B008
) -> Report:
    """Put files, and all readable files in folders, into the index; what is there already is read again only if it has changed.

    Raises UsageError if a path does not exist, or the paths hold no readable file.
    """
    seen = find(paths, wanted)
    if not seen.files:
        raise UsageError(f"there is no file to read in {', '.join(map(str, paths))}")
    report = _take(index, [_Task(path, options, reading) for path in seen.files], progress)
    report.left_out, report.kinds = seen.left_out, seen.kinds()
    return report


def update(index: Index, prune: bool, progress: Progress, follow_links: bool = False) -> Report:
    """Read changed files again, each as it was. Files that are gone are reported, and with `prune` deleted for good.

    A file in whose place a link stands now, or whose folder is one now, is as good as gone, except with `follow_links`.
    """
    known = index.sources()
    gone = [source.path for source in known if not os.path.lexists(source.path)]
    left = [
        _Task(source.path, source.options, source.reading, follow_links) for source in known if source.path not in set(gone)
    ]
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
        found = found or [source for source in known if shown.line(source) in (str(path), name)]  # as a list shows it
        if not found:
            raise UsageError(f"the library has no {name}: `antiphon library list` shows what it has")
        chosen |= dict.fromkeys(found)
    index.delete(chosen)
    return list(chosen)


def _take(index: Index, tasks: Sequence[_Task], progress: Progress) -> Report:
    known = {source.path: source for source in index.sources()}
    counter = _Counter(progress, {task.path: _size(task.path) for task in tasks})
    report = Report()
    # One process of readers for the whole run: to start one takes longer than most files do.
    with Reader() as reader:
        for task in tasks:
            counter.begin(task.path)
            try:
                _take_one(index, task, known, report, counter.counted, reader)
            except DocumentError as error:
                _fail(index, task.path, known, report, str(error))
            except OSError as error:
                _fail(index, task.path, known, report, f"it cannot be read ({(error.strerror or str(error)).lower()})")
            counter.end()
    # Once, at the end: it writes the whole index anew.
    index.erase()
    return report


def _fail(index: Index, path: str, known: dict[str, Source], report: Report, sentence: str) -> None:
    report.failed[path] = sentence + _GONE * (path in known)
    if path in known:
        index.delete([path])


def _take_one(
    index: Index,
    task: _Task,
    known: dict[str, Source],
    report: Report,
    counted: Callable[[Iterator[Passage]], Iterator[Passage]],
    reader: Reader,
) -> None:
    found, before = _look(task), known.get(task.path)
    if before is not None and not task.follow:
        _require_same_place(found, before)
    if before is not None and _as_before(found, before):
        same = (before.size, before.modified_ns) == (found.size, found.modified_ns)
        # A touched file is read once for its digest, and not cut, counted and embedded again.
        if not same and (same := before.digest == _digest(task.path)):
            index.touch(found)
        if same:
            report.unchanged.append(task.path)
            return
    found = replace(found, digest=_digest(task.path))
    told: list[str] = []
    # A generator: what was there before stays until the last passage of the new reading is in, and all of it if that fails
    # midway.
    count = index.put(found, counted(_passages(task, reader, told)))
    if not count:
        index.delete([task.path])
        raise DocumentError("there is no text in it")
    report.passages += count
    if told:
        report.told[task.path] = told
    (report.added if before is None else report.updated).append(task.path)
    # Only now: if the new name could not be read, the old one must not be lost for it.
    if before is None and (old := _renamed(found, known)):
        index.delete([old])
        report.renamed[task.path] = old
        del known[old]


def _renamed(found: Source, known: dict[str, Source]) -> str | None:
    """The name that a new file had before: of a known one of the same bytes that is gone."""
    same = (path for path, source in known.items() if source.digest == found.digest and path != found.path)
    return next((path for path in same if not os.path.lexists(path)), None)


def _look(task: _Task) -> Source:
    """The file as it is now, its bytes not yet read."""
    path = task.path
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise DocumentError("its name is not UTF-8: rename it") from error
    if not os.path.isfile(path):
        raise DocumentError("it is no regular file")
    seen = os.stat(path)
    return Source(path, seen.st_size, seen.st_mtime_ns, "", task.options, reading=task.reading, real=_real(path))


def _real(path: str) -> str:
    """Where it leads; what of that is not UTF-8 is written out."""
    return os.fsencode(os.path.realpath(path)).decode("utf-8", "backslashreplace")


def _require_same_place(found: Source, before: Source) -> None:
    """Raises DocumentError for a link that has come into the place of a file."""
    folder, name = os.path.split(found.path)
    if found.real not in (found.path, before.real or os.path.join(_real(folder), name)):
        raise DocumentError(f"a link leads from it to {found.real} now: --follow-links reads that")


def _as_before(found: Source, before: Source) -> bool:
    """Whether it would be read and cut in the same way."""
    return (before.options, before.reading) == (found.options, found.reading) and before.real in ("", found.real)


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _passages(task: _Task, reader: Reader, told: list[str]) -> Iterator[Passage]:
    for document in reader.read(Path(task.path), task.reading):
        told += document.told
        yield from cut(document, task.path, task.options)


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

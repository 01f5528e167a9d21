"""Which files of a folder are read: those that a reader knows, without what is hidden, and no link that leads out of it."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from antiphon.errors import UsageError
from antiphon.retrieval.readers import readable

_QUIET_FOLDERS = frozenset(("node_modules", "__pycache__"))
_QUIET_FILES = ("~$", ".~lock.")
"""Word's and LibreOffice's marks that a file is open."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """exclude: patterns of names, or of paths within a folder, that are left out. follow_links: also where they lead out."""

    exclude: tuple[str, ...] = ()
    follow_links: bool = False


@dataclass(slots=True)
class Seen:
    """Files to read, and what of the folders is left out: by path, with the reason, and by the ending of names."""

    files: dict[str, None] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def kinds(self) -> dict[str, int]:
        """How many files are left out for want of a reader, by ending, the most frequent first."""
        endings = (os.path.splitext(path)[1].lower() or "no ending" for path, why in self.left_out.items() if why == NO_READER)
        return dict(Counter(endings).most_common())


NO_READER, EXCLUDED = "there is no reader for it", "it is excluded"
_OUT = "it is a link that leads out of the folder: --follow-links takes such files too"
_WITHIN = "it is a link to a file that is read itself"


def find(paths: Sequence[Path], wanted: Wanted) -> Seen:
    """Files named one by one, and those of folders. Raises UsageError if a path does not exist."""
    seen = Seen()
    for given in paths:
        path = Path(os.path.abspath(given.expanduser()))
        if not path.exists():
            raise UsageError(f"there is no {path}")
        if path.is_dir():
            _walk(path, wanted, seen)
        else:
            seen.files[str(path)] = None
    return seen


def _walk(root: Path, wanted: Wanted, seen: Seen) -> None:
    visited = {os.path.realpath(root)}
    for folder, folders, names in os.walk(root, followlinks=wanted.follow_links):
        folders[:] = [name for name in sorted(folders) if _enters(root, Path(folder, name), wanted, seen, visited)]
        for name in sorted(names):
            if not name.startswith((".", *_QUIET_FILES)):
                path = Path(folder, name)
                if (reason := _reason(root, path, wanted)) is None:
                    seen.files[str(path)] = None
                else:
                    seen.left_out[str(path)] = reason


def _enters(root: Path, folder: Path, wanted: Wanted, seen: Seen, visited: set[str]) -> bool:
    if folder.name.startswith(".") or folder.name in _QUIET_FOLDERS:
        return False
    if _excluded(root, folder, wanted):
        seen.left_out[str(folder)] = EXCLUDED
        return False
    if folder.is_symlink() and not wanted.follow_links:
        seen.left_out[str(folder)] = _WITHIN if _is_within(folder, root) else _OUT
        return False
    # With links followed a folder can be reached twice, or contain itself.
    real = os.path.realpath(folder)
    if real in visited:  # a link to a folder above it
        return False
    visited.add(real)
    return True


def _reason(root: Path, path: Path, wanted: Wanted) -> str | None:
    """Why a file is left out, if it is."""
    if _excluded(root, path, wanted):
        return EXCLUDED
    if not readable(path):
        return NO_READER
    if path.is_symlink():
        if _is_within(path, root) and os.path.exists(path):
            return _WITHIN
        if not wanted.follow_links:
            return _OUT if os.path.exists(path) else "it is a link that leads nowhere"
    return None


def _is_within(path: Path, root: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _excluded(root: Path, path: Path, wanted: Wanted) -> bool:
    within = path.relative_to(root).as_posix()
    return any(fnmatch(path.name, pattern) or fnmatch(within, pattern.rstrip("/")) for pattern in wanted.exclude)

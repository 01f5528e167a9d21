"""The cache folder: assembled models and packed vocabularies, each replaced whole or not at all."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from antiphon.errors import CacheError


def cache_folder() -> Path:
    """$ANTIPHON_CACHE, else $XDG_CACHE_HOME/antiphon, else ~/.cache/antiphon; made if missing.

    Raises CacheError if it cannot be made or written.
    """
    folder = _named_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _unwritable(folder, "permission denied")
    return folder


def read_cached(name: str) -> bytes | None:
    """What `write_cached` stored under this file name, or None. Raises CacheError."""
    try:
        return (cache_folder() / name).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CacheError(f"the cache file {cache_folder() / name} cannot be read ({_reason(error)}): delete it") from error


def write_cached(name: str, data: bytes) -> None:
    """Store `data` under this file name. Raises CacheError."""
    with replacing(cache_folder() / name) as temporary:
        temporary.write_bytes(data)


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path beside `target` to write to; it becomes `target` at the end of the block, unless the block failed.

    Raises CacheError for every OSError, of the block too.
    """
    # A name of its own: two processes may make the same file at once, and the last one wins whole. In the same folder, for a
    # rename is atomic only within a file system.
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        yield temporary
        temporary.replace(target)
    except OSError as error:
        raise _unwritable(target.parent, error) from error
    finally:
        with suppress(OSError):  # what made the block fail may make this fail too, and says less
            temporary.unlink(missing_ok=True)


def _named_folder() -> Path:
    own, shared = os.environ.get("ANTIPHON_CACHE"), os.environ.get("XDG_CACHE_HOME")
    folder = Path(own) if own else Path(shared or "~/.cache") / "antiphon"
    try:
        return folder.expanduser()
    except RuntimeError as error:  # a user without a home folder, as in some containers
        raise _unwritable(folder, "there is no home folder") from error


def _unwritable(folder: Path, error: OSError | str) -> CacheError:
    return CacheError(
        f"the cache folder {folder} cannot be written ({_reason(error)}): set ANTIPHON_CACHE to a folder that can"
    )


def _reason(error: OSError | str) -> str:
    return error if isinstance(error, str) else (error.strerror or str(error)).lower()

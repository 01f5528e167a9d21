"""The cache folder: vocabularies that were read or fetched once, and assembled model files.

`$ANTIPHON_CACHE`, else `$XDG_CACHE_HOME/antiphon`, else `~/.cache/antiphon`. Everything in it can be deleted at any time.
"""

import os
import tempfile
from pathlib import Path

from antiphon.errors import CacheError


def cache_folder() -> Path:
    """The folder, created if need be. Raises CacheError if it cannot be written."""
    folder = _named()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error
    if not os.access(folder, os.W_OK):
        raise CacheError(f"the cache folder {folder} cannot be written: set ANTIPHON_CACHE to one that can")
    return folder


def read_cached(name: str) -> bytes | None:
    """What was cached under this name, or None."""
    try:
        return (cache_folder() / name).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unwritable(cache_folder(), error) from error


def write_cached(name: str, data: bytes) -> None:
    """Cache `data` under a name, whole or not at all."""
    folder = cache_folder()
    try:
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(data)
        os.replace(file.name, folder / name)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _named() -> Path:
    if named := os.environ.get("ANTIPHON_CACHE"):
        return Path(named)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "antiphon"
    return Path.home() / ".cache" / "antiphon"


def _unwritable(folder: Path, error: OSError) -> CacheError:
    why = error.strerror or str(error)
    return CacheError(f"the cache folder {folder} cannot be used ({why}): set ANTIPHON_CACHE to one that can be written")

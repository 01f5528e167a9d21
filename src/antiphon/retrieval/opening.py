"""A library by its name, with the key that it may need."""

import os
from collections.abc import Mapping
from pathlib import Path

from antiphon.errors import UsageError
from antiphon.retrieval.embedding import Embedder, OnnxEmbedder
from antiphon.retrieval.index import Index
from antiphon.retrieval.options import SearchOptions
from antiphon.retrieval.sqlite import SqliteIndex

KEY_VARIABLE = "ANTIPHON_LIBRARY_KEY"


def open_library(
    name: str,
    *,
    key_file: Path | None = None,
    embedder: Path | None = None,
    threads: int = 0,
    options: SearchOptions | None = None,
    create: bool = False,
) -> Index:
    """The library of this name, for one `with` block. name: a file.

    key_file: holds the key of an encrypted one, else $ANTIPHON_LIBRARY_KEY does. embedder: a folder as of `OnnxEmbedder`;
    threads: of its passes. create: make a missing one. Raises UsageError.
    """
    key = library_key(key_file, os.environ)
    model: Embedder | None = None if embedder is None else OnnxEmbedder(embedder.expanduser(), threads)
    return SqliteIndex(Path(os.path.expanduser(name)), key=key, embedder=model, options=options, create=create)


def library_key(file: Path | None, environment: Mapping[str, str]) -> str | None:
    """The key in a file, without the newline at its end, else in the environment; None without either. Raises UsageError."""
    if file is None:
        return environment.get(KEY_VARIABLE) or None
    try:
        key = file.expanduser().read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)).lower() if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"the key file {file} cannot be read ({reason})") from error
    if not key or "\x00" in key:
        raise UsageError(f"the key file {file} holds no key: a line of text is needed")
    return key

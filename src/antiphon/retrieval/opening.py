"""A library by its name, with the key that it may need."""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

from antiphon.errors import UsageError
from antiphon.retrieval.embedding import Embedder, OnnxEmbedder
from antiphon.retrieval.index import Index, Renewing
from antiphon.retrieval.options import SearchOptions
from antiphon.retrieval.sqlite.index import SqliteIndex

AnyLibrary: TypeAlias = Index | str | os.PathLike[str]
"""An open index, or where one lies: a file, or `postgresql://USER@HOST/DATABASE`."""

KEY_VARIABLE = "ANTIPHON_LIBRARY_KEY"
_SERVERS = ("postgresql://", "postgres://")


def open_library(
    name: str,
    *,
    key_file: Path | None = None,
    embedder: Path | None = None,
    threads: int = 0,
    options: SearchOptions | None = None,
    create: bool = False,
    renew: Renewing | None = None,
) -> Index:
    """The library of this name, for one `with` block. name: a file, or `postgresql://user@host/database`.

    key_file: holds the key of an encrypted file, else $ANTIPHON_LIBRARY_KEY does. embedder: a folder as of `OnnxEmbedder`;
    threads: of its passes. create: make a missing one. renew: where the library is of before, index it anew, telling how far
    it is; `create` does so too. Raises UsageError.
    """
    if name.startswith(_SERVERS) and key_file is not None:
        raise UsageError("a key is for a file: encrypt the disk of a PostgreSQL server, and leave --key-file away")
    key = library_key(key_file, os.environ)
    model: Embedder | None = None if embedder is None else OnnxEmbedder(embedder.expanduser(), threads)
    if name.startswith(_SERVERS):
        return _on_server(name, model, options, create, renew)
    return SqliteIndex(Path(os.path.expanduser(name)), key=key, embedder=model, options=options, create=create, renew=renew)


def library_of(given: AnyLibrary, opened: ExitStack) -> Index:
    """The index that is meant; one that is opened for it is closed with `opened`. Raises UsageError."""
    return opened.enter_context(open_library(os.fspath(given))) if isinstance(given, str | os.PathLike) else given


def _on_server(
    url: str, embedder: Embedder | None, options: SearchOptions | None, create: bool, renew: Renewing | None
) -> Index:
    try:
        from antiphon.retrieval.postgres.index import PostgresIndex
    except ImportError as error:
        raise UsageError("a library in PostgreSQL needs psycopg: run pip install 'antiphon[postgres]'") from error
    return PostgresIndex(url, embedder=embedder, options=options, create=create, renew=renew)


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

"""One SQLite file with one owner: opening, encryption, transactions, and deletion that leaves nothing behind.

With a key the file is encrypted by SQLCipher; without one the interpreter's own SQLite is used. Errors of either become
UsageError.
"""

import importlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import quote

from antiphon.errors import UsageError

_APPLICATION = 0x416E7470  # "Antp", in the header of the file
_WAIT_S = 10.0
_CACHE_KIB = 2**16
_HEADER = b"SQLite format 3\x00"
_CIPHERS = ("sqlcipher3.dbapi2", "pysqlcipher3.dbapi2")


class Database:
    """An open file. Close it, or use it in a `with` block of its owner; one thread at a time."""

    def __init__(self, path: Path, schema: str, version: int, key: str | None = None, create: bool = False) -> None:
        """Open the file, or make it if `create`. schema: the statements of an empty one, at this version. Raises UsageError.

        found: the version that the file has, from 1 on; an owner of an older one brings it up.
        """
        self._path, self._key = path, key
        self.found = version
        self._driver = _driver(path, key)
        self._prepare(create)
        with self._translated():
            self._connection = self._connect()
        try:
            with self._translated():
                self._set_up(schema, version, create)
        except UsageError:
            self._connection.close()
            raise

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Every row of a query."""
        with self._translated():
            return list(self._connection.execute(statement, parameters))

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[int, int]:
        """Execute one statement; the row id that it inserted, and the rows that it changed."""
        with self._translated():
            cursor = self._connection.execute(statement, parameters)
            return cursor.lastrowid or 0, cursor.rowcount

    def run_many(self, statement: str, parameters: Iterable[Sequence[Any]]) -> int:
        """Execute a statement for each of the parameters; how many rows were changed."""
        with self._translated():
            return max(int(self._connection.executemany(statement, parameters).rowcount), 0)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of the block is written, or nothing of it."""
        # The lock at once: a transaction that begins by reading and writes later can be refused in the middle.
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self.run("ROLLBACK")
            raise

    @property
    def version(self) -> tuple[int, int]:
        """Differs after every change, by this connection or another: what was read before may be kept while it is equal."""
        return self.rows("PRAGMA data_version")[0][0], self._connection.total_changes

    @property
    def bytes(self) -> int:
        """The size of the file, with what was not moved into it yet."""
        return sum(file.stat().st_size for file in (self._path, self._log) if file.exists())

    def rewrite(self) -> None:
        """Write the file anew from what it holds, and empty its log: no deleted byte is left. UsageError if it is in use."""
        # secure_delete is not enough: of 9,000 deleted texts SQLite 3.40 left 18 behind, where rows had moved between pages.
        self.run("VACUUM")
        ((busy, *_),) = self.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        if busy:
            raise UsageError(
                f"another program reads {self._path}, and its log keeps what was deleted: try again when it has ended"
            )

    def close(self) -> None:
        """Close the file; its log is moved into it unless others have it open."""
        self._connection.close()

    @property
    def _log(self) -> Path:
        return self._path.with_name(self._path.name + "-wal")

    def _prepare(self, create: bool) -> None:
        """Refuse what is no file, and make a missing one that only its owner may read."""
        try:
            if self._path.is_dir():
                raise UsageError(f"{self._path} is a folder: --library names one file")
            if create and not self._path.exists():
                # Made by us and not by SQLite, whose file others could read; O_EXCL, so that what is there is never emptied.
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            size = self._path.stat().st_size
        except FileNotFoundError as error:
            made = "make its folder first" if create else "`antiphon library add` makes one"
            raise UsageError(f"there is no library {self._path}: {made}") from error
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise UsageError(f"the library {self._path} cannot be used ({reason.lower()}): name another file") from error
        if size == 0 and not create:
            raise UsageError(f"{self._path} is empty and no library: `antiphon library add` makes one")

    def _connect(self) -> Any:
        where = f"file:{quote(str(self._path.absolute()))}"
        if not self._log.exists() and not (os.access(self._path, os.W_OK) and os.access(self._path.absolute().parent, os.W_OK)):
            where += "?immutable=1"  # on a read-only disk there is no place for a log, and nobody changes the file
        connection = self._driver.connect(where, uri=True, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
        if self._key is not None:
            # A PRAGMA takes no parameters, so the quotes are doubled by hand. Before anything is read: the header is encrypted
            # too.
            connection.execute("PRAGMA key = '" + self._key.replace("'", "''") + "'")
        return connection

    def _set_up(self, schema: str, version: int, create: bool) -> None:
        empty = self._is_empty()
        for setting in ("secure_delete = ON", "temp_store = MEMORY", "synchronous = NORMAL", f"cache_size = -{_CACHE_KIB}"):
            self._connection.execute(f"PRAGMA {setting}")
        if create and empty:
            # Searches go on while a file is added. Only here: the mode stays with the file.
            self._connection.execute("PRAGMA journal_mode = WAL")
            with self.transaction():
                self._fill(schema, version)
        self._require(version)

    def _fill(self, schema: str, version: int) -> None:
        if self._is_empty():  # else another program was faster
            for statement in schema.split(";"):
                self.run(statement)
            self.run(f"PRAGMA application_id = {_APPLICATION}")
            self.run(f"PRAGMA user_version = {version}")

    def _is_empty(self) -> bool:
        return self.rows("SELECT count(*) FROM sqlite_master") == [(0,)]

    def _require(self, version: int) -> None:
        ((application,),), ((found,),) = self.rows("PRAGMA application_id"), self.rows("PRAGMA user_version")
        if application != _APPLICATION:
            raise UsageError(f"{self._path} is a database, but no library of Antiphon: name another file")
        self.found = found
        if not 1 <= found <= version:
            raise UsageError(f"{self._path} is of version {found} and this program reads {version}: make the library anew")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except self._driver.ProgrammingError:
            raise  # a fault of this program
        except self._driver.DatabaseError as error:
            raise UsageError(f"{self._path} {self._sentence(str(error))}") from error

    def _sentence(self, error: str) -> str:
        if "not a database" in error:
            return self._not_a_database()
        if "locked" in error or "busy" in error:
            return "is in use by another program: try again when it has ended"
        if "readonly" in error or "unable to open" in error:
            return "cannot be written: the file and its folder must be writable"
        if "full" in error:
            return "cannot grow: the disk is full"
        if "malformed" in error:
            return "is damaged: delete it and make it anew with `antiphon library add`"
        return f"cannot be used ({error}): name another file, or make it anew"

    def _not_a_database(self) -> str:
        with self._path.open("rb") as file:
            plain = file.read(len(_HEADER)) == _HEADER
        if plain and self._key is not None:
            return "is not encrypted: leave the key away, or make a new library"
        if self._key is not None:
            return "does not open with this key, or is no library: give the key that it was made with"
        return "is encrypted, or is no library: give its key in ANTIPHON_LIBRARY_KEY or by --key-file"


def _driver(path: Path, key: str | None) -> ModuleType:
    if key is None:
        return sqlite3
    for name in _CIPHERS:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise UsageError(f"a key was given for {path}, but encryption is not installed: run pip install 'antiphon[encrypted]'")

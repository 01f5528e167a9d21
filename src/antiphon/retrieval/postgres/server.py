"""A connection to a PostgreSQL server: opening, opening again after a loss, transactions, and errors as UsageError.

The password is never part of a name or of a sentence.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from antiphon.errors import UsageError
from antiphon.retrieval.documents import first_line

_WAIT_S = 10.0
_DEFAULTS = {
    "application_name": "antiphon",
    "client_encoding": "UTF8",
    "connect_timeout": 10,
    "keepalives_idle": 10,  # a server that fell silent is noticed after 25 s, not after two hours
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
_WRITE, _READ = "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class ServerLostError(UsageError):
    """The connection broke; the next call makes a new one."""


class Server:
    """One connection, made when it is needed. Statements are committed one by one outside of `reading` and `writing`."""

    def __init__(self, url: str) -> None:
        """url: `postgresql://user@host/database`, as libpq understands it. Raises UsageError if it does not."""
        self._settings = _settings(url)
        self.name = _name(self._settings)
        self._connection: psycopg.Connection[Any] | None = None
        self._notices: list[str] = []

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Every row of a statement."""
        with self._translated():
            return self._open().execute(statement, parameters, binary=True).fetchall()

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Execute a statement; how many rows it changed."""
        with self._translated():
            return self._open().execute(statement, parameters or None).rowcount

    def run_many(self, statement: str, parameters: Iterable[Sequence[Any]]) -> int:
        """Execute a statement for each of the parameters; how many rows were changed."""
        with self._translated(), self._open().cursor() as cursor:
            cursor.executemany(statement, parameters)
            return max(cursor.rowcount, 0)

    def copy(self, table: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write rows into a table, whose columns have these types."""
        statement = f"COPY {table} FROM STDIN (FORMAT binary)"
        with self._translated(), self._open().cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """All statements of the block see the same state."""
        with self._transaction(_READ):
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All of the block is written, or nothing of it."""
        with self._transaction(_WRITE):
            yield

    def vacuum(self, table: str, full: bool) -> None:
        """Take deleted rows out of a table; `full` writes it anew and empties its old file. UsageError where it is refused."""
        self._notices.clear()
        self.run(f"SET lock_timeout = {_wait_ms()}")
        self.run(f"VACUUM {'(FULL) ' if full else ''}{table}")
        self.run("RESET lock_timeout")
        if self._notices:
            raise UsageError(f"{self.name} keeps what was deleted ({self._notices[0]}): let its owner run this command")

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self.run(f"{begin}; SET LOCAL lock_timeout = {_wait_ms()}")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            if self._connection is not None and not self._connection.closed:
                with suppress(psycopg.OperationalError):  # lost now: the server rolls back, and the first error is said
                    self._connection.rollback()
            raise

    def _open(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> psycopg.Connection[Any]:
        try:
            # poolers that hand a connection on with each transaction lose prepared statements: prepare none
            connection = psycopg.connect(**self._settings, autocommit=True, prepare_threshold=None)
        except psycopg.OperationalError as error:
            raise UsageError(self._refusal(str(error))) from error
        if (encoding := connection.info.parameter_status("server_encoding")) != "UTF8":
            connection.close()
            raise UsageError(f"{self.name} keeps text as {encoding}: make a database with ENCODING 'UTF8'")
        connection.add_notice_handler(self._notice)
        return connection

    def _notice(self, notice: errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self._notices.append(notice.message_primary or "")

    def _refusal(self, error: str) -> str:
        reason = error.rpartition("failed: ")[2].removeprefix("FATAL:").strip().partition("\n")[0]
        if "no password supplied" in error:
            return f"{self.name} asks for a password: give it in PGPASSWORD or in ~/.pgpass"
        if "password authentication failed" in error:
            return f"{self.name} does not take this password: PGPASSWORD, ~/.pgpass or the library's name has another one"
        if "does not exist" in error:
            return f"{self.name} cannot be used ({reason}): make it on the server, or name another"
        if "FATAL" in error:
            return f"{self.name} lets nobody in ({reason})"
        return f"{self.name} cannot be reached ({reason}): is the server running, and the host right?"

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (errors.InsufficientPrivilege, errors.UndefinedTable, errors.InvalidSchemaName) as error:
            raise UsageError(f"{self.name} {self._sentence(error)}") from error
        except psycopg.ProgrammingError:
            raise  # a fault of this program
        except psycopg.Error as error:
            if self._connection is not None and self._connection.closed:
                raise ServerLostError(f"{self.name} went away ({first_line(error)}): try again") from error
            raise UsageError(f"{self.name} {self._sentence(error)}") from error

    def _sentence(self, error: psycopg.Error) -> str:
        reason = first_line(error)
        match error:
            case errors.InsufficientPrivilege():
                return f"does not allow this ({reason}): ask its owner for the right"
            case errors.UndefinedTable() | errors.InvalidSchemaName():
                return "has lost its tables: make the library anew with `antiphon library add`"
            case errors.LockNotAvailable() | errors.DeadlockDetected() | errors.SerializationFailure():
                return "is in use by another program: try again when it has ended"
            case errors.ReadOnlySqlTransaction():
                return "cannot be written: name the server that it is a copy of"
            case errors.DiskFull():
                return "cannot grow: the server's disk is full"
            case _:
                return f"cannot be used ({reason})"


def _wait_ms() -> int:
    return round(1000 * _WAIT_S)


def _settings(url: str) -> dict[str, Any]:
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        given = {"port": "none"}  # its own message shows parts of the password
    odd = any("@" in str(given.get(name, "")) for name in ("host", "port", "dbname"))
    if odd or not all(port.isdigit() for port in str(given.get("port", "0")).split(",")):
        raise UsageError(
            "the library's name is no address of a PostgreSQL database, as postgresql://user@host:5432/database is; "
            "in a password / : @ % are written %2F %3A %40 %25"
        )
    return _DEFAULTS | given


def _name(settings: dict[str, Any]) -> str:
    user = f"{settings['user']}@" if "user" in settings else ""
    port = f":{settings['port']}" if "port" in settings else ""
    return f"postgresql://{user}{settings.get('host', '')}{port}/{settings.get('dbname', '')}"

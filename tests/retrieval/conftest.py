"""One PostgreSQL server for all tests here that need one, and an empty database for each."""

from collections.abc import Iterator
from functools import partial

import pytest

from retrieval.contract import Opener
from retrieval.postgres.server import Server, running


@pytest.fixture(scope="session")
def running_server() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'antiphon[postgres]'")
    with running() as server:
        yield server


@pytest.fixture
def server(running_server: Server) -> Iterator[Server]:
    yield running_server
    running_server.clean()


@pytest.fixture
def database(server: Server) -> str:
    return server.database()


@pytest.fixture
def library(server: Server, database: str) -> Opener:
    from antiphon.retrieval.postgres.index import PostgresIndex

    return partial(PostgresIndex, server.url(database))

"""The tables of a library in a PostgreSQL database: making them, checking what is there, and taking out what was deleted."""

from antiphon.errors import UsageError
from antiphon.retrieval import postings
from antiphon.retrieval.embedding import Embedder
from antiphon.retrieval.postgres.server import Server

VERSION = 2
_SCHEMA = """
CREATE SCHEMA IF NOT EXISTS antiphon;
CREATE TABLE antiphon.library (version integer NOT NULL, scoring text NOT NULL, embedder text NOT NULL DEFAULT '',
    last integer NOT NULL DEFAULT 0, passages bigint NOT NULL DEFAULT 0, words bigint NOT NULL DEFAULT 0,
    vectors bigint NOT NULL DEFAULT 0, deleted xid8);
CREATE TABLE antiphon.sources (id integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY, path text COLLATE "C" NOT NULL,
    size bigint NOT NULL, modified_ns bigint NOT NULL, digest text NOT NULL, words integer NOT NULL, overlap integer NOT NULL,
    passages integer NOT NULL DEFAULT 0, all_words bigint NOT NULL DEFAULT 0, counted integer NOT NULL DEFAULT 0,
    encoding text NOT NULL DEFAULT '', text_field text NOT NULL DEFAULT 'text', led_to text NOT NULL DEFAULT '');
CREATE INDEX sources_by_path ON antiphon.sources USING hash (path);
CREATE TABLE antiphon.passages (id integer PRIMARY KEY, source integer NOT NULL, title text NOT NULL, text text NOT NULL,
    unit text NOT NULL, first integer NOT NULL, last integer NOT NULL, key text NOT NULL, digest bytea NOT NULL DEFAULT '',
    counted boolean NOT NULL DEFAULT false);
CREATE INDEX passages_by_digest ON antiphon.passages (digest);
CREATE INDEX passages_by_source ON antiphon.passages (source);
CREATE TABLE antiphon.postings (term text COLLATE "C" NOT NULL, source integer NOT NULL, entries bytea NOT NULL);
CREATE INDEX postings_by_term ON antiphon.postings (term);
CREATE INDEX postings_by_source ON antiphon.postings (source);
ALTER TABLE antiphon.postings ALTER entries SET STORAGE EXTERNAL
"""
_FROM_1 = """
ALTER TABLE antiphon.sources ADD COLUMN counted integer NOT NULL DEFAULT 0, ADD COLUMN encoding text NOT NULL DEFAULT '',
    ADD COLUMN text_field text NOT NULL DEFAULT 'text', ADD COLUMN led_to text NOT NULL DEFAULT '';
ALTER TABLE antiphon.passages ADD COLUMN digest bytea NOT NULL DEFAULT '', ADD COLUMN counted boolean NOT NULL DEFAULT false;
CREATE INDEX passages_by_digest ON antiphon.passages (digest)
"""
_FORGET = """
DELETE FROM antiphon.postings;
UPDATE antiphon.sources SET counted = 0, all_words = 0;
UPDATE antiphon.passages SET counted = false WHERE counted;
UPDATE antiphon.library SET passages = 0, words = 0, deleted = pg_current_xact_id()
"""
_OF_TEXT = {"sources": ("path", "led_to"), "passages": ("title", "text", "key"), "postings": ("term", "entries")}
_ONE_MAKER = 0x416E7470  # "Antp", the key of an advisory lock
_WIDEST_GRAPH = 4000
_TENTHS = 200
_OLD_READERS = """WITH others (oldest) AS (
        SELECT backend_xmin FROM pg_stat_activity WHERE pid <> pg_backend_pid()
            AND (backend_type = 'walsender' OR backend_type = 'client backend' AND datname = current_database())
        UNION ALL SELECT xmin FROM pg_replication_slots
        UNION ALL SELECT transaction FROM pg_prepared_xacts WHERE database = current_database())
    SELECT 1 FROM others WHERE age(oldest) >= age(%s::xid) LIMIT 1"""
_DELETION = "SELECT deleted::text, xid(deleted)::text FROM antiphon.library WHERE deleted IS NOT NULL"


def prepare(server: Server, create: bool) -> None:
    """Make the tables of an empty database if `create`, and require that they are as this program has them; UsageError."""
    if create and not _has(server, "library"):
        with server.writing():
            # There is no row to lock before there are tables.
            server.rows("SELECT pg_advisory_xact_lock(%s)", (_ONE_MAKER,))
            if not _has(server, "library"):  # else another program was faster
                _make(server)
    if not _has(server, "library"):
        raise UsageError(f"there is no library in {server.name}: `antiphon library add` makes one")
    ((found,),) = server.rows("SELECT version FROM antiphon.library")
    if not 1 <= found <= VERSION:
        raise UsageError(
            f"the library in {server.name} is of version {found} and this program reads {VERSION}: "
            "drop its schema antiphon, and add the documents again"
        )


def is_of_today(server: Server) -> bool:
    """Whether its words are counted as this program counts them."""
    return server.rows("SELECT version, scoring FROM antiphon.library") == [(VERSION, postings.identity())]


def forget_words(server: Server) -> None:
    """Make the tables those of today, with no words in them yet. In a transaction that has the lock."""
    ((found,),) = server.rows("SELECT version FROM antiphon.library")
    for statement in (_FROM_1 * (found == 1) + ";" * (found == 1) + _FORGET).split(";"):
        server.run(statement)
    server.run("UPDATE antiphon.library SET version = %s, scoring = %s", (VERSION, postings.identity()))


def _make(server: Server) -> None:
    for statement in _SCHEMA.split(";"):
        server.run(statement)
    server.run("INSERT INTO antiphon.library (version, scoring) VALUES (%s, %s)", (VERSION, postings.identity()))
    for table, columns in _OF_TEXT.items():
        for column in columns:  # the planner's statistics are samples of what is in a column, and outlive it
            server.run(f"ALTER TABLE antiphon.{table} ALTER {column} SET STATISTICS 0")


def _has(server: Server, table: str) -> bool:
    return bool(server.rows("SELECT 1 FROM pg_tables WHERE schemaname = 'antiphon' AND tablename = %s", (table,)))


def lock(server: Server) -> tuple[int, bool]:
    """Let no other program write until `writing` ends. The last passage's id, and whether there is a table of vectors."""
    ((last, embedder),) = server.rows("SELECT last, embedder FROM antiphon.library FOR UPDATE")
    return last, embedder != ""


def require_same_embedder(server: Server, embedder: Embedder) -> bool:
    """Whether there are vectors; UsageError if they are another embedder's."""
    ((known,),) = server.rows("SELECT embedder FROM antiphon.library")
    if known not in ("", embedder.identity):
        raise UsageError(
            f"the vectors of {server.name} are of another embedder ({known}): name that one, or make a new library"
        )
    return bool(known)


def prepare_vectors(server: Server, embedder: Embedder) -> None:
    """Make the table of this embedder's vectors, if there is none. Raises UsageError without pgvector."""
    with server.writing():
        lock(server)
        if require_same_embedder(server, embedder):
            return
        if not server.rows("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"):
            raise UsageError(f"the server of {server.name} has no pgvector: install it there, or leave --embedder away")
        server.run("CREATE EXTENSION IF NOT EXISTS vector")
        if server.rows("SELECT to_regtype('halfvec') IS NULL") == [(True,)]:
            raise UsageError(
                f"pgvector in {server.name} is older than 0.7, or in a schema that is not searched: "
                "run ALTER EXTENSION vector UPDATE, or add its schema to the role's search_path"
            )
        server.run(f"CREATE TABLE antiphon.vectors (passage integer PRIMARY KEY, vector halfvec({embedder.width}) NOT NULL)")
        server.run("UPDATE antiphon.library SET embedder = %s", (embedder.identity,))


def link_vectors(server: Server, embedder: Embedder) -> None:
    """Build the graph by which near vectors are found; once there, it grows with the table."""
    if embedder.width > _WIDEST_GRAPH:
        return  # all of them are compared
    with server.writing():
        lock(server)  # else two programs would build it at once
        server.run("CREATE INDEX IF NOT EXISTS vectors_graph ON antiphon.vectors USING hnsw (vector halfvec_ip_ops)")


def erase(server: Server) -> None:
    """Write the tables with text anew, if anything was deleted since; `PostgresIndex.erase` says what that reaches."""
    for deletion, transaction in server.rows(_DELETION):
        _await_readers(server, transaction)
        for table in _OF_TEXT:
            # A plain VACUUM frees the place of deleted rows and leaves their bytes in it.
            server.vacuum(f"antiphon.{table}", full=True)
        if _has(server, "vectors"):
            server.vacuum("antiphon.vectors", full=False)
        # Only this deletion: another one that came meanwhile has to be taken out itself.
        server.run("UPDATE antiphon.library SET deleted = NULL WHERE deleted::text = %s", (deletion,))


def _await_readers(server: Server, deletion: str) -> None:
    """What an older transaction may still see is not taken out: wait for those. deletion: the number of the transaction."""
    for _ in range(_TENTHS):
        if not server.rows(_OLD_READERS, (deletion,)):
            return
        server.rows("SELECT pg_sleep(0.1)")
    raise UsageError(
        f"another program reads {server.name}, so that what was deleted cannot be taken out: try again when it has ended"
    )

"""The tables of a library in an SQLite file: what an empty one has, and how one of before becomes one of today."""

from antiphon.retrieval.sqlite.database import Database

VERSION = 2
SCORING, LEFTOVERS, EMBEDDER = "scoring", "leftovers", "embedder"
"""Names of facts: how words are counted; that deleted text is still to be erased; whose the vectors are."""

_POSTINGS = """
CREATE TABLE postings (term TEXT NOT NULL, source INTEGER NOT NULL, entries BLOB NOT NULL);
CREATE INDEX postings_by_term ON postings (term);
CREATE INDEX postings_by_source ON postings (source);
CREATE INDEX passages_by_digest ON passages (digest)
"""
SCHEMA = f"""
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sources (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, modified_ns INTEGER NOT NULL,
    digest TEXT NOT NULL, words INTEGER NOT NULL, overlap INTEGER NOT NULL, passages INTEGER NOT NULL,
    counted INTEGER NOT NULL DEFAULT 0, all_words INTEGER NOT NULL DEFAULT 0, encoding TEXT NOT NULL DEFAULT '',
    text_field TEXT NOT NULL DEFAULT 'text', led_to TEXT NOT NULL DEFAULT '');
CREATE TABLE passages (id INTEGER PRIMARY KEY, source INTEGER NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL,
    unit TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, key TEXT NOT NULL,
    digest BLOB NOT NULL DEFAULT x'', counted INTEGER NOT NULL DEFAULT 0);
CREATE INDEX passages_by_source ON passages (source);
CREATE TABLE vectors (passage INTEGER PRIMARY KEY, vector BLOB NOT NULL);
{_POSTINGS}
"""
"""Of copies one passage is `counted`: it has postings and a vector, and is found."""

_FROM_1 = f"""
DROP TABLE words;
ALTER TABLE sources ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sources ADD COLUMN all_words INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sources ADD COLUMN encoding TEXT NOT NULL DEFAULT '';
ALTER TABLE sources ADD COLUMN text_field TEXT NOT NULL DEFAULT 'text';
ALTER TABLE sources ADD COLUMN led_to TEXT NOT NULL DEFAULT '';
ALTER TABLE passages ADD COLUMN digest BLOB NOT NULL DEFAULT x'';
ALTER TABLE passages ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;
{_POSTINGS}
"""
_FORGET = """
DELETE FROM postings;
UPDATE sources SET counted = 0, all_words = 0;
UPDATE passages SET counted = 0
"""


def prepare(database: Database) -> None:
    """Make the tables those of today, with no words in them yet. In a transaction."""
    for statement in (_FROM_1 if database.found == 1 else _FORGET).split(";"):
        database.run(statement)
    database.run(f"PRAGMA user_version = {VERSION}")


def fact(database: Database, name: str) -> str:
    """What is known of this name, or nothing."""
    rows = database.rows("SELECT value FROM facts WHERE name = ?", (name,))
    return str(rows[0][0]) if rows else ""


def set_fact(database: Database, name: str, value: str) -> None:
    """Remember it."""
    database.run("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

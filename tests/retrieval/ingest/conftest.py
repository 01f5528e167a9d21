"""A folder of files of each kind, and an index for them."""

from pathlib import Path

import pytest

from antiphon.retrieval.sqlite.index import SqliteIndex
from retrieval.samples import lines_of, pdf, word


@pytest.fixture
def index(tmp_path: Path) -> SqliteIndex:
    with SqliteIndex(tmp_path / "library", create=True) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One file of each kind, some in folders, and some that are left out."""
    root = tmp_path / "documents"
    (root / "sub" / "deeper").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "a.txt").write_text("alpha lion")
    (root / "b.md").write_text("# beta\nlion")
    (root / "sub" / "c.html").write_text("<p>gamma lion")
    (root / "sub" / "d.pdf").write_bytes(pdf("delta lion"))
    (root / "sub" / "deeper" / "e.docx").write_bytes(word("epsilon lion"))
    (root / "sub" / "deeper" / "f.jsonl").write_text(lines_of({"text": "zeta lion"}, {"text": "eta lion"}))
    for left_out in (".git/x.txt", ".hidden.txt", "picture.png", "sub/none"):
        (root / left_out).write_text("left out")
    return root

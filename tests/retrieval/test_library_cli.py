"""`antiphon library` as one types it: what is shown, what is JSON, and one sentence for what can be mended."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.cli import main
from retrieval.samples import everything_in, lines_of, pdf


class Terminal:
    """Runs `antiphon library` with a library of its own; `out`, `error` have what the last command wrote."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.library = folder, folder / "notes.db"
        self._monkeypatch, self._capsys = monkeypatch, capsys
        self.out = self.error = ""

    def __call__(self, command: str, *arguments: object) -> int:
        given = ["antiphon", "library", command, *map(str, arguments), "--library", str(self.library)]
        self._monkeypatch.setattr(sys, "argv", given)
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        self.out, self.error = self._capsys.readouterr()
        return code

    def json(self, command: str, *arguments: object) -> Any:
        assert self(command, *arguments, "--json") == 0
        return json.loads(self.out.splitlines()[-1])

    def sentence(self, command: str, *arguments: object) -> str:
        assert self(command, *arguments) == 2
        assert self.error.startswith("antiphon: ")
        assert self.error.count("\n") == 1
        return self.error


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    monkeypatch.delenv("ANTIPHON_LIBRARY_KEY", raising=False)
    return Terminal(tmp_path, monkeypatch, capsys)


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "lions.md").write_text("# Lions\n\nA lion [red]sleeps[/red] all day.\n")
    (folder / "rows.jsonl").write_text(lines_of({"id": 3, "title": "Whale", "text": "The blue whale " + "dives " * 80}))
    (folder / "paper.pdf").write_bytes(pdf("A paper on birds."))
    (folder / "bad.txt").write_bytes(b"\xff")
    return folder


def test_a_library_from_its_making_to_its_end(terminal: Terminal, documents: Path) -> None:
    assert terminal("add", documents) == 0
    assert terminal.out == ""
    assert terminal.error.splitlines() == [
        f"skipped {documents}/bad.txt: it is not UTF-8 (byte 0): name its own by --encoding, or convert it first",
        "3 files added, 0 updated, 0 unchanged, 1 skipped, 3 passages written",
    ]
    assert terminal("list") == 0
    assert terminal.out.splitlines() == [f"       1  {documents}/{name}" for name in ("lions.md", "paper.pdf", "rows.jsonl")]
    assert terminal("stats") == 0
    assert "passages   3\n" in terminal.out
    assert "scorer id  bm25 scaled=5.5" in terminal.out
    assert terminal("search", "where do lions sleep?") == 0
    first, text = terminal.out.splitlines()
    assert first.endswith(f"Lions  ({documents}/lions.md, lines 1-3)")
    assert text == "        # Lions A lion [red]sleeps[/red] all day."
    assert terminal("search", "whales") == 0
    assert terminal.out.endswith(" ...\n")
    assert terminal("search", "nothing known") == 0
    assert terminal.out == ""
    assert "nothing in the library" in terminal.error
    (documents / "paper.pdf").unlink()
    assert terminal("update") == 0
    assert f"gone {documents}/paper.pdf: --prune deletes it" in terminal.error
    assert terminal("update", "--prune") == 0
    assert "1 deleted" in terminal.error
    assert terminal("remove", documents / "lions.md") == 0
    assert terminal.error == "deleted 1 file\n"
    assert b"sleeps" not in everything_in(terminal.folder, terminal.library)
    assert terminal("list") == 0
    assert terminal.out == f"       1  {documents}/rows.jsonl\n"


def test_the_same_as_json(terminal: Terminal, documents: Path) -> None:
    added = terminal.json("add", documents, "--words", 20, "--overlap", 5)
    assert len(added["added"]) == 3
    assert list(added["failed"]) == [f"{documents}/bad.txt"]
    listed = terminal.json("list")
    assert {Path(row["path"]).name: row["options"]["words"] for row in listed} == dict.fromkeys(
        ("lions.md", "paper.pdf", "rows.jsonl"), 20
    )
    found = terminal.json("search", "blue whale", "-k", 1)
    (passage,) = found["passages"]
    assert (passage["key"], passage["title"], passage["place"]) == ("3", "Whale", "row 1")
    assert found["log_weight"] == pytest.approx(passage["score"] / 8)
    assert found["scorer_id"] == terminal.json("stats")["scorer_id"]
    assert terminal.json("search", "unknown") == {"scorer_id": found["scorer_id"], "log_weight": None, "passages": []}
    assert terminal.json("update")["vanished"] == []
    assert terminal.json("remove", documents)["deleted"] == [row["path"] for row in listed]


def test_what_a_person_can_mend(terminal: Terminal, documents: Path) -> None:
    assert "`antiphon library add` makes one" in terminal.sentence("search", "x")
    assert "there is no " in terminal.sentence("add", terminal.folder / "none")
    assert terminal("add", documents / "bad.txt") == 2
    assert terminal.error.endswith("antiphon: none of the files could be read\n")
    assert terminal("add", documents) == 0
    assert "overlap must be 0 to 5" in terminal.sentence("add", documents, "--words", 10, "--overlap", 9)
    assert "ranking must be one of" in terminal.sentence("search", "x", "--ranking", "fuzzy")
    assert "needs an embedder" in terminal.sentence("search", "x", "--ranking", "dense")
    assert "holds no embedder" in terminal.sentence("search", "x", "--embedder", terminal.folder)
    assert "the library has no " in terminal.sentence("remove", terminal.folder / "none")
    assert "at least one" in terminal.sentence("search", "x", "-k", 0)
    assert "cannot be read" in terminal.sentence("list", "--key-file", terminal.folder / "none")


@pytest.mark.skipif(importlib.util.find_spec("sqlcipher3") is None, reason="SQLCipher is not installed")
def test_an_encrypted_library(terminal: Terminal, documents: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (terminal.folder / "key").write_text("a key\n")
    assert terminal("add", documents, "--key-file", terminal.folder / "key") == 0
    assert b"lion" not in terminal.library.read_bytes()
    assert "is encrypted" in terminal.sentence("list")
    monkeypatch.setenv("ANTIPHON_LIBRARY_KEY", "a key")
    assert terminal("search", "lion") == 0
    assert "sleeps" in terminal.out


def test_what_is_left_out_and_what_is_told(terminal: Terminal, documents: Path) -> None:
    for name in ("a.png", "b.png", "c.bin", "ignored.log", "~$x.docx"):
        (documents / name).write_text("x")
    (documents / "half.pdf").write_bytes(pdf("Otters.", ""))
    (documents / "out.txt").symlink_to("/etc/passwd")
    (documents / "bad.txt").write_bytes("größe".encode("cp1252"))
    assert terminal("add", documents, "--exclude", "*.log", "--encoding", "cp1252") == 0
    lines = terminal.error.splitlines()
    assert f"note {documents}/half.pdf: 1 of 2 pages are pictures: no text" in lines
    assert "left out for want of a reader: 2 .png, 1 .bin (--verbose names them)" in lines
    assert any(line.startswith(f"left out {documents}/out.txt: it is a link that leads out") for line in lines)
    assert "~$" not in terminal.error
    assert "5 files added" in lines[-1]
    assert terminal("add", documents, "--exclude", "*.log", "--verbose", "--encoding", "cp1252") == 0
    assert f"left out {documents}/a.png: there is no reader for it" in terminal.error.splitlines()
    assert "there is no encoding 'x-none'" in terminal.sentence("add", documents, "--encoding", "x-none")
    (documents / "mine.jsonl").write_text(lines_of({"body": "otter"}, {"body": 5}))
    assert terminal("add", documents / "mine.jsonl", "--text-field", "body") == 0
    assert "row 2 has 'body', but it is no text" in terminal.error


@pytest.mark.core(1)
@pytest.mark.parametrize("name", ["two\nlines.txt", "title\x1b]0;x\x07.txt", "a\tb.txt", "\u202efdp.txt"])
def test_names_and_texts_that_would_steer_a_terminal(terminal: Terminal, documents: Path, name: str) -> None:
    (documents / name).write_text("An otter \x1b[2J swims.\u2028 \x9b31m")
    (documents / ("bad" + name)).write_bytes(b"\xff\xfe\xff")
    assert terminal("add", documents) == 0
    seen = terminal.error
    assert terminal("list") == 0
    seen += terminal.out
    (line,) = (
        line for line in terminal.out.splitlines() if "lions" not in line and line.strip().startswith("1") and ".txt" in line
    )
    assert terminal("search", "otters") == 0
    seen += terminal.out
    assert not {"\x1b", "\x07", "\x9b", "\u202e", "\u2028"} & set(seen)
    assert len(terminal.out.splitlines()) == 2
    assert terminal("remove", line.split("  ")[-1]) == 0
    assert terminal("search", "otters") == 0
    assert terminal.out == ""


def test_a_preview_shows_the_place_that_was_found(terminal: Terminal, documents: Path) -> None:
    (documents / "long.txt").write_text("Nothing here. " * 90 + "In 1911 the mills burned. " + "And more words. " * 90)
    assert terminal("add", documents / "long.txt", "--words", 2000) == 0
    assert terminal("search", "when did the mill burn?") == 0
    preview = terminal.out.splitlines()[1]
    assert "In 1911 the mills burned." in preview
    assert preview.strip().startswith("... ")
    assert preview.endswith(" ...")
    assert len(preview) < 340


def test_interrupted(terminal: Terminal, documents: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("antiphon.retrieval.ingest._look", stop)
    assert terminal("add", documents) == 130
    monkeypatch.undo()

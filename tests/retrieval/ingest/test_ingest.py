"""Files into an index: once, again, changed, gone, broken, interrupted."""

import os
from pathlib import Path

import pytest

from antiphon.errors import UsageError
from antiphon.retrieval import ingest
from antiphon.retrieval.finding import Wanted
from antiphon.retrieval.sqlite.index import SqliteIndex
from retrieval.ingest.folders import OPTIONS, add, names, silent, texts
from retrieval.samples import lines_of


def test_a_folder(index: SqliteIndex, folder: Path) -> None:
    report = add(index, folder)
    assert names(report.added) == ["a.txt", "b.md", "c.html", "d.pdf", "e.docx", "f.jsonl"]
    assert (report.passages, report.failed) == (7, {})
    assert len(index.search("lion", 100)) == 7
    (found,) = index.search("zeta", 100)
    assert (found.passage.source, str(found.passage.place)) == (str(folder / "sub/deeper/f.jsonl"), "row 1")
    again = add(index, folder, folder / "a.txt")
    assert (len(again.unchanged), again.added, again.passages) == (6, [], 0)


def test_relative_paths_mean_the_same_file(index: SqliteIndex, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert add(index, Path("a.txt")).added == [str(folder / "a.txt")]
    assert add(index, Path("sub/../a.txt"), folder / "a.txt").unchanged == [str(folder / "a.txt")]
    assert ingest.remove(index, [Path("./a.txt")]) == [str(folder / "a.txt")]


def test_bad_files_are_reported_and_the_others_go_in(index: SqliteIndex, folder: Path) -> None:
    (folder / "bad.txt").write_bytes(b"\xff")
    (folder / "bad.pdf").write_bytes(b"%PDF-1.4")
    (folder / "empty.md").touch()
    (folder / os.fsdecode(b"bad\xff.txt")).write_text("x")
    os.mkfifo(folder / "pipe")
    report = add(index, folder, folder / "picture.png", folder / "pipe")
    assert len(report.added) == 6
    sentences = {os.path.basename(os.fsencode(path)): sentence for path, sentence in report.failed.items()}
    assert sorted(sentences) == [b"bad.pdf", b"bad.txt", b"bad\xff.txt", b"empty.md", b"picture.png", b"pipe"]
    assert "no reader" in sentences[b"picture.png"]
    assert "rename it" in sentences[b"bad\xff.txt"]
    assert "no regular file" in sentences[b"pipe"]


def test_a_file_that_cannot_be_opened(index: SqliteIndex, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> str:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(ingest, "_digest", refuse)
    assert add(index, folder / "a.txt").failed == {str(folder / "a.txt"): "it cannot be read (permission denied)"}


def test_what_is_not_there(index: SqliteIndex, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no .*none"):
        add(index, tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"no file to read in .*empty"):
        add(index, tmp_path / "empty")
    with pytest.raises(UsageError, match=r"the library has no .*empty"):
        ingest.remove(index, [tmp_path / "empty"])


def test_what_is_left_out(index: SqliteIndex, folder: Path) -> None:
    for name in ("node_modules", "__pycache__", "private"):
        (folder / name).mkdir()
        (folder / name / "x.txt").write_text("left out")
    for name in ("~$word.docx", ".~lock.a.odt#", "b.png", "c.PNG", "data.bin", "noending", "log.txt"):
        (folder / name).write_text("left out")
    report = ingest.add(index, [folder], OPTIONS, silent, wanted=Wanted(exclude=("private", "log*", "sub/c.html")))
    assert texts(index, "left out") == set()
    assert report.kinds == {".png": 3, "no ending": 2, ".bin": 1}
    excluded = {os.path.basename(path) for path, why in report.left_out.items() if why == "it is excluded"}
    assert excluded == {"private", "log.txt", "c.html"}
    assert not any("node_modules" in path or "~" in os.path.basename(path) for path in report.left_out)


def test_progress_rises_to_the_whole(index: SqliteIndex, folder: Path) -> None:
    (folder / "g.jsonl").write_text(lines_of(*({"text": "é" * 90} for _ in range(50))))
    (folder / "bad.txt").write_bytes(b"\xff" * 100)
    steps: list[tuple[int, int]] = []
    ingest.add(index, [folder], OPTIONS, lambda done, total, name: steps.append((done, total)))
    done = [step for step, _ in steps]
    assert done == sorted(done)
    assert {total for _, total in steps} == {done[-1]}
    assert len(set(done)) > 40  # moves within one large file

"""Files that changed, went or came back since they were read; any history of them."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon import shown
from antiphon.retrieval import ingest
from antiphon.retrieval.options import PassageOptions, Reading
from antiphon.retrieval.sqlite.index import SqliteIndex
from retrieval.ingest.folders import OPTIONS, add, names, silent, texts
from retrieval.samples import everything_in, lines_of
from support.examples import examples


def test_only_what_changed_is_read_again(index: SqliteIndex, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(index, folder)
    (folder / "a.txt").write_text("alpha tiger")  # as long as before
    os.utime(folder / "b.md", ns=(1, 1))  # the same bytes at another time
    opened: list[str] = []
    monkeypatch.setattr(ingest, "_digest", lambda path, digest=ingest._digest: opened.append(path) or digest(path))
    report = ingest.update(index, False, silent)
    assert names(report.updated) == ["a.txt"]
    assert len(report.unchanged) == 5
    assert set(names(opened)) == {"a.txt", "b.md"}
    assert texts(index, "alpha") == {"alpha tiger"}
    opened.clear()
    assert len(ingest.update(index, False, silent).unchanged) == 6
    assert opened == []


def test_replaced_text_is_erased(index: SqliteIndex, folder: Path, tmp_path: Path) -> None:
    (folder / "a.txt").write_text("zqsecret")
    add(index, folder)
    (folder / "a.txt").write_text("harmless")
    ingest.update(index, False, silent)
    assert b"zqsecret" not in everything_in(tmp_path, tmp_path / "library")


def test_files_that_are_gone(index: SqliteIndex, folder: Path, tmp_path: Path) -> None:
    (folder / "a.txt").write_text("zqsecret")
    add(index, folder)
    (folder / "a.txt").unlink()
    report = ingest.update(index, False, silent)
    assert (names(report.vanished), report.deleted) == (["a.txt"], [])
    assert texts(index, "zqsecret") == {"zqsecret"}
    report = ingest.update(index, True, silent)
    assert (report.vanished, names(report.deleted)) == ([], ["a.txt"])
    assert b"zqsecret" not in everything_in(tmp_path, tmp_path / "library")


@pytest.mark.core(2)
@pytest.mark.parametrize("data", [b"alpha \xff", b"", b" \n", b"alpha \x00"])
def test_a_file_that_became_empty_or_broke_loses_its_passages(
    index: SqliteIndex, folder: Path, tmp_path: Path, data: bytes
) -> None:
    (folder / "a.txt").write_text("zqsecret lion")
    add(index, folder)
    (folder / "a.txt").write_bytes(data)
    report = ingest.update(index, False, silent)
    assert names(list(report.failed)) == ["a.txt"]
    assert report.failed[str(folder / "a.txt")].endswith("; what was read of it before is deleted")
    assert texts(index, "zqsecret") == set()
    assert b"zqsecret" not in everything_in(tmp_path, tmp_path / "library")
    (folder / "a.txt").write_text("alpha again")
    assert names(add(index, folder).added) == ["a.txt"]


def test_renamed_files_are_one_document(index: SqliteIndex, folder: Path) -> None:
    add(index, folder)
    (folder / "a.txt").rename(folder / "sub" / "renamed.txt")
    (folder / "sub" / "deeper").rename(folder / "elsewhere")
    report = add(index, folder)
    assert {os.path.basename(old) for old in report.renamed.values()} == {"a.txt", "e.docx", "f.jsonl"}
    assert {"renamed.txt", "e.docx"} <= set(names([source.path for source in index.sources()]))
    assert len(index.sources()) == 6
    assert ingest.update(index, False, silent).vanished == []


def test_copies_are_named_and_count_once(index: SqliteIndex, folder: Path) -> None:
    for name in ("copy of a.txt", "a copy.txt"):
        (folder / name).write_bytes((folder / "a.txt").read_bytes())
    os.link(folder / "a.txt", folder / "hard.txt")
    report = add(index, folder)
    assert len(report.added) == 9
    assert [found.passage.text for found in index.search("alpha", 5)] == ["alpha lion"]
    assert index.stats().copies == 3


def test_how_a_file_was_read_is_remembered(index: SqliteIndex, folder: Path) -> None:
    (folder / "a.txt").write_bytes("größe".encode("cp1252"))
    (folder / "rows.jsonl").write_text(lines_of({"body": "otter"}))
    ingest.add(index, [folder / "a.txt", folder / "rows.jsonl"], OPTIONS, silent, Reading("cp1252", "body"))
    assert texts(index, "größe otter") == {"größe", "otter"}
    (folder / "a.txt").write_bytes("größere Maße".encode("cp1252"))
    assert names(ingest.update(index, False, silent).updated) == ["a.txt"]
    assert texts(index, "maße") == {"größere Maße"}
    report = ingest.add(index, [folder / "rows.jsonl"], OPTIONS, silent)
    assert "no text in 'text'" in next(iter(report.failed.values()))


def test_a_name_of_two_lines_is_removed_as_a_list_shows_it(index: SqliteIndex, folder: Path) -> None:
    (folder / "two\nlines\x1b.txt").write_text("otter")
    add(index, folder)
    (listed,) = (shown.line(source.path) for source in index.sources() if "two\n" in source.path)
    assert "\n" not in listed
    assert len(ingest.remove(index, [Path(listed)])) == 1
    assert texts(index, "otter") == set()


def test_other_sizes_of_passages_are_cut_again_and_kept(index: SqliteIndex, folder: Path) -> None:
    (folder / "a.txt").write_text("one two three. " * 40)
    assert add(index, folder / "a.txt").passages == 1
    report = add(index, folder / "a.txt", options=PassageOptions(20, 5))
    assert (len(report.updated), report.passages > 4) == (1, True)
    (folder / "a.txt").write_text("four five six. " * 40)
    assert ingest.update(index, False, silent).passages == report.passages
    assert index.sources()[0].options == PassageOptions(20, 5)


def test_removing_a_folder(index: SqliteIndex, folder: Path) -> None:
    (folder / "sub.txt").write_text("beside the folder")
    add(index, folder)
    assert names(ingest.remove(index, [folder / "sub", folder / "a.txt"])) == ["c.html", "d.pdf", "e.docx", "f.jsonl", "a.txt"]
    assert names([source.path for source in index.sources()]) == ["b.md", "sub.txt"]


def test_an_interrupted_run_goes_on(index: SqliteIndex, folder: Path) -> None:
    class BrokenOffError(Exception):
        pass

    def interrupt(done: int, total: int, name: str) -> None:
        if name.endswith("d.pdf"):
            raise BrokenOffError

    with pytest.raises(BrokenOffError):
        ingest.add(index, [folder], OPTIONS, interrupt)
    assert names([source.path for source in index.sources()]) == ["a.txt", "b.md", "c.html"]
    report = add(index, folder)
    assert (len(report.unchanged), names(report.added)) == (3, ["d.pdf", "e.docx", "f.jsonl"])


CONTENT = st.sampled_from([b"red lion", b"blue whale", b"red fox and blue lion", b"\xff", b""])


@examples(25)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), CONTENT | st.none(), st.sampled_from(["add", "update", "prune"])), max_size=12)
)
def test_any_history_of_files(tmp_path_factory: pytest.TempPathFactory, history: list[tuple]) -> None:
    """Against a dictionary: what the library knows is the state of each file when it was last shown, if it was readable."""
    root = tmp_path_factory.mktemp("history")
    known: dict[str, bytes] = {}
    clock = 1_000_000_000
    with SqliteIndex(root / "library", create=True) as index:
        for name, content, action in history:
            file = root / f"{name}.txt"
            file.unlink(missing_ok=True)
            if content is not None:
                file.write_bytes(content + name.encode() * (content not in (b"\xff", b"")))
                clock += 1
                os.utime(file, ns=(clock, clock))
            there = {item.stem: item.read_bytes() for item in root.glob("*.txt")}
            if action == "add" and there:
                add(index, *(root / f"{item}.txt" for item in there))
                known = {item: data for item, data in {**known, **there}.items() if data not in (b"\xff", b"")}
            elif action != "add":
                ingest.update(index, action == "prune", silent)
                known = {item: there.get(item, data) for item, data in known.items()}
                known = {item: data for item, data in known.items() if data not in (b"\xff", b"")}
                if action == "prune":
                    known = {item: data for item, data in known.items() if item in there}
            held = [found.passage.text.encode() for found in index.search("red blue", 100)]
            assert sorted(held) == sorted(set(known.values()))  # copies count once
            assert {Path(item.path).stem for item in index.sources()} == known.keys()

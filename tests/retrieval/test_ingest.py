"""Files into an index: once, again, changed, gone, broken, interrupted."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon import shown
from antiphon.errors import UsageError
from antiphon.retrieval import ingest
from antiphon.retrieval.finding import Wanted
from antiphon.retrieval.ingest import Report
from antiphon.retrieval.options import PassageOptions, Reading
from antiphon.retrieval.sqlite.index import SqliteIndex
from retrieval.samples import everything_in, lines_of, pdf, word

OPTIONS = PassageOptions()


def silent(done: int, total: int, name: str) -> None:
    pass


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


def names(paths: list[str]) -> list[str]:
    return [os.path.basename(path) for path in paths]


def add(index: SqliteIndex, *paths: Path, options: PassageOptions = OPTIONS) -> Report:
    return ingest.add(index, paths, options, silent)


def texts(index: SqliteIndex, question: str) -> set[str]:
    return {found.passage.text for found in index.search(question, 100)}


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


def test_links(index: SqliteIndex, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("zqsecret")
    (folder / "out.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (folder / "passwords.txt").symlink_to("/etc/passwd")
    (folder / "way").symlink_to(tmp_path / "outside")
    (folder / "within.txt").symlink_to(folder / "a.txt")
    (folder / "nowhere.txt").symlink_to(folder / "none.txt")
    (folder / "sub" / "above").symlink_to(folder)
    report = add(index, folder)
    assert len(report.added) == 6
    assert {os.path.basename(path) for path, why in report.left_out.items() if "leads out" in why} == {
        "out.txt", "passwords.txt", "way",
    }  # fmt: skip
    assert (texts(index, "zqsecret"), texts(index, "root")) == (set(), set())
    report = ingest.add(index, [folder], OPTIONS, silent, wanted=Wanted(follow_links=True, exclude=("passw*",)))
    assert texts(index, "zqsecret") == {"zqsecret"}
    assert "passwords.txt" not in names(report.added)


@pytest.mark.parametrize("kind", ["file", "folder", "folder above"])
def test_a_link_in_the_place_of_a_file_is_not_followed(index: SqliteIndex, folder: Path, tmp_path: Path, kind: str) -> None:
    (inner := folder / "one" / "two").mkdir(parents=True)
    (inner / "deep.txt").write_text("otter")
    add(index, folder)
    (outside := tmp_path / "outside" / "two").mkdir(parents=True)
    (outside / "deep.txt").write_text("zqsecret")
    place, target = {
        "file": (inner / "deep.txt", outside / "deep.txt"),
        "folder": (inner, outside),
        "folder above": (inner.parent, outside.parent),
    }[kind]
    place.rename(tmp_path / "moved")
    place.symlink_to(target)
    report = ingest.update(index, False, silent)
    assert report.failed == {
        str(inner / "deep.txt"): f"a link leads from it to {outside / 'deep.txt'} now: --follow-links reads that; "
        "what was read of it before is deleted"
    }
    assert texts(index, "zqsecret otter") == set()
    assert ingest.update(index, False, silent).failed == {}


def test_a_link_in_the_place_of_a_file_is_followed_if_asked(index: SqliteIndex, folder: Path, tmp_path: Path) -> None:
    (folder / "deep.txt").write_text("otter")
    add(index, folder)
    (tmp_path / "other.txt").write_text("zebra")
    (folder / "deep.txt").unlink()
    (folder / "deep.txt").symlink_to(tmp_path / "other.txt")
    assert names(ingest.update(index, False, silent, follow_links=True).updated) == ["deep.txt"]
    (tmp_path / "other.txt").write_text("zebra crossing")
    assert names(ingest.update(index, False, silent).updated) == ["deep.txt"]  # it leads where it led
    assert texts(index, "zebra otter") == {"zebra crossing"}


@pytest.mark.parametrize("target", ["other.txt", b"other-\xff.txt".decode(errors="surrogateescape")])
def test_a_link_that_was_named_goes_on(index: SqliteIndex, tmp_path: Path, target: str) -> None:
    (tmp_path / target).write_text("zebra")
    (tmp_path / "folder").mkdir()
    (link := tmp_path / "folder" / "link.txt").symlink_to(tmp_path / target)
    add(index, link)
    assert ingest.update(index, False, silent).unchanged == [str(link)]
    link.unlink()
    link.write_text("a file now")
    assert ingest.update(index, False, silent).updated == [str(link)]


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


def test_progress_rises_to_the_whole(index: SqliteIndex, folder: Path) -> None:
    (folder / "g.jsonl").write_text(lines_of(*({"text": "é" * 90} for _ in range(50))))
    (folder / "bad.txt").write_bytes(b"\xff" * 100)
    steps: list[tuple[int, int]] = []
    ingest.add(index, [folder], OPTIONS, lambda done, total, name: steps.append((done, total)))
    done = [step for step, _ in steps]
    assert done == sorted(done)
    assert {total for _, total in steps} == {done[-1]}
    assert len(set(done)) > 40  # moves within one large file


CONTENT = st.sampled_from([b"red lion", b"blue whale", b"red fox and blue lion", b"\xff", b""])


@settings(max_examples=25, deadline=None)
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

"""Links among the files: those that are followed, and those that are not."""

import os
from pathlib import Path

import pytest

from antiphon.retrieval import ingest
from antiphon.retrieval.finding import Wanted
from antiphon.retrieval.sqlite.index import SqliteIndex
from retrieval.ingest.folders import OPTIONS, add, names, silent, texts


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


@pytest.mark.core(1)
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

"""Where figures come from is told: commit, machine, libraries; and no folder of the machine."""

import subprocess
from pathlib import Path

import pytest

from antiphon_lab.report import origin as origins
from antiphon_lab.report.origin import NO_CHECKOUT, commit, origin, typed


def git(folder: Path, *arguments: str) -> str:
    options = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    done = subprocess.run(["git", "-C", str(folder), *options, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    package = tmp_path / "src" / "antiphon_lab"
    package.mkdir(parents=True)
    (package / "code.py").write_text("1\n")
    (tmp_path / "notes").write_text("mine\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "all")
    return tmp_path


def test_the_commit_and_whether_the_code_was_changed(checkout: Path) -> None:
    package, head = checkout / "src" / "antiphon_lab", git(checkout, "rev-parse", "--short=12", "HEAD")
    assert commit(package) == head
    (checkout / "notes").write_text("a document is no code\n")
    assert commit(package) == head
    (package / "code.py").write_text("2\n")
    assert commit(package) == f"{head}+"


def test_a_package_that_only_lies_below_a_checkout_has_none_of_its_commits(checkout: Path, tmp_path: Path) -> None:
    other = checkout / "venv" / "antiphon_lab"
    other.mkdir(parents=True)
    assert commit(other) == NO_CHECKOUT


def test_no_git_at_all(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert commit(checkout / "src" / "antiphon_lab") == NO_CHECKOUT


def test_what_is_told() -> None:
    found = origin("antiphon-lab bench x")
    assert found.command == "antiphon-lab bench x"
    for part in (found.commit, found.cpu, found.llama_cpp, found.numpy, found.python, found.version):
        assert part
        assert part in found.sentence()
    assert found.processors >= 1


def test_a_machine_that_does_not_name_its_processor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(origins, "_CPUINFO", tmp_path / "none")
    assert origin("x").cpu


def test_folders_of_the_machine_are_left_out() -> None:
    given = ["bench", "speculative", "--data", "/home/me/nq.jsonl", "--html=out/page.html", "--link", "4g", "ws://host:1/x"]
    assert typed(given) == "antiphon-lab bench speculative --data nq.jsonl --html=page.html --link 4g ws://host:1/x"

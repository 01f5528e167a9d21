"""The cache folder: where it is, and files that are replaced whole or not at all."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon import cache
from antiphon.cache import cache_folder, read_cached, replacing, write_cached
from antiphon.errors import CacheError, UsageError

Use = Callable[[], object]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "own"


# --- where it is


def test_the_folder_follows_the_environment_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [cache_folder()]
    for variable in ("ANTIPHON_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable)
        found.append(cache_folder())
    assert found == [tmp_path / "own", tmp_path / "shared" / "antiphon", tmp_path / "home" / ".cache" / "antiphon"]
    assert all(folder.is_dir() for folder in found)


def test_an_empty_variable_counts_as_unset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", "")
    assert cache_folder() == tmp_path / "shared" / "antiphon"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache_folder() == tmp_path / "home" / ".cache" / "antiphon"


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", "~/deep/down")
    assert cache_folder() == tmp_path / "home" / "deep" / "down"


# --- where it cannot be. Root may write anywhere, so a regular file stands where a folder is needed.


@pytest.fixture
def blocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "file" / "below"))
    return tmp_path / "file" / "below"


@pytest.mark.parametrize("use", [cache_folder, lambda: read_cached("thing"), lambda: write_cached("thing", b"x")])
def test_a_folder_that_cannot_be_made_is_named_with_the_way_out(blocked: Path, use: Use) -> None:
    with pytest.raises(CacheError, match="set ANTIPHON_CACHE to a folder that can") as caught:
        use()
    assert str(blocked) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, UsageError)


def test_a_regular_file_in_the_folders_place_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "file"))
    with pytest.raises(CacheError, match="cannot be written"):
        cache_folder()


def test_a_folder_without_the_right_to_write_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache.os, "access", lambda *_: False)
    with pytest.raises(CacheError, match="permission denied"):
        cache_folder()


@pytest.mark.parametrize("name", ["~no-such-person/cache", ""])
def test_a_user_without_a_home_folder_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", name)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what Python does where there is none
    with pytest.raises(CacheError, match=r"no home folder.*set ANTIPHON_CACHE"):
        cache_folder()


# --- what is in it


def test_what_was_written_is_read_back(own_cache: Path) -> None:
    assert read_cached("thing") is None
    for data in (b"", b"old", bytes(range(256))):
        write_cached("thing", data)
        assert read_cached("thing") == data
    assert [path.name for path in own_cache.iterdir()] == ["thing"]


@pytest.mark.parametrize("failure", [KeyError, KeyboardInterrupt])
def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(own_cache: Path, failure: type[BaseException]) -> None:
    write_cached("thing", b"old")

    def fail_midway() -> None:
        with replacing(own_cache / "thing") as temporary:
            temporary.write_bytes(b"half of the n")
            raise failure

    with pytest.raises(failure):
        fail_midway()
    assert read_cached("thing") == b"old"
    assert [path.name for path in own_cache.iterdir()] == ["thing"]


def test_a_full_disk_is_a_sentence_and_leaves_the_old_file(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cached("thing", b"old")

    def write_bytes(path: Path, data: bytes) -> int:
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    with pytest.raises(CacheError, match="no space left on device"):
        write_cached("thing", b"new")
    assert read_cached("thing") == b"old"
    assert [path.name for path in own_cache.iterdir()] == ["thing"]


def test_a_name_that_is_too_long_is_a_sentence() -> None:
    for use in (lambda: write_cached("x" * 300, b""), lambda: read_cached("x" * 300)):
        with pytest.raises(CacheError, match="name too long"):
            use()


def test_a_folder_in_a_files_place_says_what_to_delete(own_cache: Path) -> None:
    (own_cache / "thing").mkdir(parents=True)
    with pytest.raises(CacheError, match=r"own/thing cannot be read .*: delete it"):
        read_cached("thing")
    with pytest.raises(CacheError, match="directory"):
        write_cached("thing", b"x")
    assert [path.name for path in own_cache.iterdir()] == ["thing"]

"""Every name that a person can get wrong gives one sentence, and no file crashes the process."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from antiphon.cache import cache_folder, read_cached, replacing, write_cached
from antiphon.config import ModelConfig
from antiphon.errors import CacheError, ModelError
from antiphon.models import catalog, load
from antiphon.models.toy import ToyModel
from tinymodel import write_llama


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "cache"))


def refusal(name: str) -> str:
    with pytest.raises(ModelError) as caught:
        load(ModelConfig(name, context=256, threads=1))
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


# --- names


def test_the_package_loads_no_model_library() -> None:
    code = "import sys, antiphon, antiphon.models; print([m for m in ('llama_cpp', 'huggingface_hub') if m in sys.modules])"
    assert run(code).stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["toy-cloud", "toy-device"])
def test_toys_need_no_file(name: str) -> None:
    assert isinstance(load(ModelConfig(name)), ToyModel)


def test_an_unknown_name_lists_the_known_ones() -> None:
    sentence = refusal("nowhere/model.gguf")
    assert all(known in sentence for known in ("nowhere/model.gguf", "smollm2-135m", "gemma3-270m", "toy-cloud", "hf:"))


def test_a_folder_a_device_and_other_files_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no model")
    (tmp_path / "empty.gguf").touch()
    os.mkfifo(tmp_path / "pipe")
    assert "folder" in refusal(str(tmp_path))
    assert "no GGUF file" in refusal(str(tmp_path / "notes.txt"))
    assert "no GGUF file" in refusal(str(tmp_path / "empty.gguf"))
    assert "no regular file" in refusal(str(tmp_path / "pipe"))


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_a_name_that_no_file_can_have_is_a_sentence(name: str) -> None:
    assert len(refusal(name)) < 400


@pytest.mark.parametrize("name", sorted(catalog.PACKAGED))
def test_a_missing_package_says_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog.importlib.util, "find_spec", lambda _: None)
    assert catalog.PACKAGED[name][1] in refusal(name)


# --- the hub


@pytest.mark.parametrize("name", ["hf:", "hf:owner", "hf:owner/repo", "hf:owner/repo/"])
def test_an_incomplete_hub_name_shows_the_form(name: str) -> None:
    assert "hf:owner/repo/file.gguf" in refusal(name)


def test_an_ill_formed_repository_is_a_sentence() -> None:
    assert "could not be fetched" in refusal("hf:a b/c/d.gguf")


def test_without_a_network_the_hub_fails_quickly_and_says_so(tmp_path: Path) -> None:
    code = "from antiphon.models import load; from antiphon.config import ModelConfig; load(ModelConfig('hf:a/b/c.gguf'))"
    start = time.monotonic()
    # A port that nothing listens on stands for a machine without a network.
    result = run(code, HF_ENDPOINT="http://127.0.0.1:9", HF_HOME=str(tmp_path / "hub"))
    assert "cannot be reached: name a local GGUF file" in result.stderr
    assert "Retrying" not in result.stderr
    assert time.monotonic() - start < 15


# --- broken files: in a process of their own, since what they must not do is end it

LOAD = """
import sys
from antiphon.config import ModelConfig
from antiphon.errors import ModelError
from antiphon.models import load
for path in sys.argv[1:]:
    try:
        load(ModelConfig(path, context=256, threads=1))
        print("loaded")
    except ModelError as error:
        print("refused", error)
"""


def run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)


def refusals(paths: list[Path]) -> list[str]:
    result = run(LOAD, *map(str, paths))
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == len(paths)
    assert all(line.startswith("refused") and "get the file again" in line for line in lines), lines
    return lines


def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    whole = write_llama(tmp_path / "whole.gguf").read_bytes()
    cuts = [4, 7, 8, 16, 24, 30, 100, 1000, 5000, len(whole) // 2, len(whole) - 40]
    paths = [tmp_path / f"cut-{cut}.gguf" for cut in cuts]
    for path, cut in zip(paths, cuts, strict=True):
        path.write_bytes(whole[:cut])
    assert "not within the file bounds" in refusals(paths)[-2]


def test_garbage_after_the_magic_is_refused(tmp_path: Path) -> None:
    head = b"GGUF" + (3).to_bytes(4, "little")
    huge, one, none = (2**40).to_bytes(8, "little"), (1).to_bytes(8, "little"), bytes(8)
    bodies = [b"GGUF" + b"\xa5" * 999, head + b"\x5a" * 999, head + one + huge + bytes(99), head + huge + none + bytes(99)]
    bodies += [head + one + one + huge + bytes(99), head + none + none]
    paths = [tmp_path / f"garbage-{index}.gguf" for index in range(len(bodies))]
    for path, body in zip(paths, bodies, strict=True):
        path.write_bytes(body)
    refusals(paths)


@pytest.mark.model
def test_a_real_file_cut_short_is_refused(tmp_path: Path) -> None:
    try:
        source = catalog._packaged("smollm2-135m")
    except ModelError as error:
        pytest.skip(str(error))
    with source.open("rb") as file:
        start = file.read(3_000_000)
    paths = [tmp_path / f"cut-{cut}.gguf" for cut in (1000, 100_000, 1_500_000, 3_000_000)]
    for path in paths:
        path.write_bytes(start[: int(path.stem.removeprefix("cut-"))])
    refusals(paths)


# --- the cache folder


def test_the_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("ANTIPHON_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    assert cache_folder() == tmp_path / "shared" / "antiphon"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "antiphon"
    assert cache_folder().is_dir()


def test_a_cache_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(CacheError, match=r"file/below.*ANTIPHON_CACHE"):
        cache_folder()


def test_the_cache_is_replaced_whole_or_not_at_all() -> None:
    assert read_cached("thing") is None
    write_cached("thing", b"old")
    with pytest.raises(KeyError), replacing(cache_folder() / "thing") as temporary:  # noqa: PT012
        temporary.write_bytes(b"half of the n")
        raise KeyError
    assert read_cached("thing") == b"old"
    write_cached("thing", b"new")
    assert read_cached("thing") == b"new"
    assert [path.name for path in cache_folder().iterdir()] == ["thing"]


@pytest.mark.model
def test_an_assembled_model_is_put_together_once() -> None:
    try:
        path = catalog._packaged("gemma3-270m")
    except ModelError as error:
        pytest.skip(str(error))
    first = path.stat().st_ino
    assert catalog._packaged("gemma3-270m").stat().st_ino == first
    os.truncate(path, 1000)
    assert catalog._packaged("gemma3-270m").stat().st_size > 10**8
    assert [entry.name for entry in cache_folder().iterdir()] == [path.name]

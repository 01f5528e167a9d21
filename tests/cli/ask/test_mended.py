"""One sentence for what can be mended."""

from pathlib import Path

import pytest

from cli.ask.asking import run
from support.libraries import serving_command

HERE = ("--model", "toy-cloud", "--library", "PRIVATE")


NOBODY = ("--cloud", "ws://127.0.0.1:1")


@pytest.mark.core(10)
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((*HERE, "x"), "the method concord needs a cloud: give --cloud ws://HOST:PORT"),
        ((*HERE, *NOBODY, "x"), "is `antiphon serve` running there?"),
        ((*NOBODY, "--library", "PRIVATE", "x"), "the method concord writes on the device: give --model"),
        ((*NOBODY, "--model", "toy-cloud", "x"), "the method concord reads documents of the device: give --library FILE"),
        ((*NOBODY, "--model", "toy-cloud", "--library", "no.db", "x"), "there is no library no.db: `antiphon library add`"),
        ((*HERE, *NOBODY, "--library-key-file", "no.key", "x"), "the key file no.key cannot be read"),
        ((*HERE, *NOBODY, *NOBODY, "x"), "a cloud is named twice"),
        ((*HERE, *NOBODY, "--cloud", "ws://127.0.0.1:2", "--method", "dragon", "x"), "dragon works with one cloud, not with 2"),
        (
            (*HERE, *NOBODY, "--method", "dssd", "x"),
            "dssd reads no documents: `antiphon generate` runs it; ask has crcg, dragon, ",
        ),
        ((*HERE, *NOBODY, "--method", "magic", "x"), "there is no method 'magic': use one of concord, "),
        ((*HERE, *NOBODY, "--disclosure", "all", "x"), "disclosure must be ids or push, not 'all'"),
        ((*HERE, *NOBODY, "--disclosure", "push", "-o", "questions=2", "x"), "so questions above 0 do not go with it"),
        ((*HERE, *NOBODY, "-o", "gate=shut", "x"), "gate must be a number or off, not 'shut'"),
        ((*HERE, *NOBODY, "-o", "gate=0", "x"), "gate must be above 0 (1 is exact), or off, not 0.0"),
        ((*HERE, *NOBODY, "-o", "timeout=31", "x"), "timeout must be 0 (auto) to 30 s, not 31.0"),
        ((*HERE, *NOBODY, "-o", "timeout=nan", "x"), "timeout must be a number or auto, not 'nan'"),
        ((*HERE, *NOBODY, "-o", "first=0", "x"), "first must be 1 to 256, not 0"),
        ((*HERE, *NOBODY, "-o", "realign=never", "x"), "realign must be soft or hard, not 'never'"),
        ((*HERE, *NOBODY, "-o", "certificate=lower", "x"), "certificate must be both or upper, not 'lower'"),
        ((*HERE, *NOBODY, "-o", "timeout_decay=free", "x"), "timeout_decay must be constant, linear or halving, not 'free'"),
        ((*HERE, *NOBODY, "-o", "undrafted=both", "x"), "undrafted must be dense or local, not 'both'"),
        ((*HERE, *NOBODY, "-o", "passages=0", "x"), "passages must be 1 to 64, not 0"),
        (
            (*HERE, *NOBODY, "--embedder", "nowhere", "x"),
            "nowhere holds no embedder: a folder with model.onnx and tokenizer.json",
        ),
        ((*HERE, *NOBODY, "--weight-temperature", "0", "x"), "the temperature of weights must be between 0.001 and 1,000,000"),
        (
            (*HERE, *NOBODY, "--weight-temperature", "nan", "x"),
            "the temperature of weights must be between 0.001 and 1,000,000",
        ),
        ((*HERE, *NOBODY, "--temperature", "-1", "x"), "temperature must be between 0 and 100, not -1.0"),
        (
            (*HERE, *NOBODY, "--disclosure-log", "/dev/full", "x"),
            "the disclosure log /dev/full cannot be written (no space left on device)",
        ),
        ((*HERE, *NOBODY, ""), "the prompt is empty"),
    ],
)
def test_what_a_person_can_mend(
    folder: Path,
    arguments: tuple[str, ...],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = [str(folder / "private.db") if argument == "PRIVATE" else argument for argument in arguments]
    assert run("ask", *places, monkeypatch=monkeypatch) == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith("antiphon: ")
    assert complaint.count("\n") == 1
    assert sentence in complaint


@pytest.mark.medium
def test_a_cloud_without_documents(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with serving_command("--model", "toy-cloud") as (url, _):
        arguments = ["--cloud", url, "--model", "toy-cloud", "--library", str(folder / "private.db"), "x"]
        assert run("ask", *arguments, monkeypatch=monkeypatch) == 2
    assert capsys.readouterr().err == (
        f"antiphon: the cloud at {url} has no documents, and concord mixes what both ends have: start it with `antiphon serve "
        "--library FILE`, or use crcg, which asks no cloud\n"
    )


@pytest.mark.medium
def test_baselines_are_asked_of_a_cloud_that_has_them(
    folder: Path, cloud: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ["--model", "toy-cloud", "--library", str(folder / "private.db")]
    arguments = [*places, "--max-tokens", "2", "--method", "drdg-tw", "x"]
    assert run("ask", "--cloud", cloud, *arguments, monkeypatch=monkeypatch) == 2
    assert capsys.readouterr().err == (
        "antiphon: drdg-tw is a baseline, which a cloud offers where it was started with `antiphon serve --baselines`\n"
    )
    with serving_command("--model", "toy-cloud", "--library", str(folder / "public.db"), "--baselines") as (url, _):
        assert run("ask", "--cloud", url, *arguments, monkeypatch=monkeypatch) == 0


def test_another_tokenizer(
    folder: Path, cloud: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--cloud", cloud, "--model", "toy-device", "--library", str(folder / "private.db"), "x"]
    assert run("ask", *arguments, monkeypatch=monkeypatch) == 2
    complaint = capsys.readouterr().err
    assert "both ends need the same tokenizer; toy-device and the cloud's toy-cloud differ" in complaint
    assert complaint.count("\n") == 1


@pytest.mark.medium
def test_serving_no_library(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("serve", "--model", "toy-cloud", "--port", "0", "--library", "no.db", monkeypatch=monkeypatch) == 2
    assert "there is no library no.db" in capsys.readouterr().err

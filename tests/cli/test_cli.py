"""The command line as a person meets it: one sentence and exit code 2 for whatever can be mended, figures as JSON."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from antiphon.cli import main
from antiphon.methods import ALL_METHODS, BASELINES
from antiphon.options import options_of
from antiphon_lab.cli import main as laboratory
from support.libraries import serving_command

COMMAND = [sys.executable, "-m", "antiphon"]


@pytest.fixture(scope="module")
def cloud() -> Iterator[str]:
    """A served toy, in a process of its own."""
    command = [*COMMAND, "serve", "--model", "toy-cloud", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    line = process.stdout.readline()
    found = re.search(r"ws://\S+", line)
    assert found, line + process.stderr.read()
    yield found.group()
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=20)
    assert process.returncode == 0
    assert complaint == "antiphon: stopped\n"


def run(*arguments: str, monkeypatch: pytest.MonkeyPatch, main: Callable[[], None] = main) -> int:
    monkeypatch.setattr(sys, "argv", ["antiphon", *arguments])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.medium
def test_baselines_are_served_with_a_flag_only(
    cloud: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("generate", "--model", "toy-device", "--method", "gr", "--max-tokens", "4", "the ")
    assert run(*asked, "--cloud", cloud, monkeypatch=monkeypatch) == 2
    complaint = capsys.readouterr().err
    assert (
        complaint == "antiphon: gr is a baseline, which a cloud offers where it was started with `antiphon serve --baselines`\n"
    )
    with serving_command("--model", "toy-cloud", "--baselines") as (url, _):
        assert run(*asked, "--cloud", url, monkeypatch=monkeypatch) == 0


@pytest.mark.medium
def test_ctrl_c_says_so_on_a_line_of_its_own() -> None:
    """The text before it may have ended anywhere. The cloud is one that takes a connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"ws://127.0.0.1:{silent.getsockname()[1]}"
        command = [*COMMAND, "generate", "--cloud", address, "--model", "toy-device", "the "]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        taken, _ = silent.accept()
        with taken:
            process.send_signal(signal.SIGINT)
            _, complaint = process.communicate(timeout=20)
    assert process.returncode == 130
    assert complaint == "\nantiphon: stopped\n"


FIGURES = {
    "text": str,
    "tokens": int,
    "rounds": int,
    "tokens_per_round": float,
    "acceptance_rate": float,
    "uplink_bits_per_token": float,
    "downlink_bits_per_token": float,
    "ttft_s": float,
    "itl_p50_s": float,
    "itl_p90_s": float,
    "tokens_per_s": float,
    "cloud_passes_per_token": float,
    "method": str,
    "exact": bool,
    "finish_reason": str,
}


@pytest.mark.parametrize("method", ["dsd", "dssd", "xcosd", "xcosd-e"])
def test_generate_prints_the_text_and_then_the_figures(
    cloud: str, method: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--cloud", cloud, "--model", "toy-device", "--method", method, "--max-tokens", "20", "--seed", "1", "--json"]
    assert run("generate", *arguments, "--temperature", "0", "--check", "the ", monkeypatch=monkeypatch) == 0
    out, err = capsys.readouterr()
    text, line = out.rstrip("\n").rsplit("\n", 1)
    figures = json.loads(line)
    assert figures["text"] == text
    assert {name: type(figures[name]) for name in FIGURES} == FIGURES
    assert figures["check"]["equal"] is True
    assert set(figures["check"]) >= {"equal", "finding", "first_difference", "gap", "noise"}
    assert "check: the same tokens as `cloud`" in err
    assert f"{method}: 20 tokens" in err


def test_the_summary_of_a_stream_counts_its_drafts(
    cloud: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has no rounds. In lockstep there are, and drafts that were not tested are of no interest."""
    asked = ("generate", "--cloud", cloud, "--model", "toy-device", "--max-tokens", "20", "--seed", "1", "--json", "the ")
    assert run(*asked, "--patience", "20", monkeypatch=monkeypatch) == 0
    out, err = capsys.readouterr()
    figures = json.loads(out.splitlines()[-1])
    assert (figures["rounds"], figures["tokens_per_round"]) == (None, None)
    assert f"{figures['drafted']} drafts sent, {figures['accepted']} of {figures['tested']} tested accepted" in err
    assert f"{figures['cloud_passes_per_token']:.2f} cloud passes a token" in err
    assert run(*asked, "--patience", "lockstep", monkeypatch=monkeypatch) == 0
    out, err = capsys.readouterr()
    figures = json.loads(out.splitlines()[-1])
    assert f"{figures['tokens_per_round']:.2f} tokens a round" in err
    assert f"{figures['acceptance_rate']:.0%} of tested drafts accepted" in err
    assert "drafts sent" not in err


@pytest.mark.medium
def test_a_cloud_that_is_patient_waits_for_drafts_though_the_device_asks_it_not_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The device's model is the cloud's own, so all drafts stand, and a pass for which one was waited brings two tokens."""
    with serving_command("--model", "toy-cloud", "--patience", "5000") as (url, _):
        ends = ("--cloud", url, "--model", "toy-cloud", "--patience", "0", "-o", "lookup=off")
        answer = ("--max-tokens", "24", "--seed", "1", "--json", "the ")
        assert run("generate", *ends, *answer, monkeypatch=monkeypatch) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["cloud_passes_per_token"] < 0.75


@pytest.mark.medium
def test_the_prompt_can_come_from_stdin(cloud: str) -> None:
    command = [*COMMAND, "generate", "--cloud", cloud, "--method", "cloud", "--max-tokens", "5", "--seed", "1"]
    piped = subprocess.run([*command, "-"], input="the ", capture_output=True, text=True, check=True)
    given = subprocess.run([*command, "the "], capture_output=True, text=True, check=True)
    assert piped.stdout == given.stdout
    broken = subprocess.run([*command, "-"], input=b"\xff", capture_output=True, check=False)
    assert broken.returncode == 2
    assert b"the prompt on stdin is not UTF-8" in broken.stderr


def test_doctor(cloud: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("doctor", "--cloud", cloud, "--model", "toy-device", "--json", monkeypatch=monkeypatch) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["common_tokens"] == 265
    assert "work together" in found["verdict"]


@pytest.mark.medium
def test_demo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    models = ["--cloud-model", "toy-cloud", "--model", "toy-device", "--max-tokens", "16"]
    picture = tmp_path / "demo.svg"
    assert run("demo", *models, "--json", "--picture", str(picture), monkeypatch=monkeypatch) == 0
    out, err = capsys.readouterr()
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["method"] for row in rows] == ["cloud", "dsd", "dssd", "xcosd", "xcosd-e", "coupled"]
    assert all(row["text"] == rows[0]["text"] for row in rows)
    assert all(set(row) >= set(FIGURES) for row in rows)
    assert "dsd, dssd, xcosd, xcosd-e, coupled: the very tokens of cloud" in err
    speeds = {row["method"]: row["tokens_per_s"] for row in rows}
    assert f"coupled: {speeds['coupled'] / speeds['cloud']:.2f} times the tokens a second of cloud" in err
    assert err.count(" times the tokens a second") == 1
    assert picture.read_text().startswith("<svg")


def test_bench_overhead(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bench", "overhead", "--rounds", "20", monkeypatch=monkeypatch, main=laboratory) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["rounds"] >= 20
    assert 0 < found["overhead_median_ms"] <= found["overhead_p99_ms"]
    assert found["overhead_median_ms"] < found["round_median_ms"]


def test_bench_noise(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bench", "noise", "--tokens", "9,300", "--repeats", "3", "--json", monkeypatch=monkeypatch, main=laboratory) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(cost["tokens"], cost["repeats"]) for cost in found["costs"]] == [(9, 3), (300, 3)]
    assert "bench noise --tokens 9,300" in found["origin"]["command"]
    assert run("bench", "noise", "--tokens", "many", monkeypatch=monkeypatch, main=laboratory) == 2


WITH_TOY = ("generate", "--model", "toy-device", "x")


@pytest.mark.core(6)
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((*WITH_TOY,), "the method coupled needs a cloud: give --cloud ws://HOST:PORT"),
        (("generate", "--cloud", "ws://127.0.0.1:1", "x"), "the method coupled drafts on the device: give --model"),
        ((*WITH_TOY, "--cloud", "ws://127.0.0.1:1"), "is `antiphon serve` running there?"),
        ((*WITH_TOY, "--cloud", "http://127.0.0.1:1"), "is no WebSocket address"),
        (
            (*WITH_TOY, "--method", "telepathy"),
            "there is no method 'telepathy': use one of cloud, coupled, coupled-tree, ",
        ),
        ((*WITH_TOY, "--method", "concord"), "the method concord answers from documents: `antiphon ask` runs it"),
        ((*WITH_TOY, "--draft-length", "few"), "draft_length must be a whole number or auto, not 'few'"),
        ((*WITH_TOY, "--draft-length", "17"), "draft length must be 1 to 16, or 0 (auto), not 17"),
        ((*WITH_TOY, "--method", "coupled", "-o", "ahead=33"), "ahead must be 0 to 32 drafts, or -1 (auto), not 33"),
        ((*WITH_TOY, "--method", "dssd", "-o", "precision=8"), "precision must be 16 or 32 bits, not 8"),
        ((*WITH_TOY, "-o", "ahead"), "an option is written name=value, not 'ahead'"),
        (
            (*WITH_TOY, "-o", "head=3"),
            "has no option 'head' (did you mean ahead?): it has draft_length, ahead",
        ),
        (
            (*WITH_TOY, "--method", "dssd", "-o", "ahead=3"),
            "dssd has no option 'ahead': it has draft_length, draft_prec",
        ),
        ((*WITH_TOY, "--method", "cloud", "-o", "ahead=3"), "the method cloud has no option 'ahead', nor any other"),
        (
            (*WITH_TOY, "--method", "coupled-tree", "--draft-length", "3"),
            "has no option 'draft_length': it has expansion",
        ),
        ((*WITH_TOY, "--method", "tslt-tree", "-o", "replacement=maybe"), "replacement must be true or false, not 'maybe'"),
        (("methods", "telepathy"), "there is no method 'telepathy': use one of cloud, concord, "),
        ((*WITH_TOY, "--temperature", "-1"), "temperature must be between 0 and 100, not -1.0"),
        ((*WITH_TOY, "--top-p", "0"), "top-p must be above 0 and at most 1 (off), not 0.0"),
        ((*WITH_TOY, "--max-tokens", "0"), "max-tokens must be at least 1, not 0"),
        (
            (*WITH_TOY, "--method", "xcosd-e", "--check"),
            "--check compares tokens, which only --temperature 0 makes equal for xcosd-e: or use coupled",
        ),
        ((*WITH_TOY, "--method", "device", "--check"), "--check compares with `cloud`, which device does not promise to equal"),
        (("generate", "--model", "toy-device", "--method", "device", ""), "the prompt is empty"),
        (("generate", "--model", "toy-nothing", "--method", "device", "x"), "there is no toy model 'toy-nothing'"),
        (("serve", "--model", "no/such/file.gguf", "--port", "0"), "there is no file no/such/file.gguf"),
        (("serve", "--model", "toy-cloud", "--port", "99999"), "port must be 0 (any free one) to 65535, not 99999"),
        (("serve", "--model", "toy-cloud", "--patience", "-1"), "a cloud's patience must be 0 to 60000 ms, not -1"),
        (("serve", "--model", "toy-cloud", "--patience", "nan"), "a cloud's patience must be 0 to 60000 ms, not nan"),
        ((*WITH_TOY, "--patience", "soon"), "patience must be a number, auto or lockstep, not 'soon'"),
        (("serve", "--model", "toy-cloud", "--host", "203.0.113.1"), "cannot listen on 203.0.113.1:8765"),
        (("serve", "--model", "toy-cloud", "--context", "1", "--port", "0"), "context must be 16 to 1048576 tokens, not 1"),
        (("demo", "--methods", "cloud,magic"), "there is no method 'magic'"),
        (("demo", "--methods", "cloud,dragon", "--cloud-model", "no.gguf"), "there is no method 'dragon'"),
        (("demo", "--draft-length", "99", "--cloud-model", "no.gguf"), "draft length must be 1 to 16, or 0 (auto), not 99"),
        (("demo", "--max-tokens", "0", "--cloud-model", "no.gguf"), "max-tokens must be at least 1, not 0"),
        (("demo", "--cloud-model", "no.gguf", "--model", "toy-device"), "there is no file no.gguf"),
    ],
)
def test_what_a_person_can_mend(
    arguments: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments, monkeypatch=monkeypatch) == 2
    complaint = capsys.readouterr().err.strip().splitlines()[-1]
    assert complaint.startswith("antiphon: ")
    assert sentence in complaint


@pytest.mark.parametrize(("command", "lines"), [("generate", 48), ("ask", 56)])
def test_the_help_fits_two_screens(
    command: str, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(command, "--help", monkeypatch=monkeypatch) == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) <= lines
    assert all(f" {group} " in shown for group in ("Ends", "Method", "Sampling", "Answer"))


def test_methods_are_listed_with_their_options(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert run("methods", monkeypatch=monkeypatch) == 0
    listed = capsys.readouterr().out
    assert all(re.search(rf"^ {name} +│ (not )?exact +│ (generate|ask) ", listed, re.MULTILINE) for name in ALL_METHODS)
    assert listed.count("(baseline)") == len(BASELINES)
    for name, method in ALL_METHODS.items():
        assert run("methods", name, monkeypatch=monkeypatch) == 0
        told = capsys.readouterr().out
        assert all(
            re.search(rf"^ {one.name} +│ {re.escape(one.shown)} ", told, re.MULTILINE) for one in options_of(method.options)
        )
        assert all(need in " ".join(told.split()) for need in method.needs)


@pytest.mark.parametrize(
    ("method", "given"), [("xcosd-e", "candidates=2"), ("coupled-tree", "expansion=4,2"), ("dsd", "draft_length=1")]
)
def test_an_option_of_the_method_is_given_with_o(
    cloud: str, method: str, given: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--cloud", cloud, "--model", "toy-device", "--method", method, "--temperature", "1", "--seed", "1", "--json"]
    figures = []
    for options in ([], ["-o", given], ["--option", given]):
        assert run("generate", *arguments, *options, "the ", monkeypatch=monkeypatch) == 0
        figures.append(json.loads(capsys.readouterr().out.splitlines()[-1]))
    usual, ours, long = (one["uplink_bits_per_token"] + one["downlink_bits_per_token"] for one in figures)
    assert usual != ours == long


def test_an_unknown_flag_is_exit_code_two(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("generate", "--frobnicate", "x", monkeypatch=monkeypatch) == 2


def test_a_port_in_use(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run("serve", "--model", "toy-cloud", "--port", str(port), monkeypatch=monkeypatch) == 2
    assert f"cannot listen on 127.0.0.1:{port} (Address already in use)" in capsys.readouterr().err


def test_a_cache_that_cannot_be_written(
    cloud: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("ANTIPHON_CACHE", str(blocked / "below"))
    assert run(*WITH_TOY, "--cloud", cloud, monkeypatch=monkeypatch) == 2
    assert "set ANTIPHON_CACHE" in capsys.readouterr().err


@pytest.mark.slow
def test_a_cloud_that_dies_mid_answer(tmp_path: Path) -> None:
    """It is looked for for half a minute, which is said; then it is one sentence."""
    command = [*COMMAND, "serve", "--model", "toy-cloud", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"ws://\S+", process.stdout.readline())
        assert found
        arguments = ["generate", "--cloud", found.group(), "--model", "toy-device", "--max-tokens", "4000", "--top-p", "1"]
        bias = ["--temperature", "100"]  # flat, so the answer seldom ends by itself
        with subprocess.Popen(
            [*COMMAND, *arguments, *bias, "--seed", "4", "x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as device:
            assert device.stdout is not None
            assert device.stderr is not None
            device.stdout.read(20)
            process.kill()
            device.stdout.read()
            complaint = device.stderr.read().decode()
    assert device.returncode == 2
    looking, *_, last = complaint.splitlines()
    assert looking.startswith("antiphon: the cloud at ws://")
    assert looking.endswith("; trying again for 30 s")
    assert re.fullmatch(r"antiphon: the cloud at .* closed the connection .*, and it did not come back within 30 s", last)
    assert "Traceback" not in complaint


def test_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version", monkeypatch=monkeypatch) == 0
    assert re.fullmatch(r"antiphon \d+\.\d+\.\d+\n", capsys.readouterr().out)


CUT_WHILE_LOADING = """
import sys

class Cut:
    def find_spec(self, name, *others):
        if name == "antiphon.cli.ask":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Cut())
from antiphon.__main__ import main
main()
"""


@pytest.mark.medium
def test_ctrl_c_while_the_command_line_is_loaded_ends_it_without_a_word() -> None:
    ended = subprocess.run([sys.executable, "-c", CUT_WHILE_LOADING], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")

"""`antiphon ask` as a person meets it: an answer from several libraries, marked; one sentence for what can be mended."""

import inspect
import io
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from antiphon.cli.ask import ask
from antiphon.retrieval.index import Found
from antiphon.retrieval.sqlite.index import SqliteIndex
from antiphon.retrieval.weights import BM25_TEMPERATURE, COSINE_TEMPERATURE
from cli.ask.asking import ASK, PATIENT, Asking, run
from support.libraries import PRIVATE, PUBLIC, QUESTION, make_library, serving_command, serving_toy, toy
from support.tinyembedder import make_embedder

MARKS = ("local", "certain", "confirmed", "changed")


def test_an_answer_with_its_marks_and_sources(folder: Path, asked: Asking, others: tuple[str, str]) -> None:
    out, err = asked("--json", *PATIENT, QUESTION, clouds=others[:1])
    text, line = out.rstrip("\n").rsplit("\n", 1)
    figures = json.loads(line)
    assert figures["text"] == text
    assert [mark["id"] for mark in figures["marks"]] == figures["token_ids"]
    counted = Counter(mark["mark"] for mark in figures["marks"])
    assert {"confirmed", "changed"} <= set(counted) <= {"confirmed", "changed", None}
    for mark in MARKS:
        assert counted[mark] <= round(figures[mark] * figures["tokens"]) <= counted[mark] + counted[None]
    (source,) = figures["passages"]["device"]
    assert source["source"] == str(folder / "private.jsonl")
    assert (source["place"], source["title"]) == ("row 1", "Diary")
    assert figures["passages"]["clouds"] == {others[0]: 1}
    assert sum(figures["weights"].values()) == pytest.approx(1)
    assert figures["lost"] is False
    assert re.fullmatch(
        r"concord-nosystem: \d+ tokens \(0% local, 0% certain, \d+% confirmed, \d+% changed\), exact, [\d.,]+ bytes up and "
        r"[\d.,]+ down a token, [\d.]+ tokens/s, waited [\d.]+ s, passages: 1 here \(weight 0.\d\d\), 1 at ws://\S+ "
        r"\(weight 0.\d\d\), ended by (end|length), seed 3\n",
        err,
    )


@pytest.mark.medium
def test_passages_that_do_not_fit_are_told_of_both_ends(folder: Path, asked: Asking) -> None:
    with serving_command("--model", "toy-cloud", "--library", str(folder / "long.db")) as (url, _):
        out, err = asked("--json", *PATIENT, QUESTION, clouds=(url,))
        passages = json.loads(out.splitlines()[-1])["passages"]
        assert passages["left_out"] == {"device": 0, url: 2}
        assert passages["clouds"] == {url: 0}
        assert f", 2 more of those at {url} did not fit its model's context (--max-tokens), " in err
        assert "of yours did not" not in err
        _, err = asked(*PATIENT, "--library", str(folder / "long.db"), QUESTION, clouds=(url,))
        assert (
            ", 2 more of yours did not fit its model's context (--context, or a library with fewer --words), 2 more of" in err
        )


def test_the_library_is_searched_once(folder: Path, asked: Asking, cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shown is what the answer was written with."""
    searched: list[tuple[str, int]] = []
    search = SqliteIndex.search

    def counted(self: SqliteIndex, question: str, count: int) -> list[Found]:
        searched.append((question, count))
        return search(self, question, count)

    monkeypatch.setattr(SqliteIndex, "search", counted)
    for arguments, clouds in ((("-o", "passages=1"), (cloud,)), (("-o", "passages=1", "--method", "crcg"), ())):
        searched.clear()
        figures = asked.figures(*arguments, QUESTION, clouds=clouds)
        assert searched == [(QUESTION, 1)]
        assert [passage["title"] for passage in figures["passages"]["device"]] == ["Diary"]


@pytest.mark.medium
def test_the_temperature_of_weights_must_be_the_same(
    folder: Path, asked: Asking, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At both ends: the lower, the more the end with the better passage weighs."""
    weights = []
    for tau in ("1000", "2"):
        served = ["--library", str(folder / "public.db"), "--weight-temperature", tau]
        with serving_command("--model", "toy-cloud", *served) as (url, _):
            figures = asked.figures("--weight-temperature", tau, "--method", "concord-nosystem", QUESTION, clouds=(url,))
            weights.append(figures["weights"])
            arguments = ["--cloud", url, "--model", "toy-cloud", "--library", str(folder / "private.db"), QUESTION]
            assert run("ask", *arguments, monkeypatch=monkeypatch) == 2
            complaint = capsys.readouterr().err
            assert "both ends must score passages alike" in complaint
            assert complaint.count("\n") == 1
    assert weights[0]["device"] == pytest.approx(0.5, abs=0.01)
    assert abs(weights[1]["device"] - 0.5) > abs(weights[0]["device"] - 0.5)


@pytest.mark.medium
def test_by_vectors_at_both_ends(
    tmp_path: Path, asked: Asking, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Passages that share no word with the question are found; who gives no embedder, or has no vectors, is told so."""
    embedder = make_embedder(tmp_path / "embedder")
    for name, text in (("own", "The physician sleeps."), ("public", "Take the pills twice a day.")):
        make_library(tmp_path / f"{name}.db", {name: text}, embedder=embedder)
    own, public = (["--library", str(tmp_path / f"{name}.db")] for name in ("own", "public"))
    with serving_command("--model", "toy-cloud", *public, "--embedder", str(embedder)) as (url, _):
        question = ["--cloud", url, "--model", "toy-cloud", *own, "which doctor", "--json"]
        assert run("ask", "--embedder", str(embedder), *question, monkeypatch=monkeypatch) == 0
        figures = json.loads(capsys.readouterr().out.splitlines()[-1])
        (passage,) = figures["passages"]["device"]
        assert passage["title"] == "own"
        assert passage["score"] > 0.9, "the cosine"
        assert figures["weights"]["device"] > 0.8
        assert run("ask", *question, monkeypatch=monkeypatch) == 2
        assert "both ends must score passages alike" in capsys.readouterr().err


def test_serving_passages_without_vectors(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before a device asks in vain."""
    arguments = ["--model", "toy-cloud", "--port", "0", "--library", str(folder / "public.db")]
    assert run("serve", *arguments, "--embedder", str(make_embedder(tmp_path / "e")), monkeypatch=monkeypatch) == 2
    sentence = "antiphon: 2 passages have no vectors yet: run `antiphon library update` with --embedder\n"
    assert capsys.readouterr().err == sentence


def test_only_the_name_of_the_models_file_is_told(
    asked: Asking, cloud: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = toy(1)
    model.name = "/home/ann/models/small.gguf"
    monkeypatch.setattr("antiphon.models.catalog.load", lambda config: model)
    asked.figures("--disclosure-log", str(tmp_path / "log"), QUESTION, clouds=(cloud,))
    hello = json.loads((tmp_path / "log").read_text().splitlines()[1])["message"]
    assert (hello["type"], hello["model"]) == ("Hello", "small.gguf")


def test_the_same_scores_at_both_ends_change_nothing(asked: Asking, cloud: str) -> None:
    """`toy-cloud` at both: the mixture is what either would write, whatever the options."""
    plain = asked.figures(QUESTION, clouds=(cloud,))
    assert plain["changed"] == 0
    given = "first=1 ids_per_question=2 questions=1 chunk=9 chunks=2 delta=0.1 ahead=3 epsilon=0.2 bound=global timeout=0.4 "
    given += "short_timeout=0.002 debt_threshold=2 max_debt=5 debt_repayment=0.5 gate=0.9 realign=hard certificate=upper "
    given += "timeout_decay=halving undrafted=local passages=1 min_share=0.5 packing=topp packing_top_p=0.8"
    options = [word for text in given.split() for word in ("-o", text)]
    other = asked.figures(*options, QUESTION, clouds=(cloud,))
    assert other["token_ids"] == plain["token_ids"]


def test_two_clouds(asked: Asking, others: tuple[str, str], tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    figures = asked.figures("--disclosure-log", str(log), *PATIENT, QUESTION, clouds=others)
    assert figures["passages"]["clouds"] == dict.fromkeys(others, 1)
    assert set(figures["weights"]) == {"device", *others}
    assert figures["consulted"] == 1
    one = asked.figures(*PATIENT, QUESTION, clouds=others[:1])
    assert one["token_ids"] != figures["token_ids"]  # the second cloud had its say
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line["cloud"] for line in lines if "frame" in line} == set(others)
    assert set(lines[-1]["summary"]["bytes_by_cloud"]) == set(others)


def test_push_asks_for_no_ids(asked: Asking, others: tuple[str, str], tmp_path: Path) -> None:
    answers = {}
    for disclosure in ("ids", "push"):
        log = tmp_path / disclosure
        arguments = ["--disclosure", disclosure, "--disclosure-log", str(log), "-o", "bound=global", "-o", "first=1"]
        figures = asked.figures(*arguments, *PATIENT, QUESTION, clouds=others[:1])
        summary = json.loads(log.read_text().splitlines()[-1])["summary"]
        assert (summary["ids_asked"] > 0) == (disclosure == "ids")
        assert (figures["questions"] > 0) == (disclosure == "ids")
        answers[disclosure] = figures["token_ids"]
    assert answers["ids"] == answers["push"]


@pytest.mark.parametrize("form", ["question", "text"])
def test_the_question_can_come_from_stdin(asked: Asking, cloud: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newline that `echo` adds is no part of what is asked."""
    given = asked.figures("-o", f"prompt_format={form}", QUESTION, clouds=(cloud,))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{QUESTION}\n".encode())))
    piped = asked.figures("-o", f"prompt_format={form}", "-", clouds=(cloud,))
    assert piped["prompt_tokens"] == given["prompt_tokens"]


def test_a_question_on_stdin_that_is_no_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    assert run("ask", "--model", "toy-cloud", "-", monkeypatch=monkeypatch) == 2
    assert capsys.readouterr().err == "antiphon: the question on stdin is not UTF-8 (byte 0): convert it first\n"


@pytest.mark.parametrize(("library", "question"), [("private", "xylophone"), ("empty", QUESTION)])
def test_nothing_found_here(
    folder: Path, cloud: str, library: str, question: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--cloud", cloud, "--model", "toy-cloud", "--library", str(folder / f"{library}.db"), "--json", question]
    assert run("ask", *arguments, monkeypatch=monkeypatch) == 0
    out, err = capsys.readouterr()
    figures = json.loads(out.splitlines()[-1])
    assert figures["tokens"] > 0
    assert figures["passages"]["device"] == []
    assert figures["weights"]["device"] == (0.0 if library == "empty" else 0.5)
    assert "passages: none here (your library has nothing of this question), " in err


@pytest.mark.slow
def test_encrypted_libraries(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At both ends, each with a key of its own."""
    pytest.importorskip("sqlcipher3")
    for name, documents in (("own", PRIVATE), ("public", PUBLIC)):
        (tmp_path / f"{name}.key").write_text(f"the key of {name}\n")
        make_library(tmp_path / f"{name}.db", documents, tmp_path / f"{name}.key")
    served = ["--library", str(tmp_path / "public.db"), "--library-key-file", str(tmp_path / "public.key")]
    with serving_command("--model", "toy-cloud", *served) as (url, _):
        arguments = ["--cloud", url, "--model", "toy-cloud", "--library", str(tmp_path / "own.db"), QUESTION]
        assert run("ask", "--library-key-file", str(tmp_path / "own.key"), *arguments, monkeypatch=monkeypatch) == 0
        assert "passages: 1 here" in capsys.readouterr().err
        assert run("ask", *arguments, monkeypatch=monkeypatch) == 2
    assert "is encrypted, or is no library: give its key" in capsys.readouterr().err


def test_the_device_alone(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--model", "toy-cloud", "--library", str(folder / "private.db"), "--method", "crcg", "--json", QUESTION]
    assert run("ask", *arguments, monkeypatch=monkeypatch) == 0
    out, err = capsys.readouterr()
    figures = json.loads(out.splitlines()[-1])
    assert (figures["local"], figures["passages"]["clouds"], figures["weights"]) == (1, {}, {})
    assert "0.0 bytes up and 0.0 down a token" in err
    assert "passages: 1 here, ended by" in err


@pytest.mark.slow
def test_a_cloud_that_dies_mid_answer(folder: Path) -> None:
    with serving_toy(2, folder / "public.db") as (url, process):
        command = [
            *ASK,
            "--cloud",
            url,
            "--model",
            "toy-cloud",
            "--library",
            str(folder / "private.db"),
            *PATIENT[:-2],
            "--json",
        ]
        flat = ["--temperature", "50", "--max-tokens", "1500", "--seed", "4", QUESTION]  # so the answer seldom ends by itself
        with subprocess.Popen([*command, *flat], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as device:
            assert device.stdout is not None
            assert device.stderr is not None
            device.stdout.read(10)
            process.kill()
            figures = json.loads(device.stdout.read().splitlines()[-1])
            summary = device.stderr.read().decode()
    assert device.returncode == 0
    assert "Traceback" not in summary
    assert "a cloud was lost on the way" in summary
    assert figures["lost"]
    assert figures["local"] > 0
    assert {mark["mark"] for mark in figures["marks"][:3]} <= {"confirmed", "changed", None}


def test_the_help_says_tau() -> None:
    tau = get_args(inspect.signature(ask).parameters["weight_temperature"].annotation)[-1].help
    assert f"Unless given {BM25_TEMPERATURE:g} by words, {COSINE_TEMPERATURE:g} by vectors" in tau


REAL = ("smollm2-135m", "when did the old mill burn down")


NOTES = {
    "Mill": "The old mill in our village burned down in 1911. It was built by Anna Berger.",
    "Garden": "The tomatoes need water twice a week.",
}


PAGES = {"Mills": "A mill grinds grain into flour.", "Sweden": "Stockholm is the capital of Sweden."}


@pytest.mark.model
def test_the_real_model_at_both_ends(tmp_path: Path) -> None:
    name, question = REAL
    private, public = make_library(tmp_path / "notes.db", NOTES), make_library(tmp_path / "pages.db", PAGES)
    log = tmp_path / "log.jsonl"
    serve = ["--model", name, "--threads", "1", "--context", "1024", "--library", str(public)]
    with serving_command(*serve) as (url, _):
        arguments = ["--cloud", url, "--model", name, "--threads", "1", "--context", "1024", "--library", str(private)]
        arguments += ["--max-tokens", "24", "--seed", "1", "--disclosure-log", str(log), "--json", question]
        done = subprocess.run([*ASK, *arguments], capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout.splitlines()[-1])
    assert "1911" in figures["text"]
    assert len(figures["marks"]) == figures["tokens"] > 0
    assert {mark["mark"] for mark in figures["marks"]} <= set(MARKS)
    assert sum(figures[mark] for mark in MARKS) == pytest.approx(1)
    assert figures["passages"]["device"][0]["title"] == "Mill"
    assert "tomatoes" not in log.read_text()

"""`antiphon-lab bench rag` on toys: figures, the dense mixture, going on after a stop, and what a person can mend."""

import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.config import ModelConfig, Request, SamplingParams
from antiphon.errors import UsageError
from antiphon.methods.effects import Kind
from antiphon.methods.mixture.options import MixtureOptions
from antiphon.models.toy import toy_pieces
from antiphon_lab.cli import main
from antiphon_lab.ends.remembering_model import RememberingModel
from antiphon_lab.experiments.rag import run as rag
from antiphon_lab.experiments.rag.answers import Desk, Setting, Written, steps
from antiphon_lab.experiments.rag.ends import VirtualEnds
from antiphon_lab.experiments.rag.figures import Figures, consulted, quantile
from antiphon_lab.experiments.rag.forced import forced
from antiphon_lab.experiments.rag.page import page
from antiphon_lab.experiments.rag.rows import parse_row
from antiphon_lab.experiments.rag.run import Plan, Report, cases_of, run
from antiphon_lab.experiments.rag.tables import parts, tables
from antiphon_lab.hardware.profiles import PROFILES
from antiphon_lab.links.notation import parse_link
from antiphon_lab.report.origin import origin
from antiphon_lab.store import Store
from antiphon_lab.workloads.documents import find_task, libraries
from lab.rag_data import write_rag_data
from support.mixtures import Reader

READER = ModelConfig("reader-0")
"""A toy whose scores depend on all that it has read, so on its documents."""
ROWS = "crcg,drcg,drdg-sw,drdg-tw,dragon,concord,concord-nosystem,concord-nocomm"
LETTER = "to the letter: concord+gate=off+bound=global+certificate=upper+realign=hard+undrafted=local+min_share=0"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(rag, "load", lambda config: Reader(0, pieces=toy_pieces(order=1)))
    return write_rag_data(tmp_path)


def plan(data: Path, rows: str = ROWS, task: str = "nq", links: tuple[str, ...] = ("concord",), **changes: object) -> Plan:
    fields: dict = {"temperature": 0.0, "tokens": 8, "examples": 3, "results": data / "results.jsonl", "real": False}
    fields |= {"skipped": 0, **changes}
    found = find_task(task)
    setting = Setting(
        found, (READER, READER), SamplingParams(temperature=fields["temperature"]), fields["tokens"], 1, fields["real"]
    )
    named = [parse_row(row, MixtureOptions(prompt_format=found.form)) for row in rows.split(",")]
    cases = cases_of(named, [parse_link(link) for link in links], PROFILES["4090d-1.7b"])
    return Plan(data, setting, cases, fields["examples"], fields["results"], fields["skipped"])


def rows_of(report: Report) -> dict[str, Figures]:
    (where,) = report.settings
    return report.rows(*where)


def test_rows_are_written_as_a_method_with_changes() -> None:
    usual = MixtureOptions(passages=3, prompt_format="text")
    row = parse_row("concord+gate=off+bound=global+first=4", usual)
    assert (row.name, row.method) == ("concord+gate=off+bound=global+first=4", "concord")
    assert row.options == replace(usual, gate=math.inf, bound="global", first=4)
    named = parse_row(LETTER, usual)
    assert named.name == "to the letter"
    assert named.key == replace(named, name="other").key != row.key
    for text, sentence in (
        ("concord+timeouts=3", "has no option 'timeouts' \\(did you mean timeout\\?\\)"),
        ("concord+first=few", "first must be a whole number"),
        ("concord+first=0", "first must be 1 to 256"),
        ("dssd", "dssd"),
        ("concord+realign=firm", "soft or hard"),
    ):
        with pytest.raises(UsageError, match=sentence):
            parse_row(text, usual)


@pytest.mark.medium
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_is_dense_is_dense_and_what_is_not_is_counted(data: Path, temperature: float) -> None:
    rows = rows_of(
        run(plan(data, f"{ROWS},dragon+packing=topp+packing_top_p=0.3,{LETTER}", temperature=temperature, examples=6))
    )
    exact = ("drdg-tw", "concord-nosystem") if temperature else ("drdg-tw", "dragon", "concord-nosystem")
    for name in exact:
        assert rows[name].different is not None
        assert rows[name].different.mean == 0
    for name in () if temperature else ("crcg", "drcg", "dragon+packing=topp+packing_top_p=0.3"):
        assert rows[name].different is not None
        assert rows[name].different.mean > 0
    for name in ("crcg", "drcg", "dragon") if temperature else ():
        assert rows[name].different is None
    assert [one.text for one in rows["concord-nosystem"].answers] == [one.text for one in rows["drdg-tw"].answers]


def test_a_row_s_first_wrong_token_is_where_it_leaves_the_dense_answer(data: Path) -> None:
    rows = rows_of(run(plan(data, "crcg,drdg-tw", examples=6, tokens=1)))
    apart = sum(ours.text != theirs.text for ours, theirs in zip(rows["crcg"].answers, rows["drdg-tw"].answers, strict=True))
    assert sum(one.different for one in rows["crcg"].answers) == apart > 0


def test_what_is_skipped_is_what_fewer_would_have_been(data: Path) -> None:
    """So that new examples are those that no shorter run has seen."""
    names = [
        [one.example for one in rows_of(run(plan(data, "crcg", examples=count, skipped=skipped)))["crcg"].answers]
        for count, skipped in ((6, 0), (2, 0), (4, 2))
    ]
    assert names[0] == [*names[1], *names[2]]


def test_figures_add_up(data: Path) -> None:
    report = run(plan(data))
    rows = rows_of(report)
    for name, one in rows.items():
        steps = {label: mean.mean for label, mean in one.steps().items()}
        kinds = sum(one.share(lambda step, kind=kind: step.kind is kind).mean for kind in Kind)
        assert kinds == pytest.approx(1)
        told = {step.kind for answer in one.answers for step in answer.steps if step.evidence}
        assert told <= {Kind.CONFIRMED, Kind.CHANGED}
        assert steps["certain"] + steps["late"] + steps["participation"] == pytest.approx(1), name
        assert one.tokens_per_s.mean == pytest.approx(
            sum(answer.tokens for answer in one.answers) / sum(answer.seconds for answer in one.answers)
        )
        shown = one.steps()
        if one.share(consulted).mean:
            assert shown["certified_of_consulted"].mean + shown["forced_of_consulted"].mean == pytest.approx(1)
        seconds = sum(answer.times[-1] - answer.times[0] for answer in one.answers)  # of two whole answers mixed there are none
        decoded = sum(answer.tokens - 1 for answer in one.answers)
        assert one.decoding_per_s.mean == pytest.approx(decoded / seconds if seconds else 0)
    assert rows["dragon"].speedup is not None
    assert rows["dragon"].speedup.mean == 1
    assert rows["crcg"].bytes.mean == rows["crcg"].messages.mean == 0
    assert rows["concord"].bytes.mean < rows["dragon"].bytes.mean
    for one in rows.values():
        opened = one.per_token(lambda answer: answer.opening / 8).mean
        assert one.bytes.mean == pytest.approx(opened + one.per_token(lambda answer: sum(answer.up + answer.down) / 8).mean)
    assert 8 * rows["concord"].per_answer(lambda answer: answer.opening).mean > 1000
    assert rows["drdg-tw"].tokens_per_s.mean < rows["concord"].tokens_per_s.mean < rows["crcg"].tokens_per_s.mean
    assert rows["drdg-tw"].difference is None  # of so few examples
    found = json.loads(json.dumps(report.as_json()))
    assert [row["row"] for row in found["settings"][0]["rows"]] == ROWS.split(",")
    assert found["settings"][0]["rows"][0]["itl_cdf"][-1][1] == 1


def test_a_round_trip_is_what_lockstep_waits_for(data: Path) -> None:
    report = run(plan(data, "drdg-tw,crcg", links=("concord@80", "concord@180")))
    near, far = (report.rows(*where) for where in report.settings)
    gaps = [quantile(one["drdg-tw"].between_tokens_s(), 50) or 0.0 for one in (near, far)]
    assert gaps[1] - gaps[0] == pytest.approx(0.1, abs=0.001)
    assert near["crcg"].tokens_per_s.mean == pytest.approx(far["crcg"].tokens_per_s.mean)


@pytest.mark.medium
def test_a_run_goes_on_where_it_stopped(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(plan(data, examples=2)).as_json()
    file = data / "results.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:5]) + lines[5][:40])
    written: list[str] = []
    original = Desk.write

    def counted(desk: Desk, example: object, case: object) -> Written:
        found = original(desk, example, case)
        written.append(found.example)
        return found

    monkeypatch.setattr(Desk, "write", counted)
    assert run(plan(data, examples=2)).as_json() == whole
    assert len(written) == len(lines) - 5
    run(plan(data, examples=3))
    assert len(written) == len(lines) - 5 + 8
    assert len(Store(file)) == 24


def test_answers_of_other_settings_are_others(data: Path) -> None:
    for changes in ({}, {"temperature": 1.0}, {"tokens": 4}, {"links": ("concord@10",)}, {"rows": "crcg+passages=1"}):
        run(plan(data, **{"rows": "crcg", "examples": 1, **changes}))
    assert len(Store(data / "results.jsonl")) == 5


@pytest.mark.medium
def test_the_policy_in_the_loop_is_scored_by_the_distribution_of_each_step(data: Path) -> None:
    rows = "crcg,drcg,drdg-tw,concord,alone: concord-nosystem+gate=1e-9,waits: concord-nosystem+gate=off"
    found = rows_of(run(plan(data, rows, "wikitext", examples=3)))
    dense, alone = found["drdg-tw"].perplexity(0).mean, found["crcg"].perplexity(0).mean
    assert dense != pytest.approx(alone)
    for name in ("drdg-tw", "concord", "alone", "waits"):
        assert found[name].perplexity(0).mean == pytest.approx(dense)
    assert found["waits"].perplexity(1).mean == pytest.approx(dense)
    assert sum(one.forced_alone for one in found["waits"].answers) == 0
    assert found["alone"].perplexity(1).mean == pytest.approx(alone)
    assert sum(one.forced_alone for one in found["alone"].answers) == 3 * 48
    assert found["drcg"].perplexity(0).mean not in (pytest.approx(dense), pytest.approx(alone))


def test_a_forced_answer_is_the_text(data: Path) -> None:
    task, text = find_task("nq"), tuple(range(3, 23))
    model = RememberingModel(Reader(0, pieces=toy_pieces(order=1)))
    with libraries(task, data) as found:
        ends = VirtualEnds((model, model), found)
        request = Request("when did rain", "concord", MixtureOptions(), SamplingParams(temperature=0.0), len(text), seed=1)
        result = ends.write(request, parse_link("concord"), PROFILES["4090d-1.7b"], {"concord": forced("concord", text)})
    assert result.token_ids == text
    assert {step.kind for step in steps(result.answer)} & {Kind.CONFIRMED, Kind.CHANGED}


@pytest.mark.medium
def test_tables_and_page_say_the_same(data: Path) -> None:
    report = run(plan(data, "crcg,drdg-tw,dragon,concord", links=("concord@10", "concord", "concord@100")))
    made = page(report, origin("antiphon-lab bench rag")).render()
    assert len(tables(report)) == 9
    for where in report.settings:
        for _, cells in parts(report.rows(*where)):
            assert all(cell.replace("&", "&amp;") in made for row in cells.values() for cell in row)
    assert "round trip, ms" in made


@pytest.mark.slow
@pytest.mark.parametrize("task", ["nq", "wikitext"])
def test_in_real_time_as_two_processes(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cloud's process has the library that it should have: what is written is the mixture of both."""
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "cache"))
    asked = plan(write_rag_data(tmp_path), "crcg,drdg-tw,concord", task, ("concord@20",), real=True, examples=2)
    reader = ModelConfig("toy-reader")
    rows = rows_of(run(replace(asked, setting=replace(asked.setting, models=(reader, reader)))))
    assert rows["crcg"].different is not None
    assert rows["crcg"].different.mean > 0
    assert rows["drdg-tw"].different is not None
    assert rows["drdg-tw"].different.mean == 0
    gaps = rows["drdg-tw"].between_tokens_s()
    assert min(gaps) > 0.02
    assert rows["concord"].bytes.mean > 0


def test_the_command(data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["antiphon-lab", "bench", "rag", "--data", str(data), "--methods", "crcg,concord+first=2", "--questions", "1"]
    command += ["--tokens", "3", "--html", str(data / "page.html")]
    monkeypatch.setattr(sys, "argv", [*command, "--json"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code in (0, None)
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [row["row"] for row in found["settings"][0]["rows"]] == ["crcg", "concord+first=2"]
    assert "concord+first=2" in (data / "page.html").read_text()


@pytest.mark.medium
def test_every_figure_is_printed(data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless rows are named: all methods, and beside them the paper's own form, the fast gate and the lossy packing."""
    monkeypatch.setenv("COLUMNS", "160")
    for task in ("nq", "wikitext"):
        command = ["antiphon-lab", "bench", "rag", "--data", str(data), "--task", task, "--questions", "1", "--tokens", "3"]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit):
            main()
        shown = capsys.readouterr().out
        for row in (*ROWS.split(","), "dragon top-p", "to the letter", "concord fast"):
            assert len(re.findall(rf"^ {row}  +\S", shown, re.MULTILINE)) == 3
        quality = ("F1", "exact") if task == "nq" else ("perplexity", "policy")
        for heading in (*quality, "queries/s", "tokens/s", "first ms", "between ms", "p50/p90", "not dense", "bytes up"):
            assert heading in shown
        for heading in ("bytes down", "messages", "consulted", "changed", "certified", "forced"):
            assert heading in shown


def test_what_a_person_can_mend(data: Path) -> None:
    for changes, sentence in (
        ({"examples": 0}, "--questions must be at least 1"),
        ({"tokens": 0}, "--tokens must be at least 1"),
        ({"examples": 7}, "--questions must be at most 6"),
        ({"skipped": -1}, "--skip must be 0 or more, not -1"),
        ({"examples": 4, "skipped": 3}, "--questions must be at most 6, with the 3 that are skipped, as many as nq has"),
    ):
        with pytest.raises(UsageError, match=sentence):
            run(plan(data, "crcg", **changes))

"""`antiphon-lab reproduce concord` at scale smoke: everything is there, the numbers are those of the runs, and it goes on."""

import json
import math
import sys
from pathlib import Path

import pytest

from antiphon.config import ModelConfig, SamplingParams
from antiphon_lab.cli import main
from antiphon_lab.experiments.rag.answers import Desk, Written
from antiphon_lab.experiments.rag.figures import consulted
from antiphon_lab.hardware.profiles import PROFILES
from antiphon_lab.papers.concord import paper
from antiphon_lab.papers.concord.claims import claims
from antiphon_lab.papers.concord.page import page
from antiphon_lab.papers.concord.run import (
    BOTH,
    DELAYED,
    FLAT,
    HALVING,
    LETTER,
    LETTER_NOCOMM,
    LETTER_NOSYSTEM,
    LINK,
    NATIVE,
    PAIR,
    TASKS,
    TEXTS_FLAT,
    WAITS,
    Report,
    run,
    slower,
)
from antiphon_lab.papers.plans import Plan
from lab.rag_data import write_rag_data

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rag_data(tmp_path_factory.mktemp("concord"))


@pytest.fixture(scope="module")
def plan(folder: Path) -> Plan:
    reader = ModelConfig("toy-reader")
    out = folder / "out"
    out.mkdir()
    return Plan(folder, "smoke", reader, reader, SamplingParams(temperature=0.0), "4090d-1.7b", out / "concord.jsonl", 1)


@pytest.fixture(scope="module")
def found(folder: Path, plan: Plan) -> Report:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANTIPHON_CACHE", str(folder / "cache"))
        return run(plan)


def test_every_table_and_figure_of_the_paper_is_on_the_page(found: Report) -> None:
    made = page(found).render()
    for number in range(3, 8):
        assert f"igure {number}" in made
    assert "Table I " in made
    assert "Table II" in made
    assert "Debt over time" in made
    assert made.count("<svg") == 20
    json.dumps(found.as_json())


def test_the_paper_s_numbers_stand_beside_ours(found: Report) -> None:
    made = page(found).render()
    tables = [value for name, value in vars(paper).items() if name.isupper() and isinstance(value, dict)]
    assert len(tables) == 16
    for theirs in tables:
        assert all(f">{number}<" in made for number in theirs.values())
    for number in (paper.ALONE, paper.CHANGED, paper.CERTIFIED, paper.FORCED):
        assert f">{number}<" in made


def test_the_numbers_are_those_of_the_runs(found: Report) -> None:
    ratio = found.figures("nq", LINK, "concord").queries_per_s.mean / found.figures("nq", LINK, "dragon").queries_per_s.mean
    said = {one.about: one for one in claims(found)}
    assert f", ours {ratio:.2f} [" in said["CONCORD against DRAGON, nq"].found
    assert f"{found.figures('nq', LINK, 'concord').bytes.mean:.1f}" in said["bytes a token, nq"].found
    assert len(said) == len(claims(found))


def test_the_letter_has_nothing_of_ours(found: Report) -> None:
    written = {case.row.name: case.row for case in found.runs["nq"].answers if case.link.name == LINK}
    for name, method in ((LETTER, "concord"), (LETTER_NOSYSTEM, "concord-nosystem"), (LETTER_NOCOMM, "concord-nocomm")):
        options = written[name].options
        assert written[name].method == method
        assert (options.bound, options.certificate, options.gate) == ("global", "upper", math.inf)
        assert (options.realign, options.undrafted, options.min_share) == ("hard", "local", 0)
        figures = found.figures("nq", LINK, name)
        assert figures.steps()["certain"].mean == 0
    assert found.figures("nq", LINK, LETTER_NOSYSTEM).share(consulted).mean == 1


def test_slow_start_and_none_stand_beside_each_other(found: Report) -> None:
    """Of every row of the one link that of the other; without, dense scores come sooner."""
    made, pairs = page(found).render(), [(found.rows(task, LINK), found.rows(task, FLAT)) for task in TASKS]
    for (near, flat), names in zip(
        (*pairs, (found.new_rows(LINK), found.new_rows(FLAT))), (BOTH, TEXTS_FLAT, BOTH), strict=True
    ):
        assert set(flat) == set(names) <= set(near)
        for name in ("dragon", "concord"):
            assert flat[name].tokens_per_s.mean >= near[name].tokens_per_s.mean
    assert "with slow start and without" in made
    assert "new questions" in made
    new = {one.example for one in found.unseen.answers[next(iter(found.unseen.answers))]}
    assert found.as_json()["new_questions"]["skipped"] == found.unseen.plan.skipped == 1
    assert len(new) == 2


def test_what_waiting_control_gains_is_in_the_figures(found: Report) -> None:
    """On both links, of questions and new ones, each row over the one that always waits."""
    ratios = found.as_json()["ratios"]
    gains = [one for one in ratios if one["over"] in (LETTER_NOSYSTEM, "concord-nosystem")]
    assert len(gains) == 8
    rows = found.new_rows(FLAT)
    (gain,) = (
        one["ratio"]["mean"] for one in gains if (one["examples"], one["link"], one["row"]) == ("new_questions", FLAT, LETTER)
    )
    assert gain == pytest.approx(rows[LETTER].queries_per_s.mean / rows[LETTER_NOSYSTEM].queries_per_s.mean)


def test_every_form_of_the_short_wait_is_there(found: Report) -> None:
    made, rows = page(found).render(), found.rows("nq", LINK)
    for name in WAITS:
        assert f"<td>{name}</td>" in made
    assert rows[HALVING].debt.timeout_decay == "halving"
    assert "debt&#x27;s growth" in made or "debt's growth" in made


def test_a_slower_device_is_slower_by_as_much_as_is_said(found: Report) -> None:
    usual, slow = PROFILES["4090d-1.7b"], slower(PROFILES["4090d-1.7b"])
    assert slow.draft.seconds(7, 500) == pytest.approx(3 * usual.draft.seconds(7, 500))
    assert slow.verify == usual.verify
    rows = found.rows("nq", DELAYED, slow_device=True)
    assert rows["dragon"].tokens_per_s.mean < found.figures("nq", LINK, "dragon").tokens_per_s.mean


def test_two_processes_met_over_the_links_in_real_time(found: Report) -> None:
    """`dragon` waits at least once an answer for the cloud's scores: for a round trip, which is 0.2 or 50 ms and more."""
    for task in TASKS:
        near, far = (found.timed_rows(task, link) for link in (NATIVE, DELAYED))
        for rows in (near, far):
            assert list(rows) == list(PAIR)
            assert rows["concord"].bytes.mean > 0
        assert min(far["dragon"].first_token_s()) > 0.05
    times = {one["time"] for one in found.as_json()["two_processes"].values()}
    assert times == {"real"}


def test_the_command_goes_on_from_what_is_kept(
    found: Report, folder: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(folder / "cache"))
    lines = plan.results.read_bytes().splitlines(keepends=True)
    plan.results.write_bytes(b"".join(lines[:-2]) + lines[-2][:40])
    written: list[str] = []
    original = Desk.write

    def counted(desk: Desk, example: object, case: object) -> Written:
        one = original(desk, example, case)
        written.append(one.example)
        return one

    monkeypatch.setattr(Desk, "write", counted)
    command = ["antiphon-lab", "reproduce", "concord", "--data", str(folder), "--scale", "smoke", "--out", str(folder / "out")]
    monkeypatch.setattr(sys, "argv", [*command, "--json"])
    main_until_exit()
    assert len(written) == 2
    figures = json.loads((folder / "out" / "concord.json").read_text())
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == figures
    assert figures["tasks"] == json.loads(json.dumps(found.as_json()["tasks"]))
    assert (figures["model"], figures["temperature"], figures["profile"]) == ("toy-reader", 0.0, "4090d-1.7b")
    for text in ((folder / "out" / "concord.html").read_text(), json.dumps(figures)):
        assert str(folder) not in text


def main_until_exit() -> None:
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code in (0, None)

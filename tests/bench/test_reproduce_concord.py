"""`antiphon reproduce concord` at scale smoke: everything is there, the numbers are those of the runs, and it goes on."""

import json
import sys
from pathlib import Path

import pytest

from antiphon.bench.compute import PROFILES
from antiphon.bench.rag_answers import Desk, Written
from antiphon.bench.rag_figures import Figures
from antiphon.bench.reproduce import concord_paper as paper
from antiphon.bench.reproduce.concord import DELAYED, LETTER, LINK, NATIVE, PAIR, TASKS, Report, run, slower
from antiphon.bench.reproduce.concord_claims import claims
from antiphon.bench.reproduce.concord_page import page
from antiphon.bench.reproduce.plans import Plan
from antiphon.cli import main
from antiphon.config import ModelConfig, SamplingParams
from ragdata import write_rag_data

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
    assert made.count("<svg") == 17
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
    assert said["CONCORD against DRAGON, nq"].found.startswith(f"{ratio:.2f} times")
    assert f"{found.figures('nq', LINK, 'concord').bytes.mean:.1f}" in said["bytes a token, nq"].found
    assert len(said) == len(claims(found))


def test_the_letter_has_nothing_of_ours(found: Report) -> None:
    options = found.options(LETTER)
    assert (options.bound, options.realign, options.enough) == ("global", "hard", 0)
    figures = found.figures("nq", LINK, LETTER)
    assert isinstance(figures, Figures)
    assert figures.steps()["certain"].mean == 0


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
        written.append(one.key)
        return one

    monkeypatch.setattr(Desk, "write", counted)
    command = ["antiphon", "reproduce", "concord", "--data", str(folder), "--scale", "smoke", "--out", str(folder / "out")]
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

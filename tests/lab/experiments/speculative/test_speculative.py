"""`antiphon-lab bench speculative` on toys: figures against sums by hand, resuming, the page, and what a person can mend."""

import json
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from antiphon.errors import UsageError
from antiphon_lab.cli import main
from antiphon_lab.ends.trials import attempt
from antiphon_lab.experiments.speculative import run as speculative
from antiphon_lab.experiments.speculative.figures import Figures
from antiphon_lab.experiments.speculative.grid import REFERENCE, TRIPS
from antiphon_lab.experiments.speculative.page import page
from antiphon_lab.experiments.speculative.run import Report, nearness_tables, run, tables
from antiphon_lab.hardware.profiles import parse_compute
from antiphon_lab.links.notation import parse_link
from antiphon_lab.report.origin import origin
from lab.speculative_plan import PROMPTS, plan

QUIET = Console(quiet=True)
ORIGIN = origin("antiphon-lab bench speculative")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("measured")
    return run(plan(folder, html=folder / "page.html"), QUIET)


def figures(report: Report, name: str, link: str = "x-cosd@100") -> Figures:
    (found,) = [one for (where, row), one in report.figures.items() if row.name == name and where.link.name == link]
    return found


@pytest.mark.medium
def test_every_row_answers_every_prompt_with_every_seed(measured: Report) -> None:
    assert len(measured.settings) == 2
    for setting in measured.settings:
        rows = measured.rows(setting)
        assert [row.name for row in rows] == [
            "cloud",
            "cloud-trips",
            "dssd 2",
            "dssd auto",
            "coupled lockstep 2",
            "coupled lockstep auto",
            "coupled-tree lockstep 2,2",
        ]
        for found in rows.values():
            assert len(found.answers) == 12
            assert {(one.prompt, one.seed) for one in found.answers} == {(p, s) for p in range(3) for s in range(1, 5)}


@pytest.mark.medium
def test_figures_are_the_sums_of_the_answers(measured: Report) -> None:
    found = figures(measured, "dssd 2")
    tokens = sum(one.tokens for one in found.answers)
    assert found.tokens_per_s == pytest.approx(tokens / sum(one.seconds for one in found.answers))
    assert found.tokens_per_round == pytest.approx(tokens / sum(one.rounds for one in found.answers))
    assert found.bits["up_payload"] == pytest.approx(sum(one.up_payload for one in found.answers) / tokens)
    assert found.ttft_s == pytest.approx(sum(one.arrivals[0][0] for one in found.answers) / 12)
    low, high = found.tokens_per_s_interval or (0, 0)
    assert low < found.tokens_per_s < high
    assert found.speedup == pytest.approx(found.tokens_per_s / figures(measured, REFERENCE).tokens_per_s)
    assert figures(measured, REFERENCE).speedup_interval == pytest.approx((1, 1))


@pytest.mark.medium
def test_each_round_of_dssd_takes_what_the_profile_says(measured: Report) -> None:
    """Two drafts of 4 ms and a pass of three tokens; the wire is nothing. A round has fewer where a draft is an end."""
    for one in figures(measured, "dssd 2").answers:
        gaps = [later - earlier for (earlier, _), (later, _) in pairwise(one.arrivals)]
        assert all(0.033 < gap < 0.0425 for gap in gaps)
        assert sum(gap > 0.041 for gap in gaps) >= len(gaps) - 2


@pytest.mark.medium
def test_cloud_streams_and_its_twin_pays_a_trip_a_token(measured: Report) -> None:
    link = parse_link("4g")
    streamed, asking = figures(measured, REFERENCE, "4g"), figures(measured, TRIPS, "4g")
    assert streamed.tokens == asking.tokens
    gap = asking.itl_s(50) - streamed.itl_s(50)
    assert gap == pytest.approx(link.round_trip(), rel=0.25)
    assert asking.per_token(lambda one: one.passes) == streamed.per_token(lambda one: one.passes) == 1
    assert asking.tokens_per_round == 1
    assert streamed.bits["up_payload"] == asking.bits["up_payload"] == 0


@pytest.mark.medium
def test_a_link_changes_the_time_of_a_fixed_length_and_nothing_else(measured: Report) -> None:
    near, far = figures(measured, "dssd 2"), figures(measured, "dssd 2", "4g")
    assert near.bits == far.bits
    assert near.acceptance == far.acceptance
    assert near.tokens_per_s > 1.5 * far.tokens_per_s


@pytest.mark.medium
def test_the_opening_of_an_answer_is_counted(measured: Report) -> None:
    """Short answers share it out among few tokens; it was left out of every table."""
    found = figures(measured, "dssd 2")
    assert all(one.opening > 8 * len(PROMPTS[one.prompt]) for one in found.answers)
    assert found.bits["opening"] == pytest.approx(sum(one.opening for one in found.answers) / found.tokens)
    assert found.as_json()["opening_bits_per_token"] == found.bits["opening"]
    assert "opening" in page(measured, ORIGIN).render()


@pytest.mark.medium
def test_answers_that_are_those_of_cloud_are_counted(measured: Report) -> None:
    """With the same seed `coupled` writes them, `dssd` others."""
    assert figures(measured, "coupled lockstep 2").same == figures(measured, TRIPS).same == 12
    assert figures(measured, "dssd 2").same < 12


@pytest.mark.medium
def test_the_tables_show_each_row(measured: Report) -> None:
    console = Console(width=100, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    setting = measured.settings[1]
    for table in tables(setting, measured.rows(setting)):
        console.print(table)
    text = console.export_text()
    assert "4g, a100-7b, temperature 1" in text
    assert text.count("coupled-tree lockstep 2,2") == 3
    assert "TCP/IP" in text
    assert "\u00b1" in text


@pytest.mark.slow
def test_the_automatic_length_stands_beside_the_best_fixed_one(tmp_path: Path) -> None:
    report = run(plan(tmp_path, methods=("dssd", "coupled", "coupled-tree"), lengths=(1, 4, 0)), QUIET)
    assert [(one.setting.link.name, one.method) for one in report.nearness] == [
        (link, method) for link in ("x-cosd@100", "4g") for method in ("dssd", "coupled lockstep")
    ]
    for one in report.nearness:
        link = one.setting.link.name
        fixed = {length: figures(report, f"{one.method} {length}", link).tokens_per_s for length in (1, 4)}
        auto = figures(report, f"{one.method} auto", link).tokens_per_s
        assert one.best_length == max(fixed, key=fixed.__getitem__)
        low, high = one.auto.speedup_interval or (0, 0)
        assert low <= one.auto.speedup <= high
        assert one.auto.speedup == pytest.approx(auto / max(fixed.values()))
    shown = report.as_json()["auto"]
    assert isinstance(shown, list)
    assert shown[0]["ratio"] == report.nearness[0].auto.speedup
    assert shown[0]["best_length"] == report.nearness[0].best_length
    (table,) = nearness_tables(report.nearness)
    assert table.row_count == 4


def test_without_a_fixed_or_without_the_automatic_length_nothing_stands_beside_another(tmp_path: Path) -> None:
    for lengths in ((0,), (1, 2)):
        report = run(plan(tmp_path, lengths=lengths, prompts=1, seeds=1, tokens=4), QUIET)
        assert report.nearness == []
        assert "best fixed length" not in page(report, ORIGIN).render()


@pytest.mark.medium
def test_the_json_has_every_figure_and_source(measured: Report) -> None:
    found = json.loads(json.dumps(measured.as_json()))
    assert (found["time"], found["prompts"], found["seeds"]) == ("virtual", 3, 4)
    assert [one["link"] for one in found["settings"]] == ["x-cosd@100", "4g"]
    assert "X-CoSD" in found["settings"][0]["profile_sources"][2]
    row = found["settings"][0]["rows"][2]
    assert row["row"] == "dssd 2"
    assert set(row) >= {"tokens_per_s", "ttft_s", "itl_p50_s", "itl_p90_s", "tokens_per_round", "cloud_passes_per_token"}
    assert set(row) >= {"cloud_ms_per_token", "acceptance_by_depth", "up_payload_bits_per_token", "down_framing_bits_per_token"}


@pytest.mark.slow
def test_two_runs_are_the_same(tmp_path: Path, measured: Report) -> None:
    again = run(plan(tmp_path), QUIET)
    assert again.as_json() == measured.as_json()


@pytest.mark.medium
def test_a_stopped_run_goes_on_and_a_larger_one_uses_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results, asked = tmp_path / "results.jsonl", []
    small = plan(tmp_path, results=results, prompts=1, seeds=1, methods=("dssd",))
    whole = run(replace(small, results=None), QUIET)

    def counted(*args: object) -> list:
        asked.append(args)
        if len(asked) == 4:
            raise KeyboardInterrupt
        return attempt(*args)

    monkeypatch.setattr(speculative, "attempt", counted)
    with pytest.raises(KeyboardInterrupt):
        run(small, QUIET)
    assert len(results.read_text().splitlines()) == 3
    assert run(small, QUIET).as_json() == whole.as_json()
    assert len(asked) == 1 + 8
    results.write_text(results.read_text() + '{"key":"torn')
    run(replace(small, methods=("dssd", "coupled")), QUIET)
    assert len(asked) == 1 + 8 + 4
    run(small, QUIET)
    run(replace(small, computes=(parse_compute("paper"),), links=small.links[:1]), QUIET)
    assert len(asked) == 1 + 8 + 4 + 4


@pytest.mark.parametrize(("line", "sentence"), [("{}", "line 1 of .* is damaged"), ("no", "line 1 of .* is damaged")])
def test_a_damaged_file_of_results_is_one_sentence(tmp_path: Path, line: str, sentence: str) -> None:
    (tmp_path / "results.jsonl").write_text(line + "\n")
    with pytest.raises(UsageError, match=sentence):
        run(plan(tmp_path, results=tmp_path / "results.jsonl"), QUIET)


def test_other_peoples_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text("a letter")
    with pytest.raises(UsageError, match="is none of this benchmark: give another --results"):
        run(plan(tmp_path, results=tmp_path / "results.jsonl"), QUIET)
    assert (tmp_path / "results.jsonl").read_text() == "a letter"
    with pytest.raises(UsageError, match="cannot be used for the results"):
        run(plan(tmp_path, results=tmp_path), QUIET)


@pytest.mark.medium
def test_the_page_shows_each_part(measured: Report) -> None:
    markup = page(measured, replace(ORIGIN, command="antiphon-lab bench speculative --x")).render()
    for part in (
        "Speed",
        "How far to draft",
        "Bits a token",
        "One answer, moment by moment",
        "antiphon-lab bench speculative --x",
    ):
        assert part in markup
    assert markup.count("<svg") == 1 + 2 + 1 + 2 + 5  # speed, lengths a link, acceptance, costs, timelines
    assert "opensignal" in markup.lower()  # the source of the link
    assert "http" not in markup.replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_a_page_of_one_setting_without_lengths(tmp_path: Path) -> None:
    report = run(plan(tmp_path, methods=("coupled-tree",), links=(parse_link("lan"),), prompts=1, seeds=1), QUIET)
    markup = page(report, ORIGIN).render()
    assert "How far to draft" not in markup
    assert "One answer" not in markup  # timelines are made only where a page is asked for
    assert "Tokens a second, lan" in markup


@pytest.mark.slow
def test_real_time_over_a_proxy(tmp_path: Path) -> None:
    """Without compute to speak of, a token a trip takes the round trip of the link."""
    links = (parse_link("rtt=60ms,up=10Mbit,down=10Mbit"),)
    report = run(plan(tmp_path, methods=("dssd",), lengths=(2,), links=links, prompts=1, seeds=1, tokens=8, real=True), QUIET)
    link = links[0].name
    assert figures(report, TRIPS, link).itl_s(50) == pytest.approx(0.06, abs=0.02)
    assert figures(report, REFERENCE, link).itl_s(50) < 0.03
    assert report.as_json()["time"] == "real"
    assert "In virtual time" not in page(report, ORIGIN).render()


def command(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["antiphon-lab", "bench", "speculative", *arguments])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.medium
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (data,), html = plan(tmp_path).data, tmp_path / "page.html"
    models = ["--cloud-model", "toy-cloud", "--model", "toy-device"]
    sizes = ["--prompts", "2", "--tokens", "8", "--draft-length", "1,auto", "--temperature", "0,1", "--methods", "dssd"]
    places = ["--link", "lan", "--link", "concord@20", "--profile", "paper,draft=2ms"]
    given = ["--data", str(data), *models, *sizes, *places, "--html", str(html), "--json"]
    assert command(*given, monkeypatch=monkeypatch) == 0
    out, err = capsys.readouterr()
    found = json.loads(out.splitlines()[-1])
    assert len(found["settings"]) == 4
    assert found["settings"][0]["profile"] == "paper,draft=2ms"
    assert "concord@20" in err
    assert "--link concord@20" in html.read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--methods", "nothing"], "nothing"),
        (["--draft-length", "1,x"], "draft length must be a number from 1 on, or auto, not 'x'"),
        (["--draft-length", "40"], "draft length must be 1 to 16"),
        (["--patience", "", "--methods", "coupled"], "patience must be a number, auto or lockstep, not ''"),
        (
            ["--patience", "auto,-3", "--methods", "coupled"],
            "patience must be 0 to 60000 milliseconds, auto or lockstep, not -3.0",
        ),
        (["--temperature", "hot"], "a temperature must be a number such as 0.7, not 'hot'"),
        (["--temperature", "-1"], "temperature must be between 0 and 100"),
        (["--link", "5h"], "there is no link profile '5h'"),
        (["--profile", "h100"], "there is no hardware profile 'h100'"),
        (["--prompts", "9"], "--prompts must be at most 4, the rows of"),
        (["--prompts", "0"], "--prompts must be at least 1, not 0"),
        (["--tokens", "0"], "--tokens must be at least 1, not 0"),
        (["--seeds", "0"], "--seeds must be at least 1, not 0"),
        (["--expansion", "2,x", "--methods", "coupled-tree"], "expansion must be numbers from 1 on"),
        (["--html", "nowhere/page.html"], "name another file for the page"),
    ],
)
def test_what_a_person_can_mend_is_one_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    models = ["--data", str(plan(tmp_path).data[0]), "--cloud-model", "toy-cloud", "--model", "toy-device"]
    assert command(*models, *arguments, monkeypatch=monkeypatch) == 2
    complaint = capsys.readouterr().err
    assert sentence in complaint
    assert complaint.startswith("antiphon: ")
    assert complaint.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"prompt": 3}', "line 1 of .* asks nothing: it has none of the fields prompt, question, source, article"),
        ("[1]", "line 1 of .* is no JSON object"),
        ("nonsense", "line 1 of .* is no JSON object"),
    ],
)
def test_data_that_asks_nothing(tmp_path: Path, content: str, sentence: str) -> None:
    asked = plan(tmp_path, prompts=1)
    asked.data[0].write_text(content)
    with pytest.raises(UsageError, match=sentence):
        run(asked, QUIET)

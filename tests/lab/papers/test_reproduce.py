"""`antiphon-lab reproduce`: both commands at scale smoke, going on, what stands in the page, and what a person can mend."""

import html
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from rich.progress import Progress

from antiphon.config import ModelConfig, SamplingParams
from antiphon.errors import UsageError
from antiphon.methods.effects import Finish
from antiphon_lab.cli import main
from antiphon_lab.ends.trials import Trial, attempt
from antiphon_lab.experiments.quality import Score
from antiphon_lab.hardware.profiles import parse_compute
from antiphon_lab.links.notation import parse_link
from antiphon_lab.papers import lab as labs
from antiphon_lab.papers.answers import Ask, Timing
from antiphon_lab.papers.lab import Lab, each_asked
from antiphon_lab.papers.pages import holds, interval
from antiphon_lab.papers.redrawn import redrawn
from antiphon_lab.papers.tapes import Reel, Sent, Tape, Waited, Wrote
from antiphon_lab.papers.xcosd.claims import claims as xcosd_claims
from antiphon_lab.papers.xcosd.run import Report as XcosdReport
from antiphon_lab.papers.xcosd.scores import Quality, until_stop
from antiphon_lab.stats.intervals import Mean, ratio, ratio_of_ratios
from antiphon_lab.store import Store
from lab import tiny_data

LINES = [f"number {index} " + "the rain on the inland hills of another age " * 10 for index in range(4)]
WARM = SamplingParams(temperature=1.0)
WAITING = "patience", "lockstep"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny_data.write_data(tmp_path_factory.mktemp("data"))
    (folder / "wikitext2_test.raw").write_text("\n".join(LINES))
    return folder


def command(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["antiphon-lab", "reproduce", *arguments])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def never(*given: object, **named: object) -> object:
    raise AssertionError("what is kept is not measured again")


@pytest.mark.slow
@pytest.mark.parametrize("paper", ["tslt", "x-cosd"])
def test_the_command(
    paper: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "deep" / "out"
    wanted = (paper, "--data", str(data), "--scale", "smoke", "--out", str(out))
    assert command(*wanted, "--json", monkeypatch=monkeypatch) == 0
    shown = capsys.readouterr().out
    figures = json.loads((out / f"{paper}.json").read_text())
    assert json.loads(shown.splitlines()[-1]) == figures
    assert (figures["cloud_model"], figures["model"], figures["temperature"]) == ("toy-cloud", "toy-device", 1.0)
    page = (out / f"{paper}.html").read_text()
    assert page.count("<svg") == {"tslt": 6, "x-cosd": 5}[paper]
    assert "What the paper says, and what is found here" in page
    for text in (page, json.dumps(figures)):
        assert str(tmp_path) not in text
        assert str(data) not in text
        assert "nan" not in text.lower().replace("finance", "")
    monkeypatch.setattr(labs, "load", never)
    assert command(*wanted, monkeypatch=monkeypatch) == 0
    assert (out / f"{paper}.html").read_text() == page
    assert json.loads((out / f"{paper}.json").read_text()) == figures
    again = tmp_path / "again.html"
    assert command("page", str(out / f"{paper}.json"), str(again), monkeypatch=monkeypatch) == 0
    assert again.read_text() == page
    origin = figures["origin"]
    assert origin["command"].startswith(f"antiphon-lab reproduce {paper} --data DATA --scale smoke ")
    for what in (origin["command"], origin["commit"], origin["cpu"], origin["llama_cpp"]):
        assert html.escape(what) in page
    assert figures["seed"] == 1


@pytest.mark.slow
def test_what_is_in_the_figures_of_tslt(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("tslt", "--data", str(data), "--scale", "smoke", "--out", str(tmp_path), monkeypatch=monkeypatch) == 0
    figures = json.loads((tmp_path / "tslt.json").read_text())
    truncation = figures["truncation"]
    kept = [cut["kept"] for cut in truncation["cuts"]]
    assert kept == sorted({3, 8, 26, 32, 100})
    masses = [cut["mass"]["mean"] for cut in figures["truncation"]["cuts"]]
    assert masses == sorted(masses)
    assert [cut["name"] for cut in truncation["nuclei"]] == ["p=0.5", "p=0.8", "p=0.9", "p=0.95", "p=0.99"]
    assert all(float(cut["name"][2:]) <= cut["mass"]["mean"] + 1e-9 for cut in truncation["nuclei"])
    assert all(max(cut["excess"], cut["second_excess"]) <= 1e-9 for cut in truncation["cuts"] + truncation["nuclei"])
    assert all(cut["second_bound"]["mean"] > 0 for cut in truncation["nuclei"])
    lines = {(line["kind"]["name"], line["kind"]["tree"]): line for line in figures["speeds"]}
    assert (figures["prompts"], figures["tokens"], figures["extreme"]["answers"]) == (2, 12, 2)
    assert [point["rate"] for point in lines["coupled, lockstep", False]["points"]] == [1, 30, 1000]
    slow, _, fast = (point["speed_up"]["mean"] for point in lines["whole distributions", True]["points"])
    assert slow < fast
    assert lines["coupled, lockstep", True]["points"][0]["form"] is None
    assert lines["coupled", False]["points"][2]["speed_up"]["mean"] > 0.98
    assert 0.5 < lines["k = 32", False]["distribution_bits"] / (32 * (16 + 9)) < 1.05  # a last round has fewer distributions


@pytest.mark.slow
def test_what_is_in_the_figures_of_xcosd(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("x-cosd", "--data", str(data), "--scale", "smoke", "--out", str(tmp_path), monkeypatch=monkeypatch) == 0
    figures = json.loads((tmp_path / "x-cosd.json").read_text())
    assert figures["vocabularies"] == [272, 265]
    speeds = {curve["name"]: dict(curve["points"]) for curve in map(means, figures["throughput"])}
    far = {curve["name"]: dict(curve["points"]) for curve in map(means, figures["round_trips"])}
    assert speeds["cloud"][100] == pytest.approx(1000 / 33, rel=0.01)
    assert speeds["cloud-trips"][100] == pytest.approx(speeds["cloud"][100], rel=0.001)
    assert far["cloud"][50] == pytest.approx(far["cloud"][0])
    assert far["cloud-trips"][50] == pytest.approx(1000 / (33 + 50), rel=0.01)
    loads = {(load["name"], load["task"]): load for load in figures["loads"]}
    for name in ("dssd", "xcosd"):
        assert loads[name, "all"]["down"]["mean"] == pytest.approx(loads[name, "all"]["form_down"], rel=0.03)
    assert {one["drafts"] for one in figures["by_length"]} == {1, 2, 4}
    paper, ours = (loads[name, "all"] for name in ("xcosd-e, as the paper", "xcosd-e"))
    assert paper["down"]["mean"] > ours["down"]["mean"]
    assert all(load["opening"] > 8 * 20 / 10 for load in figures["loads"])
    assert {(one["name"], one["other"]) for one in figures["ratios"] if one["what"] == "tokens/s"} >= {
        (name, other) for name in ("xcosd", "xcosd-e") for other in ("cloud", "dssd", "dsd")
    }
    assert (figures["questions"], figures["questions_by_length"]) == ({"wmt22": 1, "mmlu": 2}, 1)
    names = [quality["name"] for quality in figures["quality"] if quality["scores"][0]["task"] == "mmlu"]
    assert names[0] == "cloud"
    assert not any("coupled" in name for name in names)
    streamed, waiting = loads["coupled", "all"], loads["coupled, lockstep", "all"]
    assert streamed["passes_a_token"] < 1 > waiting["passes_a_token"]
    assert far["coupled"][50] > 0.98 * far["cloud"][50] > far["coupled, lockstep"][50]


def means(curve: dict) -> dict:
    return {"name": curve["name"], "points": [(x, mean["mean"]) for x, mean in curve["points"]]}


class Stop(Exception):  # noqa: N818
    pass


@pytest.mark.slow
def test_an_end_before_its_time_loses_one_answer(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ("x-cosd", "--data", str(data), "--scale", "smoke", "--out", str(tmp_path))
    generate, done = labs.Device.generate, []

    async def some(*given: object, **named: object) -> object:
        if len(done) == 5:
            raise Stop
        done.append(given)
        return await generate(*given, **named)

    monkeypatch.setattr(labs.Device, "generate", some)
    with pytest.raises(Stop):
        command(*wanted, monkeypatch=monkeypatch)
    kept = (tmp_path / "x-cosd.jsonl").read_text().splitlines()
    assert sum("taken" in json.loads(line)["key"] for line in kept) == 5
    monkeypatch.setattr(labs.Device, "generate", generate)
    assert command(*wanted, monkeypatch=monkeypatch) == 0
    assert (tmp_path / "x-cosd.jsonl").read_text().splitlines()[:5] == kept[:5]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("tslt", "--scale", "huge"), "--scale must be one of smoke, small, full, not 'huge'"),
        (("tslt", "--profile", "abacus"), "there is no hardware profile 'abacus'"),
        (("x-cosd", "--model", "toy-other"), "there is no toy model 'toy-other'"),
        (("tslt", "--data", "nowhere"), "nowhere/wikitext2_test.raw cannot be read"),
        (("x-cosd", "--data", "nowhere"), "nowhere/wmt22_de_en_400.jsonl cannot be read"),
    ],
)
def test_what_a_person_can_mend(
    arguments: tuple[str, ...],
    sentence: str,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    paper, *rest = arguments
    given = ["--data", str(data), "--scale", "smoke", "--out", str(tmp_path), *rest]
    assert command(paper, *given, monkeypatch=monkeypatch) == 2
    assert sentence in capsys.readouterr().err


def test_a_folder_that_cannot_be(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    (tmp_path / "file").write_text("mine")
    assert command("tslt", "--data", str(data), "--out", str(tmp_path / "file"), monkeypatch=monkeypatch) == 2
    assert "cannot be made" in capsys.readouterr().err


Opened = Callable[..., Lab]


@pytest.fixture
def lab(tmp_path: Path) -> Opened:
    def opened(profile: str = "a100-7b") -> Lab:
        models = ModelConfig("toy-cloud"), ModelConfig("toy-device")
        progress = Progress(console=Console(quiet=True))
        return Lab(models, WARM, 1, parse_compute(profile), Store(None, ["test"]), progress)

    return opened


def test_timings_are_those_of_direct_runs(lab: Opened) -> None:
    asks = [
        Ask("a", "the river ", "dssd", (("draft_length", 2),)),
        Ask("b", "in the ", "coupled", (("draft_length", 3), WAITING)),
    ]
    asks.append(Ask("c", "he in ", "coupled"))  # in a stream
    with lab() as ours:
        found = ours.timings(asks, ["x-cosd@5", "3g"])
        for (ask, link), timing in found.items():
            assert_same(timing, direct(ours, ask, link))


def assert_same(timing: Timing, other: Timing) -> None:
    """But for the last bits of times, which depend on when the clock began."""
    assert msgspec.structs.replace(timing, moments=()) == msgspec.structs.replace(other, moments=())
    assert [count for _, count in timing.moments] == [count for _, count in other.moments]
    assert [time for time, _ in timing.moments] == pytest.approx([time for time, _ in other.moments], abs=1e-9)


def direct(lab: Lab, ask: Ask, link: str) -> Timing:
    trial = Trial(ask.method, parse_link(link), lab.hardware, WARM, ask.values, ask.max_tokens)
    return Timing.of(attempt(trial, lab.pair.cloud, lab.pair.device, [ask.prompt], ask.seed(1))[0])


def test_a_tape_that_drifts_is_written_anew(lab: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    anew: list[Ask] = []
    written = Lab._anew
    monkeypatch.setattr(Lab, "_anew", lambda lab, ask, link: (anew.append(ask), written(lab, ask, link))[1])
    ask = Ask("a", "the river ", "coupled", (("draft_length", 3), WAITING))
    with lab("paper,draft=25ms") as ours:
        found = ours.timings([ask, Ask("b", "so ", "dssd")], ["x-cosd@100", "x-cosd@100,rtt=150ms"])
        assert anew == [ask]
        assert_same(found[ask, "x-cosd@100,rtt=150ms"], direct(ours, ask, "x-cosd@100,rtt=150ms"))


def test_an_automatic_length_is_not_taped(lab: Opened) -> None:
    with lab() as ours, pytest.raises(UsageError, match="fix the length"):
        ours.takes([Ask("a", "the river ", "dssd", (("draft_length", 0),))])


def test_asking_for_every_token() -> None:
    wrote = Wrote((1,), (), (), ((), 0))
    device = Reel([Waited(None, True), wrote, Waited(None, True), wrote], Finish.LENGTH)
    tokens = Sent("Tokens", (), 2)
    cloud = Reel([tokens, tokens], Finish.LENGTH)
    asked = each_asked(Tape(device, cloud))
    draft = Sent("Draft", (0, 0), 0)
    assert asked.device.events == [Waited(None, True), wrote, draft, Waited(None, True), wrote]
    assert asked.cloud.events == [tokens, Waited(None, True), tokens]


def test_shares_of_a_round() -> None:
    timing = Timing(((1.0, 2), (1.3, 3), (1.5, 1)), (0, 0, 0), (0, 0, 0), 0, 0, 0, 0)
    assert timing.tokens == 6
    assert timing.decoding == (4, pytest.approx(0.5))
    assert timing.shares() == pytest.approx([0.1, 0.1, 0.1, 0.2])


def test_the_text_before_a_stop_string() -> None:
    assert until_stop("one\ntwo;", ("\n", ";")) == "one"
    assert until_stop("one;two\n", ("\n", ";")) == "one"
    assert until_stop("one", ("\n",)) == "one"
    assert until_stop("", ()) == ""


def test_means_are_of_sums() -> None:
    found = ratio([(1, 1), (3, 7)] * 6)
    assert found.mean == 0.5
    assert found.interval is not None
    assert 3 / 7 < found.interval[0] < 0.5 < found.interval[1] < 1
    assert ratio([(0, 0)] * 12).mean == 0
    pair = ratio_of_ratios([(4, 1), (4, 1)] * 6, [(1, 1), (3, 1)] * 6)
    assert pair.mean == 2
    assert pair.interval is not None
    assert 4 / 3 < pair.interval[0] < 2 < pair.interval[1] < 4


@pytest.mark.parametrize(
    ("intervals", "verdict"),
    [
        ([(1.1, 1.3), (1.01, 2.0)], "yes"),
        ([(1.1, 1.3), (0.99, 2.0)], "not decided"),
        ([(1.1, 1.3), (0.7, 0.9)], "no"),
        ([(1.1, 1.3), None], "n too small"),
    ],
)
def test_a_verdict_is_one_of_intervals(intervals: list, verdict: str) -> None:
    """Means alone say "faster" wherever one is a hair above the other."""
    assert holds([Mean(1.2, interval) for interval in intervals]) == verdict


def test_a_mean_without_an_interval_says_why() -> None:
    assert interval(Mean(1.25, None), "{:.1f}".format) == "1.2 [n too small]"
    assert interval(Mean(1.25, (1.0, 1.5)), "{:.1f}".format) == "1.2 [1.0, 1.5]"


def scored_on(questions: int) -> tuple[Quality, ...]:
    return (Quality("xcosd", (Score("wmt22", "BLEU", 17.0, 1.0, (-3.0, 5.0)),), questions),)


@pytest.mark.slow
def test_scores_of_few_questions_are_no_finding(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zero of five apart on a dozen questions says nothing; a difference of 300 does."""
    assert command("x-cosd", "--data", str(data), "--scale", "smoke", "--out", str(tmp_path), monkeypatch=monkeypatch) == 0
    found = json.loads((tmp_path / "x-cosd.json").read_text())
    report = msgspec.convert({**found, "settings": found}, XcosdReport)
    few, many = (xcosd_claims(replace(report, quality=scored_on(count)))[0].found for count in (12, 300))
    assert "too few" in few
    assert "differ" not in few.replace("difference", "")
    assert "0 of 1 differ" in many


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read"),
        ("[]", "is not what `antiphon-lab reproduce` writes"),
        ('{"paper": "CONCORD, arXiv"}', "holds no figures of TSLT or X-CoSD"),
        ('{"paper": "TSLT, arXiv"}', "was written by another version"),
    ],
)
def test_a_page_of_no_figures(content: str | None, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=sentence):
        redrawn(path)

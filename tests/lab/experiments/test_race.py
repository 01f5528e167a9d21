"""A race: both answers are the same, times are the link's and the profile's, and a replay shows what had come by then."""

import html
import io
import json
import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from antiphon.config import ModelConfig, SamplingParams
from antiphon.errors import UsageError
from antiphon.models import load
from antiphon_lab.cli import main
from antiphon_lab.experiments.race import Plan, Race, raced
from antiphon_lab.experiments.race_screen import frame, picture, show, table, verdict
from antiphon_lab.hardware.profiles import parse_compute
from antiphon_lab.links.notation import parse_link

PASS, TRIP, TOKENS = 0.033, 0.01, 24


def plan_of(method: str = "coupled", draft: str = "1ms", prompt: str = "the ") -> Plan:
    return Plan(
        method=method,
        prompt=prompt,
        link=parse_link("rtt=10ms"),
        compute=parse_compute(f"paper,draft={draft}"),
        sampling=SamplingParams(temperature=0.7),
        max_tokens=TOKENS,
        seed=1,
        cloud_model=ModelConfig("toy-cloud"),
        device_model=ModelConfig("toy-cloud"),
    )


def run(plan: Plan) -> Race:
    return raced(plan, load(plan.cloud_model), load(plan.device_model))


@pytest.fixture(scope="module")
def race() -> Race:
    """A device with the cloud's own model: all of its drafts stand."""
    return run(plan_of())


def test_the_plain_stream_takes_a_pass_a_token_and_one_trip(race: Race) -> None:
    assert race.reference.seconds == pytest.approx(TRIP + PASS * (TOKENS + 1), rel=0.01)


def test_a_method_whose_drafts_stand_writes_the_same_tokens_sooner(race: Race) -> None:
    assert race.same
    assert race.faster > 1.5
    assert race.reference.tokens_by(race.method.seconds) < TOKENS == race.method.tokens_by(race.method.seconds)


def test_drafts_that_come_too_late_make_it_no_slower() -> None:
    race = run(plan_of(draft="200ms"))
    assert race.same
    assert 0.98 < race.faster < 1.02


def test_to_read_the_prompt_takes_long_and_says_nothing_of_drafts() -> None:
    """Five passes of the cloud; then a draft takes a third of one, and all stand."""
    race = run(plan_of(draft="11ms,draft-further=16ms", prompt="the moon is"))
    assert race.method.result.answer.exchanged.drafted > race.method.result.tokens / 3
    assert race.faster > 1.1


def test_the_text_of_arrivals_is_the_answer(race: Race) -> None:
    for runner in race.runners.values():
        assert "".join(arrival.text for arrival in runner.arrivals) == runner.result.text
        assert [arrival.time for arrival in runner.arrivals] == sorted(arrival.time for arrival in runner.arrivals)


def test_the_verdict_says_who_was_how_much_faster(race: Race) -> None:
    times = f"{race.method.seconds:.2f} s against {race.reference.seconds:.2f} s"
    first, second = verdict(race)
    assert first == f"coupled wrote the same {TOKENS} tokens {race.faster:.2f} times as fast as the plain stream: {times}."
    assert " against 1.00; bits a token up " in second


def test_a_pipe_gets_a_table_that_ends_with_all_tokens(race: Race) -> None:
    console = Console(file=(told := io.StringIO()), width=80)
    show(race, console, sleep=lambda seconds: pytest.fail("nothing is replayed on a pipe"))
    assert "virtual time, at the pace of paper,draft=1ms over rtt=10ms" in " ".join(told.getvalue().split())
    assert table(race).row_count <= 9
    rows = [line.split() for line in told.getvalue().splitlines() if " s " in line and line.split()[1:2] == ["s"]]
    assert rows[-1][2:] == [str(TOKENS), str(TOKENS)]
    assert all(int(row[2]) <= int(row[3]) for row in rows)


def test_a_terminal_sees_each_token_when_it_came(race: Race) -> None:
    """On a clock that only a sleep moves; a terminal is shown 25 pictures a second, each of what had come by then."""
    now, pictures = [0.0], []
    console = Console(file=(told := io.StringIO()), width=100, force_terminal=True)

    def sleep(seconds: float) -> None:
        pictures.append(now[0])
        now[0] += seconds

    show(race, console, clock=lambda: now[0], sleep=sleep)
    assert now[0] == pytest.approx(race.reference.seconds)
    assert max(after - before for before, after in pairwise(pictures)) <= 0.04 + 1e-9
    assert "cloud: the plain stream" in told.getvalue()
    assert f"{TOKENS} tokens, {race.reference.seconds:.2f} s" in told.getvalue()


def test_a_picture_holds_what_had_come_and_no_more(race: Race) -> None:
    console = Console(file=(told := io.StringIO()), width=100)
    console.print(frame(race, half := race.reference.seconds / 2))
    ours, theirs = race.method.tokens_by(half), race.reference.tokens_by(half)
    assert theirs < TOKENS
    assert f"{ours} tokens, {min(half, race.method.seconds):.2f} s" in told.getvalue()
    assert f"{theirs} tokens, {half:.2f} s" in told.getvalue()


@pytest.mark.parametrize("method", ["cloud", "device"])
def test_some_have_nothing_to_race(method: str) -> None:
    with pytest.raises(UsageError, match=f"{method} has no race with cloud: use a method that drafts"):
        plan_of(method)


def test_a_picture_shows_where_the_other_was_when_the_first_was_done(race: Race, tmp_path: Path) -> None:
    picture(race, svg := tmp_path / "race.svg")
    told = " ".join(html.unescape(re.sub("<[^>]+>", " ", svg.read_text())).split())
    first = min(race.method.seconds, race.reference.seconds)
    assert f"{race.reference.tokens_by(first)} tokens, {first:.2f} s" in told
    assert f"{TOKENS} tokens, {first:.2f} s" in told
    assert verdict(race)[0] in told


def test_a_picture_is_an_svg_file(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["antiphon-lab", "race", "--cloud-model", "no.gguf", "--picture", "race.png"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert capsys.readouterr().err == "antiphon: --picture must end in .svg, not 'race.png'\n"


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    models = ["--cloud-model", "toy-cloud", "--model", "toy-device"]
    file = ["--picture", str(svg := tmp_path / "race.svg")]
    monkeypatch.setattr(sys, "argv", ["antiphon-lab", "race", *models, *file, "--max-tokens", "8", "--json", "the "])
    with pytest.raises(SystemExit) as end:
        main()
    out, err = capsys.readouterr()
    assert not end.value.code
    found = json.loads(out)
    assert (found["time"], found["link"], found["profile"], found["same_tokens"]) == ("virtual", "4g", "a100-7b", True)
    assert [len(runner["token_ids"]) for runner in found["runners"].values()] == [8, 8]
    assert "coupled wrote the same 8 tokens" in err
    assert svg.read_text().startswith("<svg")

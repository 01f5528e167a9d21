"""Hardware profiles: what a pass is charged, how a profile is named on the command line, and how it is measured."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from antiphon.config import ModelConfig
from antiphon.errors import UsageError
from antiphon.models.toy import named_toy
from antiphon_lab.cli import main
from antiphon_lab.hardware.measuring import FAR, LONG, NARROW, SHORT, WIDE, Plan, Point, fit, measure, run, table
from antiphon_lab.hardware.profiles import PROFILES, Compute, PassCost, measured_file, packed, parse_compute, read_compute


def test_a_line_and_a_table_of_narrow_passes() -> None:
    line = PassCost(30.0, 0.5, 2.0)
    assert line.milliseconds(1, 0) == 30
    assert line.milliseconds(5, 1500) == 30 + 4 * 0.5 + 3
    assert line.seconds(5, 1500) == pytest.approx(0.035)
    narrow = PassCost(30.0, 0.5, 2.0, (30.0, 50.0, 45.0))
    assert [narrow.milliseconds(width, 0) for width in (1, 2, 3, 4, 13)] == [30, 50, 45, 45.5, 50]


@given(st.integers(1, 100), st.integers(0, 4000), st.lists(st.floats(0, 1e4), max_size=8))
def test_a_longer_context_never_costs_less(width: int, length: int, narrow: list[float]) -> None:
    cost = PassCost(10.0, 0.1, 1.5, tuple(narrow))
    assert cost.milliseconds(width, length + 1000) == pytest.approx(cost.milliseconds(width, length) + 1.5)


@pytest.mark.parametrize("figures", [(-1.0,), (1.0, float("nan")), (1.0, 0.0, float("inf")), (1.0, 0.0, 0.0, (1.0, -2.0))])
def test_a_cost_that_cannot_be_is_refused(figures: tuple) -> None:
    with pytest.raises(UsageError, match="must be finite and 0 or more"):
        PassCost(*figures)


def test_every_profile_says_where_its_figures_come_from() -> None:
    assert set(PROFILES) == {"paper", "a100-7b", "4090d-1.7b"}
    for name, compute in PROFILES.items():
        assert compute.name == name
        assert compute.source
        assert compute.draft.source
        assert compute.verify.source
        assert compute.retrieval_source
    assert PROFILES["paper"].draft.milliseconds(8, 900) == 4
    assert PROFILES["paper"].verify.milliseconds(8, 900) == 33
    assert 1000 / PROFILES["a100-7b"].verify.milliseconds(1, 100) == pytest.approx(30, rel=0.02)


def test_changes_of_a_profile() -> None:
    compute = parse_compute("a100-7b, draft=8ms, verify=40ms,further=300us,thousand=1ms,retrieval=0.02s,draft-further=0.5ms")
    assert (compute.draft.first, compute.draft.further) == (8, 0.5)
    assert (compute.verify.first, compute.verify.further, compute.verify.thousand) == (40, 0.3, 1)
    assert compute.retrieval == 20
    assert compute.name.startswith("a100-7b")
    assert "changed: draft=8ms" in compute.source
    assert parse_compute("a100-7b") == PROFILES["a100-7b"]


def test_a_change_straightens_a_measured_cost(tmp_path: Path) -> None:
    path = written(tmp_path / "p.json", PassCost(30.0, 0.5, 0.0, (30.0, 90.0)))
    assert parse_compute(str(path)).verify.milliseconds(2, 0) == 90
    assert parse_compute(f"{path},verify=10ms").verify.milliseconds(2, 0) == 10.5


def written(path: Path, verify: PassCost) -> Path:
    path.write_bytes(packed(Compute("measured", PassCost(1.0), verify, "here"), {"points": []}))
    return path


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("h100", "there is no hardware profile 'h100': use paper, a100-7b, 4090d-1.7b, measured, or a file"),
        ("", "there is no hardware profile ''"),
        ("a100-7b,verfy=8ms", "'verfy=8ms' is no part of a profile: after its name give times of draft, draft-further"),
        ("a100-7b,verify", "verify must be a time such as 4ms"),
        ("a100-7b,verify=8", "verify must be a time such as 4ms, 300us or 1.5s, not '8'"),
        ("a100-7b,verify=-8ms", "verify must be a time"),
        ("a100-7b,draft=0ms", "draft must be above 0, not '0ms': a pass takes time"),
        (
            "./nowhere.json",
            "nowhere.json cannot be read (No such file or directory): write it by `antiphon-lab profile --output",
        ),
    ],
)
def test_a_bad_profile_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_compute(text)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "is no profile of hardware"),
        ('{"antiphon_profile": 1}', "is no profile of hardware"),
        ("\xff", "is no profile of hardware"),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(UsageError, match=sentence):
        read_compute(path)


def test_a_file_of_another_format_or_with_impossible_figures(tmp_path: Path) -> None:
    path = written(tmp_path / "p.json", PassCost(30.0))
    path.write_text(path.read_text().replace('"antiphon_profile": 1', '"antiphon_profile": 9'))
    with pytest.raises(UsageError, match="of format 9"):
        read_compute(path)
    written(path, PassCost(30.0))
    path.write_text(path.read_text().replace("30.0", "-30.0"))
    with pytest.raises(UsageError, match="must be finite and 0 or more"):
        read_compute(path)


def test_measured_needs_a_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))
    with pytest.raises(UsageError, match="has not been measured yet: run `antiphon-lab profile` first"):
        parse_compute("measured")
    written(measured_file(), PassCost(30.0, source="a test"))
    assert parse_compute("measured").verify == PassCost(30.0, source="a test")


def points(cost: PassCost) -> list[Point]:
    """Passes that cost exactly this, and a median above it."""
    shapes = [(width, SHORT + width) for width in (*NARROW, WIDE)]
    shapes += [(width, LONG + width) for width in FAR] + [(LONG - SHORT, LONG)]
    times = [cost.milliseconds(*shape) for shape in shapes]
    return [Point(*shape, time, 1.2 * time) for shape, time in zip(shapes, times, strict=True)]


def test_a_fit_finds_the_costs_that_made_the_times() -> None:
    cost = PassCost(20.0, 2.0, 3.0, tuple(20.0 + 3 * width % 7 for width in NARROW))
    found = fit(points(cost), "a test")
    assert found.further == pytest.approx(cost.further, rel=1e-3)
    assert found.thousand == pytest.approx(cost.thousand, rel=1e-3)
    assert found.narrow == pytest.approx(cost.narrow, rel=1e-3)
    assert found.first == found.narrow[0]


def test_noise_that_makes_long_contexts_look_cheap_is_no_negative_cost() -> None:
    noisy = [replace(point, fastest=1.0) if point.length > LONG else point for point in points(PassCost(20.0, 1.0))]
    assert fit(noisy, "a test").thousand == 0


def test_measuring_times_every_width_behind_both_contexts() -> None:
    found = measure(named_toy("toy-cloud"), 2, all_rows=True)
    assert {point.width for point in found} >= {*NARROW, WIDE, LONG - SHORT}
    assert {point.length - point.width for point in found} == {SHORT, LONG}
    assert all(0 < point.fastest <= point.median for point in found)


def plan(path: Path) -> Plan:
    return Plan(ModelConfig("toy-cloud", threads=1), ModelConfig("toy-device", threads=1), 1, path)


def test_the_written_profile_is_read_back(tmp_path: Path) -> None:
    report = run(plan(tmp_path / "p.json"), Console(quiet=True))
    assert read_compute(tmp_path / "p.json") == report.compute
    assert "toy-cloud on 1 thread, fastest of 1 passes" in report.compute.verify.source
    assert len(table(report).rows) == len(report.verify.points)


def test_the_command_writes_where_it_is_told_or_where_measured_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))
    models = ["--cloud-model", "toy-cloud", "--model", "toy-device", "--repeats", "1", "--json"]
    monkeypatch.setattr(sys, "argv", ["antiphon-lab", "profile", *models])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["file"] == str(tmp_path / "profile.json")
    assert parse_compute("measured").verify.first == found["verify"]["first"]


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no folder .*nowhere"):
        run(plan(tmp_path / "nowhere" / "p.json"), Console(quiet=True))
    with pytest.raises(UsageError, match=r"cannot be written .Is a directory.: give another --output"):
        run(plan(tmp_path), Console(quiet=True))

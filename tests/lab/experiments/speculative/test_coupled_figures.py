"""`antiphon-lab bench coupled` on toys, and its picture: rows of the stream are equal to `cloud` and save its passes."""

import json
import sys
from pathlib import Path

import pytest

from antiphon_lab.cli import main
from antiphon_lab.experiments.speculative.coupled import FILES, PARTS, PATIENCES, ROUND_TRIPS
from antiphon_lab.links.profiles import PROFILES
from lab.speculative_plan import PROMPTS

MODELS = ("--cloud-model", "toy-cloud", "--model", "toy-device")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for file in FILES:
        lines = [json.dumps({"prompt": f"{prompt}{file[:4]}"}) for prompt in PROMPTS]
        (folder / file).write_text("\n".join(lines if file.endswith("jsonl") else ["the rain on the inland hills " * 20] * 3))
    return folder


def command(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["antiphon-lab", "bench", *arguments])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.fixture(scope="module")
def measured(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, str]:
    """Figures of round trips and patience, and their picture."""
    folder = tmp_path_factory.mktemp("out")
    with pytest.MonkeyPatch.context() as monkeypatch, (folder / "out").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        given = ["--parts", "trips,patience", "--methods", "coupled", "--prompts", "3", "--tokens", "16"]
        plot = str(folder / "coupled.svg")
        assert command("coupled", "--data", str(data), *given, *MODELS, "--plot", plot, "--json", monkeypatch=monkeypatch) == 0
    return json.loads((folder / "out").read_text().splitlines()[-1]), (folder / "coupled.svg").read_text()


def rows(found: dict, link: str) -> dict[str, dict]:
    (setting,) = [one for one in found["settings"] if one["link"] == link]
    return {row["row"]: row for row in setting["rows"]}


@pytest.mark.slow
def test_rows_are_those_of_both_parts_once(measured: tuple[dict, str]) -> None:
    found, _ = measured
    assert [one["link"] for one in found["settings"]] == [f"rtt={trip}ms" for trip in ROUND_TRIPS]
    by_trip = ["cloud", "cloud-trips", "coupled", "coupled lockstep auto"]
    assert list(rows(found, "rtt=25ms")) == by_trip
    assert set(rows(found, "rtt=10ms")) == {*by_trip, *(f"coupled {wait} ms" for wait in PATIENCES if wait != "lockstep")}
    assert (found["prompts"], found["seeds"]) == (12, 1)


@pytest.mark.slow
def test_the_stream_writes_the_text_of_cloud_and_a_trip_a_token_pays_trips(measured: tuple[dict, str]) -> None:
    for setting in measured[0]["settings"]:
        for name, row in rows(measured[0], setting["link"]).items():
            assert row["same_as_cloud"] == row["answers"] == 12, name
            assert (row["tokens_per_round"] is None) == (name not in ("cloud-trips", "coupled lockstep auto"))
    near, far = rows(measured[0], "rtt=0ms"), rows(measured[0], "rtt=100ms")
    assert far["cloud-trips"]["speedup"] < 0.4 < 0.95 < near["cloud-trips"]["speedup"]
    assert far["coupled"]["speedup"] > 0.98 > far["coupled lockstep auto"]["speedup"]
    assert near["coupled"]["cloud_passes_per_token"] < 1 == far["cloud-trips"]["cloud_passes_per_token"]
    verdicts, closing = near["coupled"]["cloud_passes_per_token"], 12 / near["coupled"]["tokens"]
    assert near["coupled"]["down_packets_per_token"] == pytest.approx(verdicts + closing)


@pytest.mark.slow
def test_the_picture_is_drawn_again_from_the_figures(
    measured: tuple[dict, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures, picture = tmp_path / "figures.json", tmp_path / "again.svg"
    figures.write_text(json.dumps(measured[0]))
    assert command("picture", str(figures), str(picture), monkeypatch=monkeypatch) == 0
    assert picture.read_text() == measured[1]
    assert measured[1].count("<title>coupled in lockstep") == len(ROUND_TRIPS) + 1
    assert "10 ms: 0 to lockstep" in measured[1]


def test_parts_are_known_by_name(data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("coupled", "--data", str(data), "--parts", "trips,far", *MODELS, monkeypatch=monkeypatch) == 2
    assert "there is no part 'far': --parts names some of trips, patience, " in capsys.readouterr().err
    assert set(PARTS) >= {"links", "links-cool", "links-greedy"}
    assert len(PROFILES) > 8

"""Pictures that stand alone: well formed, in light and dark, true to the figures that they were drawn from."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from antiphon_lab.cli import main
from antiphon_lab.papers.xcosd.picture import SHOWN, panels
from antiphon_lab.report.charts import WIDTH, Axis, Series, lines
from antiphon_lab.report.picture import GAP, Panel, picture

ROOT = Path(__file__).resolve().parents[3]
FIGURES = ROOT / "docs" / "results" / "x-cosd.json"
SVG = "{http://www.w3.org/2000/svg}"


def draw(figures: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["antiphon-lab", "reproduce", "picture", str(figures), str(file)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


def test_panels_stand_beside_each_other() -> None:
    charts = [lines([Series(name, ((0.0, 1.0), (1.0, 2.0)))], Axis("x"), Axis("y")) for name in ("a", "b")]
    root = ElementTree.fromstring(picture([Panel("<left>", charts[0]), Panel("right", charts[1])], "a & b"))
    inner = root.findall(f"{SVG}svg")
    assert [int(one.attrib["x"]) for one in inner] == [0, WIDTH + GAP]
    assert {one.text for one in root.findall(f"{SVG}text")} == {"<left>", "right", "a & b"}
    style = root.findtext(f"{SVG}style") or ""
    assert "prefers-color-scheme: dark" in style
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    assert width == 2 * WIDTH + GAP
    for one in inner:
        assert int(one.attrib["y"]) + float(one.attrib["height"]) < height


def test_the_picture_of_the_papers_methods_is_that_of_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make picture` draws it."""
    assert draw(FIGURES, tmp_path / "speed.svg", monkeypatch) == 0
    assert (tmp_path / "speed.svg").read_text() == (ROOT / "docs" / "speed.svg").read_text()


def test_the_picture_of_the_stream_is_that_of_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = ROOT / "docs" / "results" / "coupled.json"
    monkeypatch.setattr(sys, "argv", ["antiphon-lab", "bench", "picture", str(figures), str(tmp_path / "coupled.svg")])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code
    assert (tmp_path / "coupled.svg").read_text() == (ROOT / "docs" / "coupled.svg").read_text()


def test_every_point_tells_its_figure() -> None:
    found = json.loads(FIGURES.read_text())
    shown, note = panels(FIGURES)
    for panel, curves in zip(shown, (found["throughput"], found["round_trips"]), strict=True):
        told = panel.chart.markup
        for curve in curves:
            expected = len(curve["points"]) + 1 if curve["name"] in SHOWN else 0  # its mark in the legend too
            titles = told.count(f"<title>{curve['name']}</title>") + told.count(f"<title>{curve['name']}, ")
            assert titles == expected, curve["name"]
        assert f"cloud, {curves[0]['points'][0][0]:g}: 30.3" in told
    assert found["cloud_model"] in note


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "cannot be read"), ("{}", "is not what `antiphon-lab reproduce x-cosd` writes"), ("nonsense", "is not what")],
)
def test_what_a_person_can_mend(
    content: str | None, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    if content is not None:
        file.write_text(content)
    assert draw(file, tmp_path / "speed.svg", monkeypatch) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "speed.svg").exists()
    assert draw(FIGURES, tmp_path / "missing" / "speed.svg", monkeypatch) == 2
    assert "cannot be written" in capsys.readouterr().err

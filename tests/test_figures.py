"""Every figure of the README and the documents is that of a committed result, which says what made it; and none is left out."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from antiphon_lab.papers.redrawn import PAPERS, redrawn
from antiphon_lab.stats.bootstrap import TOO_FEW

ROOT = Path(__file__).resolve().parents[1]
RESULTS = sorted((ROOT / "docs" / "results").glob("*.json"))


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("figures", ROOT / "tools" / "figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


figures = loaded()


@pytest.mark.parametrize("path", figures.documents(), ids=lambda path: path.name)
def test_every_figure_of_a_document_is_held(path: Path) -> None:
    """`python tools/figures.py --write` puts new results into the documents."""
    assert list(figures.Document(path).faults()) == []


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name)
def test_a_result_says_what_made_it(path: Path) -> None:
    """The command, a commit without changes of its own, the machine and its libraries."""
    origin = json.loads(path.read_text())["origin"]
    assert origin["command"].startswith(("antiphon ", "antiphon-lab "))
    assert re.fullmatch(r"[0-9a-f]{12}", origin["commit"])
    assert all(origin[name] for name in ("cpu", "processors", "llama_cpp", "numpy", "python"))


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name)
def test_no_interval_is_of_few_units(path: Path) -> None:
    """By quantity: an object with fewer than twelve answers has no interval in it."""

    def walk(value: object) -> None:
        if isinstance(value, dict):
            if isinstance(count := value.get("answers"), int) and count < 12:
                assert not [name for name, one in value.items() if name.endswith("interval") and one is not None]
            for one in value.values():
                walk(one)
        elif isinstance(value, list):
            for one in value:
                walk(one)

    walk(json.loads(path.read_text()))


@pytest.mark.parametrize("path", [path for path in RESULTS if path.with_suffix(".html").exists()], ids=lambda path: path.name)
def test_a_page_is_that_of_its_figures(path: Path) -> None:
    if json.loads(path.read_text())["paper"].partition(",")[0] in PAPERS:
        assert redrawn(path).render() == path.with_suffix(".html").read_text()


def test_coupled_drafting_wrote_the_text_of_cloud_in_the_results() -> None:
    """Chains, whatever the link, the patience and the temperature: token for token, in every answer."""
    found = json.loads((ROOT / "docs" / "results" / "coupled.json").read_text())
    rows = [row for setting in found["settings"] for row in setting["rows"] if "tree" not in row["row"]]
    assert len(rows) > 20
    assert all(row["same_as_cloud"] == row["answers"] == found["prompts"] for row in rows)


RESULT = {
    "rows": [{"name": "a", "n": 3, "speed": {"mean": 1.384, "interval": [1.29, 1.47]}, "kind": {"tree": False}}, {"name": "b"}],
    "points": [[10, {"mean": 2.5, "interval": None}]],
    "ratio": 0.974,
    "ratio_interval": [0.9, 1.05],
}
REGISTER = """
[[held]]
of = "run"
each = ["a"]
text = "| `{row}` | {rows[name={row},kind.tree=False].speed | ci .2f} |"

[[constant]]
text = "two drafts of 4 ms"
reason = "the profile's"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("results", "figures"):
        (tmp_path / name).mkdir()
    (tmp_path / "results" / "run.json").write_text(json.dumps(RESULT))
    (tmp_path / "figures" / "page.toml").write_text(REGISTER)
    monkeypatch.setattr(figures, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(figures, "REGISTERS", tmp_path / "figures")
    figures._results.cache_clear()
    yield tmp_path
    figures._results.cache_clear()


def faults(place: Path, text: str, register: str = REGISTER) -> list[str]:
    (place / "figures" / "page.toml").write_text(register)
    (place / "page.md").write_text(text)
    return list(figures.Document(place / "page.md").faults())


HEADER = "| | times, of 12 |\n| --- | --- |\n"
GOOD = f"{HEADER}| `a` | 1.38 (1.29 to 1.47) |\n\nIt drafts two\ndrafts of 4 ms, `--wait 7 ms`.\n"


def test_a_document_whose_figures_are_the_results(place: Path) -> None:
    assert faults(place, GOOD) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (GOOD.replace("1.38", "1.39"), "where the results have 1.38 (1.29 to 1.47)"),
        (GOOD.replace("| `a`", "| `c`"), "has no text"),
        (GOOD + "It takes 25 ms.\n", "'25 ms' is held by no result"),
        (GOOD + "It is 1.5 times as fast.\n", "'1.5 times' is held by no result"),
        (GOOD + "It loses .3 % of them.\n", "'.3 %' is held by no result"),
        (GOOD + "| `b` | 7 |\n", "'7' is held by no result"),
        (GOOD.replace("4 ms", "5 ms"), "has no constant 'two drafts of 4 ms'"),
    ],
)
def test_a_figure_that_is_not_a_result_is_seen(text: str, fault: str, place: Path) -> None:
    assert any(fault in found for found in faults(place, text))


def test_a_constant_needs_a_reason(place: Path) -> None:
    (found,) = faults(place, GOOD, REGISTER.replace('reason = "the profile\'s"', ""))
    assert "without a reason" in found


def test_a_section_of_constants_ends_with_it(place: Path) -> None:
    register = '[[constant]]\nsection = "Fields"\nreason = "the protocol"\n'
    text = "# Page\n\n## Fields\n\n3 bytes\n\n### Deeper\n\n4 bytes\n\n## Speed\n\n5 bytes\n"
    assert faults(place, text, register) == ["line 13: '5 bytes' is held by no result, and is no constant"]


def test_a_document_without_a_register_has_no_figure(place: Path) -> None:
    (place / "other.md").write_text("It takes 25 ms.\n")
    assert len(list(figures.Document(place / "other.md").faults())) == 1


def test_a_figure_before_a_full_stop_is_read_whole(place: Path) -> None:
    """0.97 is not a 0 before the end of a sentence."""
    register = '[[held]]\nof = "run"\ntext = "It is {ratio | .2f}."\n'
    assert faults(place, "It is 0.97.\n", register) == []
    assert len(faults(place, "It is 0.98.\n", register)) == 1


def test_new_results_are_written_into_the_document(place: Path) -> None:
    (place / "figures" / "page.toml").write_text(REGISTER)
    (place / "page.md").write_text(GOOD.replace("1.38 (1.29 to 1.47)", "9.99 (9 to 10)"))
    assert figures.Document(place / "page.md").written() == GOOD


@pytest.mark.parametrize(
    ("place_holder", "written"),
    [
        ("{run:rows[0].speed.mean | .1f}", "1.4"),
        ("{run:rows[0].speed.mean * 100 | .0f}", "138"),
        ("{run:rows[0].speed.mean / points[x=10][1].mean | .3f}", "0.554"),
        ("{run:points[x=10][1] | ci .1f}", f"2.5 ({TOO_FEW})"),
        ("{run:ratio | ci .2f}", "0.97 (0.90 to 1.05)"),
        ("{run:rows[0].name | }", "a"),
    ],
)
def test_what_a_place_holder_writes(place_holder: str, written: str, place: Path) -> None:
    (held,) = figures._held({"text": place_holder})
    assert held.values == (written,)


@pytest.mark.parametrize("path", ["rows[name=c].n", "rows[7]", "rows[0].speed.median", "nothing"])
def test_a_path_that_leads_nowhere_says_so(path: str, place: Path) -> None:
    with pytest.raises(LookupError, match=r"run\.json has nothing at"):
        figures.at("run", path)

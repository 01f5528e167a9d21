"""`antiphon reproduce concord` on toys: everything is there, and the numbers are those of the runs."""

import json

import pytest

from antiphon.bench import rag
from antiphon.bench.compute import PROFILES
from antiphon.bench.rag_figures import Figures
from antiphon.bench.reproduce.plans import Plan
from antiphon.bench.reproduce_concord import DELAYED, LETTER, LINK, Report, report, unequal
from antiphon.bench.reproduce_concord_claims import said
from antiphon.bench.reproduce_concord_page import page
from antiphon.config import ModelConfig, SamplingParams
from antiphon.models.toy import toy_pieces
from mixtures import Reader
from ragdata import write_rag_data

pytestmark = pytest.mark.slow
READER = ModelConfig("reader-0")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Report:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("concord")
        patch.setenv("ANTIPHON_CACHE", str(folder / "cache"))
        patch.setattr(rag, "load", lambda config: Reader(0, pieces=toy_pieces(order=1)))
        data = write_rag_data(folder)
        return report(
            Plan(data, "smoke", READER, READER, SamplingParams(temperature=0.0), "4090d-1.7b", folder / "results.jsonl", 1)
        )


def test_every_table_and_figure_of_the_paper_is_on_the_page(found: Report) -> None:
    made = page(found).render()
    for number in range(3, 8):
        assert f"Figure {number}" in made
    assert "Table I" in made
    assert "Table II" in made
    assert "Debt over time" in made
    json.dumps(found.as_json())


def test_the_numbers_are_those_of_the_runs(found: Report) -> None:
    ratio = found.figures("nq", LINK, "concord").queries_per_s.mean / found.figures("nq", LINK, "dragon").queries_per_s.mean
    claims = {one.about: one for one in said(found)}
    assert claims["CONCORD against DRAGON, nq"].here.startswith(f"{ratio:.2f} times")
    assert f"{found.figures('nq', LINK, 'concord').bytes.mean:.1f}" in claims["bytes a token, nq"].here
    assert len(claims) == len(said(found))


def test_the_letter_has_nothing_of_ours(found: Report) -> None:
    options = found.options(LETTER)
    assert (options.bound, options.realign, options.enough) == ("global", "hard", 0)
    figures = found.figures("nq", LINK, LETTER)
    assert isinstance(figures, Figures)
    assert figures.steps()["certain"].mean == 0


def test_the_device_of_two_machines_is_slower_by_as_much_as_is_said(found: Report) -> None:
    usual, slow = PROFILES["4090d-1.7b"], unequal(PROFILES["4090d-1.7b"])
    assert slow.draft.seconds(7, 500) == pytest.approx(3 * usual.draft.seconds(7, 500))
    assert slow.verify == usual.verify
    rows = found.rows("nq", DELAYED, two_machines=True)
    assert rows["dragon"].tokens_per_s.mean < found.figures("nq", LINK, "dragon").tokens_per_s.mean

"""`antiphon-lab bench retrieval`, on a few rows, and what must hold on the real ones."""

import json
import random
import sys
from pathlib import Path

import pytest
from rich.console import Console

from antiphon.errors import UsageError
from antiphon_lab.cli import main
from antiphon_lab.experiments.retrieval import Plan, run
from retrieval.samples import lines_of
from support.data import DATA


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sixty passages, each with a word of its own, which its question asks for."""
    chance = random.Random(0)
    common = ["river", "stone", "cloud", "garden", "winter", "music", *(f"c{number}ommon" for number in range(40))]
    texts = [" ".join([f"w{number}ord", *chance.choices(common, k=8)]) for number in range(60)]
    passages = [{"id": number, "title": "t", "text": text} for number, text in enumerate(texts)]
    questions = [{"question": f"what of w{number}ord and rivers", "gold_passages": [number]} for number in range(60)]
    (tmp_path / "nq_passages.jsonl").write_text(lines_of(*passages))
    (tmp_path / "nq_questions.jsonl").write_text(lines_of(*questions))
    return tmp_path


@pytest.mark.medium
def test_the_figures(folder: Path) -> None:
    report = run(Plan(folder, large=150, device_passages=(5, 70)), Console(quiet=True))
    assert report.ingested == 60
    small, large = report.searched
    assert (small.passages, small.questions, small.recall) == (60, 60, (1.0, 1.0, 1.0))
    assert (large.passages, large.recall) == (150, ())
    plain, scaled = report.weighed
    assert (plain.scorer, scaled.scorer, plain.device_passages) == ("bm25", "bm25 scaled", 5)
    assert plain.questions == scaled.questions > 20
    assert min(plain.right, scaled.right) > 0.5
    assert [row.language for row in report.spoken][:2] == ["German", "Turkish"]
    assert all(row.questions == 30 for row in report.spoken)


@pytest.mark.medium
def test_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--data", str(folder), "--questions", "5", "--passages", "80", "--json"]
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "argv", ["antiphon-lab", "bench", "retrieval", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    out, error = capsys.readouterr()
    assert json.loads(out)["searched"][0]["questions"] == 5
    assert "recall@4" in error


def test_what_cannot_be_measured(tmp_path: Path) -> None:
    for plan in ({"large": 0}, {"questions": -1}, {"device_passages": (0,)}):
        with pytest.raises(UsageError):
            Plan(tmp_path, **plan)
    with pytest.raises(UsageError, match="--data names the folder"):
        run(Plan(tmp_path), Console(quiet=True))
    (tmp_path / "nq_questions.jsonl").write_text('{"question": "x"}\n')
    with pytest.raises(UsageError, match="row that is no question"):
        run(Plan(tmp_path), Console(quiet=True))


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is absent: this test needs its questions")
def test_natural_questions() -> None:
    report = run(Plan(DATA, questions=600, device_passages=(50, 1300)), Console(quiet=True))
    assert (report.ingested, report.ingest_s < 20) == (2600, True)
    small, large = report.searched
    assert all(found > least for found, least in zip(small.recall, (0.78, 0.91, 0.94), strict=True))
    assert (large.passages, large.median_ms < 50) == (20_000, True)
    plain_few, scaled_few, plain_half, scaled_half = (row.right for row in report.weighed)
    assert plain_few < 0.9 < scaled_few
    assert scaled_half == pytest.approx(plain_half, abs=0.01)
    assert 0.6 < report.weighed[3].median_share < 0.72  # at the default temperature both ends are heard

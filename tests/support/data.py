"""Prompts from the shared data sets, where they lie beside the checkout."""

import json
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def real_prompts() -> list[str]:
    """Ten prompts: questions, German sentences, sums, and the beginnings of articles."""
    if not DATA.is_dir():
        pytest.skip("../shared/data is absent: this test needs its prompts")
    questions = [row["question"] + "?\n" for row in _rows("nq_questions.jsonl")[:3]]
    german = [f"German: {row['source']}\nEnglish:" for row in _rows("wmt22_de_en_400.jsonl")[:3]]
    sums = [f"Question: {row['question']}\nAnswer:" for row in _rows("gsm8k_test_400.jsonl")[:2]]
    lines = (DATA / "wikitext2_test.raw").read_text().splitlines()
    articles = [line.strip()[:200] for line in lines if len(line) > 400][:2]
    return questions + german + sums + articles


def _rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]

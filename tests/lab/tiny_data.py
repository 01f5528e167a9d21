"""Tiny data sets in the form of the shared ones."""

import json
from pathlib import Path

ROWS = {
    "gsm8k_test_400.jsonl": [
        {"question": f"What is {number} + 1?", "answer": f"{number} + 1 = {number + 1}\n#### {number + 1}"}
        for number in range(3)
    ],
    "mmlu_test_456.jsonl": [
        {"subject": "x", "question": f"Which is {number}?", "choices": ["0", "1", "2", "3"], "answer": number}
        for number in range(3)
    ],
    "wmt22_de_en_400.jsonl": [{"source": f"Haus {number}", "reference": f"house {number}"} for number in range(3)],
    "news_summaries_60.jsonl": [{"article": "the rain " * 200, "reference": f"it rains {number}"} for number in range(3)],
    "nq_questions.jsonl": [
        {"id": f"nq-{number}", "question": "who", "answers": ["he", "him"], "gold_passages": [number]} for number in range(3)
    ],
    "nq_passages.jsonl": [{"id": number, "title": "t", "text": f"it was he {number}"} for number in range(3)],
}


def write_data(folder: Path) -> Path:
    for name, rows in ROWS.items():
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder

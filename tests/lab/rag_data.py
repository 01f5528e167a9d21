"""Tiny data sets in the form of Natural Questions and WikiText-2, for two libraries of toys."""

import json
import random
import re
from pathlib import Path

WORDS = tuple(re.findall(r"\w+", "the mill burned down in a dry summer and then rain came on thin ice near an old hill"))


def write_rag_data(folder: Path) -> Path:
    chance = random.Random(5)

    def text(words: int) -> str:
        return " ".join(chance.choice(WORDS) for _ in range(words))

    passages = [{"id": number, "title": f"Title {number}", "text": text(12)} for number in range(16)]
    questions = [
        {"id": f"nq-{number}", "question": f"when did {text(3)}", "answers": ["a dry summer"], "gold_passages": [number]}
        for number in range(6)
    ]
    for name, rows in (("nq_passages.jsonl", passages), ("nq_questions.jsonl", questions)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = []
    for article in range(30):
        lines += [f" = Article {article} = ", "", f" {text(60)} ", " = = A part = = ", f" {text(60)} ", f" {text(4)} "]
    (folder / "wikitext2_test.raw").write_text("\n".join(lines) + "\n")
    return folder

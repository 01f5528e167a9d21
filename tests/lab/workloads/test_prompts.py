"""Prompts from rows of data sets."""

import json
from pathlib import Path


def test_rows_of_the_public_data_sets_become_prompts(tmp_path: Path) -> None:
    from antiphon_lab.workloads.prompts import prompts_of

    path = tmp_path / "rows.jsonl"
    rows = [{"question": "why"}, {"source": "ja"}, {"article": "word " * 300}, {"prompt": "as it is", "question": "no"}]
    path.write_text("\n".join(map(json.dumps, rows)))
    why, ja, article, plain = prompts_of(path, 4)
    assert (why, ja, plain) == ("Question: why\nAnswer:", "German: ja\nEnglish:", "as it is")
    assert article.split("\n\n") == [" ".join(["word"] * 180), "In short, this article says that"]
    assert prompts_of(path, 2) == [why, article]

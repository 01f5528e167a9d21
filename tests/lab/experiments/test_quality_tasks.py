"""The tasks: questions as they are asked, and scorers on answers whose score is known."""

import sys
from pathlib import Path

import numpy as np
import pytest

from antiphon.errors import UsageError
from antiphon_lab.workloads.questions import ARTICLE_WORDS
from antiphon_lab.workloads.tasks import TASKS, chosen, last_number, normalised, token_f1
from lab.tiny_data import write_data
from support.data import DATA


def score(task: str, answer: str, *references: str) -> tuple[float, ...]:
    return TASKS[task].score(answer, references)


def total(task: str, *pairs: tuple[str, str]) -> float:
    return TASKS[task].metrics[0].total(np.array([score(task, *pair) for pair in pairs]).sum(0))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (" 3 + 8 = 11 apples. The answer is 11.", 11),
        ("$1,250,000 in all", 1250000),
        ("16-3", 3),
        ("it fell by -4", -4),
        ("2.50", 2.5),
        ("v1.2.3", 1.2),
        ("1, 2, 3", 3),
        ("none", None),
        ("", None),
    ],
)
def test_the_last_number(text: str, number: float | None) -> None:
    found = last_number(text)
    assert (None if found is None else float(found)) == number


def test_gsm8k() -> None:
    assert score("gsm8k", " 9 * 2 = $18.00.", "18") == (1, 1)
    assert score("gsm8k", " The answer is 114200", "114,200") == (1, 1)
    assert score("gsm8k", " The answer is 18, no, 19", "18") == (0, 1)
    assert score("gsm8k", " nothing", "18") == (0, 1)
    assert total("gsm8k", ("18", "18"), ("1", "2")) == 50


def test_mmlu() -> None:
    assert score("mmlu", " B", "B") == (1, 1)
    assert score("mmlu", " (B) Mars", "B") == (1, 1)
    assert score("mmlu", " C", "B") == (0, 1)
    assert score("mmlu", " Because B", "B") == (0, 1)
    assert score("mmlu", "", "B") == (0, 1)


def test_normalised_as_squad_does() -> None:
    assert normalised("The  Eiffel-Tower, (Paris)!") == "eiffeltower paris"
    assert normalised("a theory") == "theory"


def test_nq() -> None:
    assert score("nq", " May 18, 2018.", "May 18, 2018", "x") == (1, 1, 1)
    assert score("nq", " 2018", "x", "May 18, 2018") == (0.5, 0, 1)
    assert score("nq", " the Rhône", "Rhône") == (1, 1, 1)
    assert score("nq", " 1936", "1912") == (0, 0, 1)
    assert score("nq", "", "1912") == (0, 0, 1)
    assert token_f1("a b b", "b b c") == pytest.approx(2 * 2 / (2 + 3))
    assert [metric.total(np.array([1.5, 1.0, 2.0])) for metric in TASKS["nq"].metrics] == [75, 50]


PAIRS = [
    (" The goods cost 20 euros.", "The goods cost less than 20 euros."),
    ("That could take a while in the end", "That could take a minute in the end."),
    ("", "nothing came"),
]


def test_wmt22_sums_to_the_corpus_bleu_of_sacrebleu() -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    answers, references = [pair[0].strip() for pair in PAIRS], [pair[1] for pair in PAIRS]
    wanted = sacrebleu.corpus_bleu(answers, [references]).score
    assert 20 < wanted < 80
    assert total("wmt22", *PAIRS) == pytest.approx(wanted, abs=1e-12)
    short = sacrebleu.corpus_bleu(["No, nothing of it."], [["nothing of that is there"]]).score
    assert 0 < short == pytest.approx(total("wmt22", ("No, nothing of it.", "nothing of that is there")), abs=1e-12)
    assert total("wmt22", ("the same five words here", "the same five words here")) == pytest.approx(100)
    assert total("wmt22", ("no", "nothing of it is there")) < 10
    assert total("wmt22", ("", "nothing came")) == 0
    assert len(score("wmt22", "", "x")) == TASKS["wmt22"].size


def test_news() -> None:
    pytest.importorskip("rouge_score")
    assert score("news", "The dog barked.", "the dog barked") == (1, 1)
    assert score("news", "the dogs barked", "the dog barked loudly")[0] == pytest.approx(2 * 1 * (2 / 3) / (1 + 2 / 3))
    assert score("news", "barked dog the", "the dog barked") == (0, 1)
    assert score("news", "", "the dog barked") == (0, 1)


@pytest.mark.parametrize(("task", "answer", "reference"), [(name, " B 7", "B 7") for name in TASKS])
def test_every_score_has_the_size_that_its_task_tells(task: str, answer: str, reference: str) -> None:
    assert len(score(task, answer, reference)) == TASKS[task].size


@pytest.mark.parametrize("name", TASKS)
def test_questions_of_every_task(name: str, tmp_path: Path) -> None:
    questions = TASKS[name].read(write_data(tmp_path))
    assert len({question.references for question in questions} | {question.prompt for question in questions}) > 3
    for question in questions:
        assert all(question.references)
        assert not question.prompt.endswith(("\n", " "))
        assert len(question.prompt.split()) < ARTICLE_WORDS + 20


@pytest.mark.parametrize("name", TASKS)
def test_questions_of_the_real_data(name: str) -> None:
    if not DATA.is_dir():
        pytest.skip("../shared/data is absent: this test needs its rows")
    task = TASKS[name]
    questions = task.read(DATA)
    assert len(questions) >= 60
    right = [task.score(question.references[0], question.references) for question in questions]
    assert task.metrics[0].total(np.array(right).sum(0)) == pytest.approx(100)


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("mmlu_test_456.jsonl", '{"question": "x", "choices": ["1", "2", "3", "4"], "answer": 4}\n', "line 1 of .* no row"),
        ("mmlu_test_456.jsonl", '{"question": "x", "choices": ["1"], "answer": 0}\n', "line 1 of .* no row"),
        ("gsm8k_test_400.jsonl", '{"question": "x", "answer": "#### 1"}\n{"question": 3}\n', "line 2 of .* no row"),
        ("news_summaries_60.jsonl", "\xff", "line 1 of .* no row"),
        ("nq_questions.jsonl", '{"question": "x", "answers": [], "gold_passages": [0]}\n', "line 1 of .* no row"),
        ("nq_questions.jsonl", '{"question": "x", "answers": ["y"], "gold_passages": [9]}\n', "lacks passage 9"),
    ],
)
def test_damaged_data(file: str, text: str, sentence: str, tmp_path: Path) -> None:
    write_data(tmp_path)
    (tmp_path / file).write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=sentence):
        TASKS[file.partition("_")[0]].read(tmp_path)


def test_missing_data(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gsm8k_test_400\.jsonl cannot be read .*: --data names the folder"):
        TASKS["gsm8k"].read(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("task", "module", "name"), [("wmt22", "sacrebleu", "sacrebleu"), ("news", "rouge_score", "rouge-score")]
)
def test_a_missing_extra(task: str, module: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=rf"the task {task} needs {name}: run `pip install 'antiphon\[lab\]'`"):
        chosen(["gsm8k", task])
    assert [found.name for found in chosen(["nq", "gsm8k", "nq"])] == ["nq", "gsm8k"]


def test_an_unknown_task() -> None:
    with pytest.raises(UsageError, match="there is no task 'chess': use one of gsm8k, mmlu, wmt22, news, nq"):
        chosen(["chess"])

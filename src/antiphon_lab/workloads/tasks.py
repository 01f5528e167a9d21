"""The tasks of `antiphon-lab bench quality`: what is asked, where an answer stops, and how it is scored.

Every answer becomes a few numbers, its *statistics*. They are summed over the rows, and a metric is a function of the sums: a
mean and corpus BLEU are then one thing, and the bootstrap resamples both alike.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from antiphon.errors import UsageError
from antiphon_lab.workloads.questions import Question, read_gsm8k, read_mmlu, read_news, read_nq, read_wmt22

Statistics = tuple[float, ...]
Sums = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Metric:
    """A score from 0 to 100, the higher the better. total: the score by the summed statistics, shape (statistics,)."""

    name: str
    total: Callable[[Sums], float]


@dataclass(frozen=True, slots=True)
class Task:
    """A task. read: its questions, from the folder of data. score: statistics of an answer, by its references.

    size: how many statistics an answer has. package: what the scores need besides, as (module, name).
    """

    name: str
    read: Callable[[Path], list[Question]]
    max_tokens: int
    stop: tuple[str, ...]
    score: Callable[[str, Sequence[str]], Statistics]
    size: int
    metrics: tuple[Metric, ...]
    package: tuple[str, str] | None = None


def chosen(names: Sequence[str]) -> tuple[Task, ...]:
    """The tasks of these names, each once. Raises UsageError for one that there is not, or whose package is missing."""
    tasks = tuple(_find(name) for name in dict.fromkeys(names))
    for task in tasks:
        if task.package is not None and find_spec(task.package[0]) is None:
            raise UsageError(f"the task {task.name} needs {task.package[1]}: run `pip install 'antiphon[lab]'`")
    return tasks


def _find(name: str) -> Task:
    if name not in TASKS:
        raise UsageError(f"there is no task {name!r}: use one of {', '.join(TASKS)}")
    return TASKS[name]


_NUMBER = re.compile(r"(?<![\d.])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_LETTER = re.compile(r"\s*\(?([A-D])\b")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def last_number(text: str) -> Decimal | None:
    """The last number in a text, commas between thousands left out; None without one."""
    found = _NUMBER.findall(text)
    return Decimal(found[-1].replace(",", "")) if found else None


def score_number(answer: str, references: Sequence[str]) -> Statistics:
    """(1 if the last number is the right one, 1)."""
    found = last_number(answer)
    return float(found is not None and found in map(last_number, references)), 1.0


def score_letter(answer: str, references: Sequence[str]) -> Statistics:
    """(1 if the answer opens with the right letter, 1)."""
    found = _LETTER.match(answer)
    return float(found is not None and found[1] in references), 1.0


def normalised(text: str) -> str:
    """As SQuAD compares answers: lower case, without punctuation, articles and spare spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def token_f1(answer: str, reference: str) -> float:
    """Harmonic mean of precision and recall of words, 0 to 1."""
    ours, theirs = normalised(answer).split(), normalised(reference).split()
    if not ours or not theirs:
        return float(ours == theirs)
    return 2 * (Counter(ours) & Counter(theirs)).total() / (len(ours) + len(theirs))


def score_fact(answer: str, references: Sequence[str]) -> Statistics:
    """(F1, 1 if it matches exactly, 1), each by the reference that fits best."""
    exact = normalised(answer) in map(normalised, references)
    return max(token_f1(answer, reference) for reference in references), float(exact), 1.0


def score_bleu(answer: str, references: Sequence[str]) -> Statistics:
    """What corpus BLEU sums over sentences: matches and totals of 1- to 4-grams, lengths of answer and reference; 10 in all."""
    found = _bleu().corpus_score([answer.strip()], [[reference] for reference in references])
    return tuple(map(float, (*found.counts, *found.totals, found.sys_len, found.ref_len)))


def total_bleu(sums: Sums) -> float:
    """Corpus BLEU as sacrebleu computes it by default."""
    matches, totals, (answers, references) = np.split(sums.astype(int), [4, 8])
    return float(_bleu().compute_bleu(matches.tolist(), totals.tolist(), answers, references, smooth_method="exp").score)


def score_rouge(answer: str, references: Sequence[str]) -> Statistics:
    """(F1 of ROUGE-2 with stemming, by the reference that fits best, 1)."""
    return max(float(_rouge().score(reference, answer)["rouge2"].fmeasure) for reference in references), 1.0


@cache
def _bleu() -> Any:
    from sacrebleu.metrics.bleu import BLEU  # only now: an extra

    return BLEU()


@cache
def _rouge() -> Any:
    from rouge_score.rouge_scorer import RougeScorer  # only now: an extra

    return RougeScorer(["rouge2"], use_stemmer=True)


def _mean(sums: Sums) -> float:
    return 100.0 * float(sums[0] / sums[-1])


def _mean_of_second(sums: Sums) -> float:
    return 100.0 * float(sums[1] / sums[-1])


_FACT = (Metric("F1", _mean), Metric("exact", _mean_of_second))
_SACREBLEU, _ROUGE_SCORE = ("sacrebleu", "sacrebleu"), ("rouge_score", "rouge-score")
_LINE = ("\n",)
TASKS = {
    task.name: task
    for task in (
        Task("gsm8k", read_gsm8k, 96, _LINE, score_number, 2, (Metric("match", _mean),)),
        Task("mmlu", read_mmlu, 4, _LINE, score_letter, 2, (Metric("accuracy", _mean),)),
        Task("wmt22", read_wmt22, 48, _LINE, score_bleu, 10, (Metric("BLEU", total_bleu),), _SACREBLEU),
        Task("news", read_news, 56, _LINE, score_rouge, 2, (Metric("ROUGE-2", _mean),), _ROUGE_SCORE),
        Task("nq", read_nq, 16, _LINE, score_fact, 3, _FACT),
    )
}
"""The tasks, by name."""

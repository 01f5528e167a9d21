"""Quality: the answers of several methods to the same questions, scored side by side, as `antiphon-lab bench quality` does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from antiphon_lab.experiments.quality import Score
from antiphon_lab.stats.bootstrap import difference_interval
from antiphon_lab.workloads.questions import Question
from antiphon_lab.workloads.tasks import Task

Texts = Sequence[str]
"""Answers to the questions of a task, in their order."""


@dataclass(frozen=True, slots=True)
class Quality:
    """A method's scores on a task: one for each metric, and over how many questions."""

    name: str
    scores: tuple[Score, ...]
    questions: int


def until_stop(text: str, stop: Sequence[str]) -> str:
    """The text before the first stop string: what an answer would have been that stops there."""
    return text[: min((text.find(end) for end in stop if end in text), default=len(text))]


def scored(task: Task, questions: Sequence[Question], texts: Mapping[str, Texts], reference: str) -> list[Quality]:
    """By method; differences are to the method `reference`, with intervals bootstrapped over the questions."""
    sums = {name: _statistics(task, questions, answers) for name, answers in texts.items()}
    found = []
    for name, mine in sums.items():
        theirs, scores = sums[reference], []
        for metric in task.metrics:
            score = metric.total(mine.sum(0))
            if name == reference:
                scores.append(Score(task.name, metric.name, score, None, None))
            else:
                interval = difference_interval(mine, theirs, metric.total)
                scores.append(Score(task.name, metric.name, score, score - metric.total(theirs.sum(0)), interval))
        found.append(Quality(name, tuple(scores), len(questions)))
    return found


def _statistics(task: Task, questions: Sequence[Question], answers: Texts) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    rows = [
        task.score(until_stop(answer, task.stop), question.references)
        for question, answer in zip(questions, answers, strict=True)
    ]
    return np.array(rows, dtype=np.float64)

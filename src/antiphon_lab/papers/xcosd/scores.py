"""Quality: the answers of several methods to the same questions, scored side by side, as `antiphon-lab bench quality` does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from antiphon_lab.experiments.quality import Score, scores_of
from antiphon_lab.workloads.questions import Question
from antiphon_lab.workloads.tasks import Sums, Task

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
    return [
        Quality(name, tuple(scores_of(task, mine, None if name == reference else sums[reference])), len(questions))
        for name, mine in sums.items()
    ]


def _statistics(task: Task, questions: Sequence[Question], answers: Texts) -> Sums:
    rows = [
        task.score(until_stop(answer, task.stop), question.references)
        for question, answer in zip(questions, answers, strict=True)
    ]
    return np.array(rows, dtype=np.float64)

"""`antiphon-lab bench quality`: the same questions answered by several methods, scored side by side.

Methods use their random numbers differently, so above temperature 0 even exact ones write different answers: an interval of the
difference to `cloud` tells what is noise. Every answer is kept as soon as it is there, and the same command goes on from there.
"""

import asyncio
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from antiphon import __version__
from antiphon.config import ModelConfig, Request, SamplingParams
from antiphon.demo.cloud_process import cloud_process, connected
from antiphon.device.answer import Result
from antiphon.device.generate import Device
from antiphon.errors import UsageError
from antiphon.methods import find
from antiphon.models import load
from antiphon_lab.ends.trials import seed_of
from antiphon_lab.report.screen import progress_bar, table_of
from antiphon_lab.stats.bootstrap import TOO_FEW, Interval, difference_interval
from antiphon_lab.store import Store
from antiphon_lab.workloads.questions import Question
from antiphon_lab.workloads.tasks import Statistics, Sums, Task, chosen

REFERENCE = "cloud"
"""The method that the others are compared with; it is always run."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the benchmark runs. data: the folder of the data sets. rows: of each task. results: where answers are kept."""

    data: Path
    methods: tuple[str, ...]
    tasks: tuple[str, ...]
    rows: int
    results: Path
    cloud_model: ModelConfig
    device_model: ModelConfig
    sampling: SamplingParams
    draft_length: int
    seed: int

    def settings(self) -> dict[str, object]:
        """What an answer depends on besides its question and method."""
        return {
            "version": __version__,
            "cloud_model": self.cloud_model.name,
            "model": self.device_model.name,
            "temperature": float(self.sampling.temperature),
            "draft_length": self.draft_length,
            "seed": self.seed,
        }

    def request(self, ask: "Ask") -> Request:
        """What `ask` asks the device for."""
        options = find(ask.method).options_from({"draft_length": self.draft_length})
        limits = (ask.task.max_tokens, ask.task.stop)
        return Request(ask.question.prompt, ask.method, options, self.sampling, *limits, seed=ask.seed(self.seed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A finished answer. statistics: see `Task.score`. tokens: those committed, of a stop string too."""

    text: str
    statistics: Statistics
    tokens: int
    uplink_bits_per_token: float
    downlink_bits_per_token: float


@dataclass(frozen=True, slots=True)
class Ask:
    """One answer to write: this question by this method. row: the question's place in the task's file, from 0."""

    task: Task
    row: int
    question: Question
    method: str

    @property
    def key(self) -> str:
        """Which answer it is, with a digest of the question."""
        asked = json.dumps([asdict(self.question), self.task.max_tokens, self.task.stop])
        return f"{self.task.name} {self.row} {self.method} {hashlib.sha256(asked.encode()).hexdigest()[:16]}"

    def seed(self, run_seed: int) -> int:
        """The same for every method, another for every row, 64 bits."""
        return seed_of(f"{run_seed} {self.task.name} {self.row}")

    def written(self, result: Result) -> Written:
        """What is kept of the answer."""
        committed, traffic, text = result.answer.committed, result.traffic, result.answer.text
        return Written(
            text=text,
            statistics=self.task.score(text, self.question.references),
            tokens=committed,
            uplink_bits_per_token=traffic.up.bits / committed,
            downlink_bits_per_token=traffic.down.bits / committed,
        )


def spread(size: int, rows: int) -> list[int]:
    """`rows` places of a file of `size` rows, spread over it; more rows keep the earlier ones, so that a run can be extended.

    Steps by the golden ratio, as the points of a low-discrepancy sequence.
    """
    step = next(number for number in range(max(1, round(0.618 * size)), size + 2) if math.gcd(number, size) == 1)
    return [place * step % size for place in range(rows)]


def planned(plan: Plan) -> list[Ask]:
    """Every answer of the run, row by row with the methods inside. Raises UsageError for a plan that cannot be."""
    methods = tuple(dict.fromkeys((REFERENCE, *plan.methods)))
    for name in methods:
        find(name).options_from({"draft_length": plan.draft_length})
    if plan.rows < 1:
        raise UsageError(f"--rows must be at least 1, not {plan.rows}")
    questions = [(task, _questions(task, plan)) for task in chosen(plan.tasks)]
    return [Ask(task, *rows[place], method) for place in range(plan.rows) for task, rows in questions for method in methods]


def _questions(task: Task, plan: Plan) -> list[tuple[int, Question]]:
    found = task.read(plan.data)
    if plan.rows > len(found):
        raise UsageError(f"--rows must be at most {len(found)}, the rows that {task.name} has, not {plan.rows}")
    return [(row, found[row]) for row in spread(len(found), plan.rows)]


def run(plan: Plan, console: Console) -> "Report":
    """Write the answers that are not there yet, and show the table. Raises one of `antiphon.errors`; what is written stays."""
    asks = planned(plan)
    store = Store(plan.results, [f"{name} {value}" for name, value in plan.settings().items()])
    notes = Console(stderr=True)
    if store.was_torn:
        notes.print(f"the last answer in {plan.results} was cut short: it is written again", markup=False)
    if any(ask.key not in store for ask in asks):
        with _kept(plan, asks, store, notes), store.adding():
            _write(plan, asks, store, notes)
    report = Report(plan, tuple(_rows({ask: store.get(ask.key, Written) for ask in asks})))
    console.print(table(report))
    return report


@contextmanager
def _kept(plan: Plan, asks: Sequence[Ask], store: Store, notes: Console) -> Iterator[None]:
    """Say what is kept, if the run ends before its time."""
    try:
        yield
    finally:
        done = sum(ask.key in store for ask in asks)
        if done < len(asks):
            notes.print(f"{done} of {len(asks)} answers are kept in {plan.results}: the same command goes on", markup=False)


def _write(plan: Plan, asks: Sequence[Ask], store: Store, notes: Console) -> None:
    """Start both ends and write what is missing."""
    todo = [ask for ask in asks if ask.key not in store]
    with ExitStack() as stack:
        progress = stack.enter_context(progress_bar(notes))
        bar = progress.add_task("starting the cloud and loading the models", total=len(asks), completed=len(asks) - len(todo))
        url = stack.enter_context(cloud_process(plan.cloud_model))
        device = Device(load(plan.device_model) if any(find(ask.method).drafts for ask in todo) else None)
        stack.callback(device.close)

        def show(ask: Ask) -> None:
            progress.update(bar, description=f"{ask.task.name}, row {ask.row}, {ask.method}")

        def keep(ask: Ask, result: Result) -> None:
            store.keep(ask.key, ask.written(result))
            progress.advance(bar)

        asyncio.run(_answers(plan, todo, device, url, show, keep))


async def _answers(
    plan: Plan, todo: Sequence[Ask], device: Device, url: str, show: Callable[[Ask], None], keep: Callable[[Ask, Result], None]
) -> None:
    async with connected(device, url) as connection:
        for ask in todo:
            show(ask)
            keep(ask, await device.generate(plan.request(ask), connection))


@dataclass(frozen=True, slots=True)
class Score:
    """A method's score on a task, 0 to 100. difference: to `cloud`, with its 95 % interval.

    Both are None for `cloud` itself, the interval also of too few questions.
    """

    task: str
    metric: str
    score: float
    difference: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Row:
    """A method's line of the table. tokens: committed in all answers; the bits are a committed token."""

    method: str
    exact: bool
    scores: tuple[Score, ...]
    tokens: int
    uplink_bits_per_token: float
    downlink_bits_per_token: float


@dataclass(frozen=True, slots=True)
class Report:
    """What a finished run found."""

    plan: Plan
    rows: tuple[Row, ...]

    def as_json(self) -> dict[str, object]:
        """Settings and figures, by name."""
        return {**self.plan.settings(), "rows": self.plan.rows, "methods": [asdict(row) for row in self.rows]}


def _rows(written: Mapping[Ask, Written]) -> Iterator[Row]:
    tasks = {ask.task.name: ask.task for ask in written}
    for name in dict.fromkeys(ask.method for ask in written):
        scores = [score for task in tasks.values() for score in scores_of(task, *_statistics(written, task, name))]
        ours = [one for ask, one in written.items() if ask.method == name]
        tokens = sum(one.tokens for one in ours)
        up = sum(one.tokens * one.uplink_bits_per_token for one in ours) / tokens
        down = sum(one.tokens * one.downlink_bits_per_token for one in ours) / tokens
        yield Row(name, find(name).exact, tuple(scores), tokens, up, down)


def _statistics(written: Mapping[Ask, Written], task: Task, method: str) -> tuple[Sums, Sums | None]:
    """Those of a method and of the reference, question by question; None for the reference's own."""
    ours, theirs = (
        np.array([one.statistics for ask, one in written.items() if (ask.task, ask.method) == (task, name)], dtype=np.float64)
        for name in (method, REFERENCE)
    )
    return ours, None if method == REFERENCE else theirs


def scores_of(task: Task, ours: Sums, reference: Sums | None) -> Iterator[Score]:
    """One for each metric, of the statistics of the same questions, shape (questions, statistics); None: for the reference."""
    for metric in task.metrics:
        score = metric.total(ours.sum(0))
        if reference is None:
            yield Score(task.name, metric.name, score, None, None)
        else:
            difference = score - metric.total(reference.sum(0))
            yield Score(task.name, metric.name, score, difference, difference_interval(ours, reference, metric.total))


def table(report: Report) -> Table:
    """A row a method, a column a metric; below each score the interval of its difference to `cloud`."""
    title = f"Scores, 0 to 100 (rows a task: {report.plan.rows}), with the 95 % interval of the difference to cloud"
    metrics = [f"{score.task}\n{score.metric}" for score in report.rows[0].scores]
    rows = {
        row.method: [
            "yes" if row.exact else "no",
            *map(_cell, row.scores),
            *map(_short, (row.uplink_bits_per_token, row.downlink_bits_per_token)),
        ]
        for row in report.rows
    }
    return table_of(title, ("exact", *metrics, "bits\nup", "bits\ndown"), rows, "bits are a committed token")


def _cell(score: Score) -> str:
    if score.difference is None:
        return f"{score.score:.1f}"
    interval = TOO_FEW if score.interval is None else "[{:+.1f},\n{:+.1f}]".format(*score.interval)
    return f"{score.score:.1f}\n{interval}"


def _short(bits: float) -> str:
    return f"{bits / 1e6:.2f}M" if bits >= 1e6 else f"{bits:,.0f}"

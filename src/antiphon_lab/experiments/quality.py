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
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from antiphon import __version__
from antiphon.config import ModelConfig, Request, SamplingParams
from antiphon.demo.cloud_process import cloud_process, connected
from antiphon.device.answer import Result
from antiphon.device.generate import Device
from antiphon.errors import UsageError
from antiphon.methods import find
from antiphon.models import load
from antiphon_lab.answer_records import Expected, Key, Record, RecordFile, Settings, appending, read_records
from antiphon_lab.stats.bootstrap import TOO_FEW, Interval, difference_interval
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

    def settings(self) -> Settings:
        """What a kept answer must have been written with."""
        return Settings(
            version=__version__,
            cloud_model=self.cloud_model.name,
            model=self.device_model.name,
            temperature=float(self.sampling.temperature),
            draft_length=self.draft_length,
            seed=self.seed,
        )

    def request(self, ask: "Ask") -> Request:
        """What `ask` asks the device for."""
        options = find(ask.method).options_from({"draft_length": self.draft_length})
        limits = (ask.task.max_tokens, ask.task.stop)
        return Request(ask.question.prompt, ask.method, options, self.sampling, *limits, seed=ask.seed(self.seed))


@dataclass(frozen=True, slots=True)
class Ask:
    """One answer to write: this question by this method. row: the question's place in the task's file, from 0."""

    task: Task
    row: int
    question: Question
    method: str

    @property
    def key(self) -> Key:
        """Which answer it is."""
        return self.task.name, self.row, self.method

    def seed(self, run_seed: int) -> int:
        """The same for every method, another for every row, 64 bits."""
        name = f"{run_seed} {self.task.name} {self.row}"
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")

    def expected(self) -> Expected:
        """What a kept answer to this question must agree with."""
        asked = json.dumps([asdict(self.question), self.task.max_tokens, self.task.stop])
        return Expected(hashlib.sha256(asked.encode()).hexdigest()[:16], self.task.size)

    def record(self, settings: Settings, result: Result) -> Record:
        """What is kept of the answer."""
        committed, traffic, text = result.answer.committed, result.traffic, result.answer.text
        return Record(
            settings=settings,
            task=self.task.name,
            row=self.row,
            method=self.method,
            seed=result.seed,
            asked=self.expected().asked,
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
    expected = {(ask.task.name, ask.row): ask.expected() for ask in asks}
    records, torn = read_records(plan.results, plan.settings(), expected)
    notes = Console(stderr=True)
    if torn:
        notes.print(f"the last answer in {plan.results} was cut short: it is written again", markup=False)
    if any(ask.key not in records for ask in asks):
        with _kept(plan, asks, records, notes), appending(plan.results) as file:
            _write(plan, asks, records, file, notes)
    report = Report(plan, tuple(_rows(asks, records)))
    console.print(table(report))
    return report


@contextmanager
def _kept(plan: Plan, asks: Sequence[Ask], records: Mapping[Key, Record], notes: Console) -> Iterator[None]:
    """Say what is kept, if the run ends before its time."""
    try:
        yield
    finally:
        done = sum(ask.key in records for ask in asks)
        if done < len(asks):
            notes.print(f"{done} of {len(asks)} answers are kept in {plan.results}: the same command goes on", markup=False)


def _write(plan: Plan, asks: Sequence[Ask], records: dict[Key, Record], file: RecordFile, notes: Console) -> None:
    """Start both ends and write what is missing."""
    todo = [ask for ask in asks if ask.key not in records]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(*columns, console=notes))
        bar = progress.add_task("starting the cloud and loading the models", total=len(asks), completed=len(asks) - len(todo))
        url = stack.enter_context(cloud_process(plan.cloud_model))
        device = Device(load(plan.device_model) if any(find(ask.method).drafts for ask in todo) else None)
        stack.callback(device.close)

        def show(ask: Ask) -> None:
            progress.update(bar, description=f"{ask.task.name}, row {ask.row}, {ask.method}")

        def keep(record: Record) -> None:
            file.add(record)
            records[record.key] = record
            progress.advance(bar)

        asyncio.run(_answers(plan, todo, device, url, show, keep))


async def _answers(
    plan: Plan, todo: Sequence[Ask], device: Device, url: str, show: Callable[[Ask], None], keep: Callable[[Record], None]
) -> None:
    async with connected(device, url) as connection:
        for ask in todo:
            show(ask)
            keep(ask.record(plan.settings(), await device.generate(plan.request(ask), connection)))


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
        return {**asdict(self.plan.settings()), "rows": self.plan.rows, "methods": [asdict(row) for row in self.rows]}


def _rows(asks: Sequence[Ask], records: Mapping[Key, Record]) -> Iterator[Row]:
    tasks = {ask.task.name: ask.task for ask in asks}
    answers = {name: [records[ask.key] for ask in asks if ask.method == name] for name in dict.fromkeys(a.method for a in asks)}
    for name, ours in answers.items():
        scores = [score for task in tasks.values() for score in _scores(task, ours, answers[REFERENCE])]
        tokens = sum(record.tokens for record in ours)
        up = sum(record.tokens * record.uplink_bits_per_token for record in ours) / tokens
        down = sum(record.tokens * record.downlink_bits_per_token for record in ours) / tokens
        yield Row(name, find(name).exact, tuple(scores), tokens, up, down)


def _scores(task: Task, ours: Sequence[Record], reference: Sequence[Record]) -> Iterator[Score]:
    """One for each metric. Both hold the same rows in the same order."""
    mine, theirs = (_statistics(task, records) for records in (ours, reference))
    for metric in task.metrics:
        score = metric.total(mine.sum(0))
        if ours is reference:
            yield Score(task.name, metric.name, score, None, None)
        else:
            difference = score - metric.total(theirs.sum(0))
            yield Score(task.name, metric.name, score, difference, difference_interval(mine, theirs, metric.total))


def _statistics(task: Task, records: Sequence[Record]) -> Sums:
    found: list[Statistics] = [record.statistics for record in records if record.task == task.name]
    return np.array(found, dtype=np.float64)


def table(report: Report) -> Table:
    """A row a method, a column a metric; below each score the interval of its difference to `cloud`."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    shown.title = f"Scores, 0 to 100 (rows a task: {report.plan.rows}), with the 95 % interval of the difference to cloud"
    shown.title_justify = "left"
    shown.caption, shown.caption_justify = "bits are a committed token", "left"
    shown.add_column("method")
    shown.add_column("exact")
    for heading in (*(f"{score.task}\n{score.metric}" for score in report.rows[0].scores), "bits\nup", "bits\ndown"):
        shown.add_column(heading, justify="right")
    for row in report.rows:
        bits = map(_short, (row.uplink_bits_per_token, row.downlink_bits_per_token))
        shown.add_row(row.method, "yes" if row.exact else "no", *map(_cell, row.scores), *bits)
    return shown


def _cell(score: Score) -> Text:
    if score.difference is None:
        return Text(f"{score.score:.1f}")
    interval = TOO_FEW if score.interval is None else "[{:+.1f},\n{:+.1f}]".format(*score.interval)
    return Text(f"{score.score:.1f}\n{interval}")


def _short(bits: float) -> str:
    return f"{bits / 1e6:.2f}M" if bits >= 1e6 else f"{bits:,.0f}"

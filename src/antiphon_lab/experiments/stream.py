"""`antiphon-lab bench stream`: is a method as fast as the cloud's plain stream, in real time, on this machine?

Two processes, the cloud's and the device's, over loopback as it is or over emulated links. The two answers to a prompt are
written one right after the other, in turns which first: whatever else the machine does meanwhile does it to both. Medians
count, and of the ratio those of pairs.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from rich.console import Console
from rich.table import Table

from antiphon.config import ModelConfig, Request, SamplingParams
from antiphon.demo.table import PROMPTS
from antiphon.device.answer import Result
from antiphon.errors import UsageError
from antiphon.methods import find
from antiphon_lab.ends.real import RealEnds
from antiphon_lab.links.link import Link
from antiphon_lab.report.screen import progress_bar, table_of

REFERENCE = "cloud"
LOOPBACK = "loopback"
"""Where no link is emulated."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared. links: None is loopback. answers: of each, in each setting. Raises UsageError."""

    method: str
    links: tuple[Link | None, ...]
    temperatures: tuple[float, ...]
    answers: int
    tokens: int
    seed: int
    cloud_model: ModelConfig
    device_model: ModelConfig

    def __post_init__(self) -> None:
        if find(self.method, mixes=False).cloud is None:
            raise UsageError(
                f"{self.method} asks no cloud, so it writes another text: use a method that drafts, such as coupled"
            )
        if self.answers < 1:
            raise UsageError(f"--answers must be at least 1, not {self.answers}")

    def request(self, method: str, temperature: float, place: int) -> Request:
        """The answer of this place: prompts take turns, each time with another seed."""
        sampling, prompt = SamplingParams(temperature=temperature), PROMPTS[place % len(PROMPTS)]
        return Request(prompt, method, None, sampling, self.tokens, seed=self.seed + place)


@dataclass(frozen=True, slots=True)
class Pair:
    """The same answer by both."""

    reference: Result
    method: Result

    @property
    def faster(self) -> float:
        """How many times as many tokens a second the method wrote."""
        return _speed(self.method) / _speed(self.reference)

    @property
    def same(self) -> bool:
        """Whether it is the same answer."""
        return self.method.token_ids == self.reference.token_ids


@dataclass(frozen=True, slots=True)
class Row:
    """What was found in one setting."""

    link: str
    temperature: float
    pairs: tuple[Pair, ...]

    def as_json(self) -> dict[str, object]:
        """Medians over the pairs."""
        ours, theirs = [pair.method for pair in self.pairs], [pair.reference for pair in self.pairs]
        return {
            "link": self.link,
            "temperature": self.temperature,
            "faster": median(pair.faster for pair in self.pairs),
            "tokens_per_s": median(map(_speed, ours)),
            "cloud_tokens_per_s": median(map(_speed, theirs)),
            "passes_per_token": median(one.passes / one.tokens for one in ours),
            "ms_per_pass": median(one.compute_ms / one.passes for one in ours),
            "cloud_ms_per_pass": median(one.compute_ms / one.passes for one in theirs),
            "same": sum(pair.same for pair in self.pairs),
            "ratios": [pair.faster for pair in self.pairs],
        }


@dataclass(frozen=True, slots=True)
class Report:
    """All settings. load: how many processes ran or wanted to on the machine, in the minute before and at the end."""

    plan: Plan
    rows: tuple[Row, ...]
    load: tuple[float, float]

    def as_json(self) -> dict[str, object]:
        """All of it."""
        plan = self.plan
        models = {"cloud_model": plan.cloud_model.name, "model": plan.device_model.name, "threads": plan.cloud_model.threads}
        sizes = {"method": plan.method, "answers": plan.answers, "tokens": plan.tokens}
        return {**models, **sizes, "time": "real", "load": self.load, "rows": [row.as_json() for row in self.rows]}


def run(plan: Plan, console: Console) -> Report:
    """Write all the answers, and show them. Raises one of `antiphon.errors`."""
    before, settings = os.getloadavg()[0], [(link, heat) for heat in plan.temperatures for link in plan.links]
    with RealEnds(plan.cloud_model, plan.device_model) as ends, progress_bar(Console(stderr=True)) as progress:
        task = progress.add_task("answers", total=len(settings) * plan.answers)
        rows = []
        for link, heat in settings:
            _pair(plan, ends, link, heat, 0)  # what is done once, such as to learn what passes cost, is done now
            pairs = []
            for place in range(plan.answers):
                pairs.append(_pair(plan, ends, link, heat, place))
                progress.advance(task)
            rows.append(Row(LOOPBACK if link is None else link.name, heat, tuple(pairs)))
    report = Report(plan, tuple(rows), (before, os.getloadavg()[0]))
    console.print(table(report))
    return report


def table(report: Report) -> Table:
    """A row a setting."""
    headings = ["times\ncloud", "tok/s", "cloud\ntok/s", "passes\na token", "ms a\npass", "cloud ms\na pass", "same\ntext"]
    rows = {f"{row.link}, {row.temperature:g}": _cells(row) for row in report.rows}
    load = f"load of the machine {report.load[0]:.1f} to {report.load[1]:.1f}"
    caption = f"link, temperature; medians of {report.plan.answers} answers; cloud is the plain stream; {load}"
    return table_of(f"{report.plan.method} beside the plain stream, in real time", headings, rows, caption)


def _cells(row: Row) -> Sequence[str]:
    found = row.as_json()
    figures = [f"{found['faster']:.2f}", f"{found['tokens_per_s']:.1f}", f"{found['cloud_tokens_per_s']:.1f}"]
    passes = [f"{found['passes_per_token']:.2f}", f"{found['ms_per_pass']:.1f}", f"{found['cloud_ms_per_pass']:.1f}"]
    return [*figures, *passes, f"{found['same']} of {len(row.pairs)}"]


def _pair(plan: Plan, ends: RealEnds, link: Link | None, temperature: float, place: int) -> Pair:
    order = (REFERENCE, plan.method) if place % 2 else (plan.method, REFERENCE)
    found = {name: ends.answer(plan.request(name, temperature, place), link) for name in order}
    return Pair(found[REFERENCE], found[plan.method])


def _speed(result: Result) -> float:
    return result.tokens / result.answer.seconds

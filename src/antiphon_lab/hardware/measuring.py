"""`antiphon-lab profile`: what forward passes of two models cost on this machine, for `--profile measured`.

Each model is timed alone: passes of 1 to 16 and of 32 tokens behind a short context, some of them behind a long one, and the
reading of a prompt. What counts is the fastest of several passes: whatever else runs on the machine only adds. Passes of one
width are not timed in a row, so that a busy moment spoils one repetition of all widths and not all repetitions of one.
"""

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from antiphon import __version__
from antiphon.config import ModelConfig
from antiphon.errors import UsageError
from antiphon.models import load
from antiphon.models.base import Context, Model
from antiphon_lab.hardware.profiles import Compute, PassCost, measured_file, packed

NARROW = tuple(range(1, 17))
WIDE = 32
SHORT, LONG = 64, 512
"""Tokens of the two contexts."""
FAR = (1, 4, 8)
"""Widths that are also timed behind the long context."""
BUSY = 1.5
"""The median of passes over the fastest, from which the machine is said to have been busy."""

TEXT = "The river rose in spring, and the people of the valley moved their boats to higher ground before the water came. "


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured. output: the file that is written; None for the one that `measured` names."""

    cloud_model: ModelConfig
    device_model: ModelConfig
    repeats: int = 5
    output: Path | None = None

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise UsageError(f"each pass must be timed at least once, not {self.repeats} times")


@dataclass(frozen=True, slots=True)
class Point:
    """Passes of `width` tokens that end at `length`: the fastest and the median, in milliseconds."""

    width: int
    length: int
    fastest: float
    median: float


@dataclass(frozen=True, slots=True)
class Timed:
    """A model's passes, and the cost that was fitted to them."""

    model: str
    threads: int
    points: tuple[Point, ...]
    cost: PassCost

    @property
    def busy(self) -> float:
        """How much longer the median pass took than the fastest."""
        return statistics.median(point.median / point.fastest for point in self.points)


@dataclass(frozen=True, slots=True)
class Report:
    """What was measured, and the file that it was written into."""

    compute: Compute
    draft: Timed
    verify: Timed
    path: Path

    def as_json(self) -> dict[str, object]:
        """Everything, by name."""
        return {"file": str(self.path), **asdict(self.compute), "measured": _measured(self.draft, self.verify)}


def run(plan: Plan, console: Console) -> Report:
    """Time both models, write the file, and show what was found. Raises one of `antiphon.errors`."""
    path = plan.output or measured_file()
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent} to write a profile into: give another --output")
    with Progress(console=Console(stderr=True)) as progress:
        draft = _timed(plan.device_model, plan.repeats, progress, all_rows=False)
        verify = _timed(plan.cloud_model, plan.repeats, progress, all_rows=True)
    compute = Compute("measured", draft.cost, verify.cost, f"timed by antiphon-lab profile {__version__} on {_machine()}")
    _save(path, packed(compute, _measured(draft, verify)))
    report = Report(compute, draft, verify, path)
    console.print(table(report))
    console.print(sentence(report), markup=False, highlight=False, soft_wrap=True)
    return report


def _save(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}): give another --output") from error


def _timed(config: ModelConfig, repeats: int, progress: Progress, *, all_rows: bool) -> Timed:
    task = progress.add_task(f"timing {config.name}", total=repeats + 1)
    with closing(load(config)) as model:
        points = measure(model, repeats, lambda: progress.advance(task), all_rows=all_rows)
    source = (
        f"{config.name} on {config.threads or 'all'} thread{'' if config.threads == 1 else 's'}, fastest of {repeats} passes"
    )
    return Timed(config.name, config.threads, tuple(points), fit(points, source))


def measure(model: Model, repeats: int, progress: Callable[[], None] = lambda: None, *, all_rows: bool) -> list[Point]:
    """Time passes of `model`. all_rows: every token of a narrow pass gets logits, as the cloud's do; else only the last."""
    tokens = (model.tokenize(TEXT) * (1 + LONG // 8))[: LONG + WIDE]
    times: dict[tuple[int, int], list[float]] = {}
    with closing(model.open()) as context:
        _read(context, tokens, {})  # untimed: the file's pages come into memory
        progress()
        for _ in range(repeats):
            for length, widths in ((SHORT, (*NARROW, WIDE)), (LONG, FAR)):
                _read(context, tokens[:length], times)
                for width in widths:
                    seconds = _pass(context, tokens[:width], width if all_rows else 1)
                    times.setdefault((width, length + width), []).append(1000 * seconds)
                    context.rewind(length)
            progress()
    return [Point(*key, min(found), statistics.median(found)) for key, found in sorted(times.items())]


def _read(context: Context, tokens: Sequence[int], times: dict[tuple[int, int], list[float]]) -> None:
    """Have `tokens` in the context; where a long stretch of them is missing, time how it is read."""
    context.rewind(min(context.length, len(tokens)))
    missing = tokens[context.length :]
    if missing:
        seconds = _pass(context, missing, 1)
        if len(missing) > WIDE:
            times.setdefault((len(missing), len(tokens)), []).append(1000 * seconds)


def _pass(context: Context, tokens: Sequence[int], rows: int) -> float:
    started = time.perf_counter()
    context.extend(tokens, rows)
    return time.perf_counter() - started


def fit(points: Sequence[Point], source: str) -> PassCost:
    """The cost that fits the fastest passes: narrow ones one by one, a slope for wider ones, another for what lies before."""
    fastest = {(point.width, point.length): point.fastest for point in points}
    thousand = max(0.0, statistics.mean(_slopes(fastest)))

    def alone(width: int, length: int) -> float:
        return max(0.0, fastest[width, length] - thousand * length / 1000)

    narrow = tuple(round(alone(width, SHORT + width), 4) for width in NARROW)
    wide = [(width - NARROW[-1], alone(width, length) - narrow[-1]) for width, length in fastest if width > NARROW[-1]]
    further = max(0.0, sum(x * y for x, y in wide) / sum(x * x for x, _ in wide))
    return PassCost(narrow[0], round(further, 5), round(thousand, 5), narrow, source)


def _slopes(fastest: dict[tuple[int, int], float]) -> Iterator[float]:
    """Milliseconds for 1,000 tokens more to look back on."""
    for width in FAR:
        yield (fastest[width, LONG + width] - fastest[width, SHORT + width]) / (LONG - SHORT) * 1000


def _machine() -> str:
    return f"{platform.system()} {platform.machine()} with {os.cpu_count()} cores"


def _measured(*models: Timed) -> dict[str, Any]:
    return {model.model: {"threads": model.threads, "points": [asdict(point) for point in model.points]} for model in models}


def table(report: Report) -> Table:
    """Milliseconds of a pass by its width, as measured and as fitted."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown.title, shown.title_justify = "Milliseconds of a pass: the fastest, the median, and what virtual time charges", "left"
    shown.add_column("tokens\nof the pass", justify="right")
    shown.add_column("behind", justify="right")
    for timed in (report.draft, report.verify):
        for heading in (f"{timed.model}\nfastest", "median", "charged"):
            shown.add_column(heading, justify="right")
    for one, other in zip(report.draft.points, report.verify.points, strict=True):
        cells = [figure for timed, point in ((report.draft, one), (report.verify, other)) for figure in _cells(timed, point)]
        shown.add_row(str(one.width), str(one.length - one.width), *cells)
    return shown


def _cells(timed: Timed, point: Point) -> tuple[str, str, str]:
    charged = timed.cost.milliseconds(point.width, point.length)
    return f"{point.fastest:.1f}", f"{point.median:.1f}", f"{charged:.1f}"


def sentence(report: Report) -> str:
    """Where it was written, and whether the machine had other work."""
    busy = max(report.draft.busy, report.verify.busy)
    warning = f" The machine was busy: the median pass took {busy:.1f} times the fastest." if busy > BUSY else ""
    return f"Written to {report.path}; use it by --profile measured, or by its name.{warning}"

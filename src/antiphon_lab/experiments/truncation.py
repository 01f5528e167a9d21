"""`antiphon-lab bench truncation`: how much of a draft distribution must cross (TSLT's figures 3 and 4, METHODS 2).

Both models read the same text in this process, with no link between them. At every position the device's distribution is
truncated and rounded as `tslt` does and held against the cloud's: what the acceptance loses, and what the wire saves.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from antiphon import __version__
from antiphon.config import ModelConfig, SamplingParams
from antiphon.errors import UsageError
from antiphon.methods.speculative.options import MAX_TREE_NODES
from antiphon.methods.speculative.tslt import SparseOptions, Truncation
from antiphon.models import load
from antiphon.vocabulary import CommonVocabulary, common_vocabulary
from antiphon_lab.experiments.truncated import Acceptance, Meter, Packed, Point, Position, wire_forms
from antiphon_lab.report.screen import progress_bar
from antiphon_lab.stats.bootstrap import FEWEST, TOO_FEW
from antiphon_lab.stats.intervals import Mean, mean_of
from antiphon_lab.workloads.texts import Pair, distributions, read_prompts

T = TypeVar("T")
S = TypeVar("S")
Nested: TypeAlias = Sequence[Sequence[T]]
"""Something for each position of each prompt."""
Texts: TypeAlias = Nested[Position]
MAX_POSITIONS = 512
DENSE_BYTES = 2
"""Of a token's probability in `dsd`'s distribution, which lists every common token."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the benchmark measures. data: a text file, of which `prompts` lines are used. keep: truncations.

    Raises UsageError for what cannot be.
    """

    data: Path
    cloud_model: ModelConfig
    device_model: ModelConfig
    sampling: SamplingParams
    prompts: int
    positions: int
    keep: tuple[str, ...]
    children: int
    draft_precision: int

    def __post_init__(self) -> None:
        SparseOptions(self.draft_precision)
        for text in self.keep:
            _require_truncation(text)
        if self.prompts < 1:
            raise UsageError(f"--prompts must be at least 1, not {self.prompts}")
        for name, value, most in (("positions", self.positions, MAX_POSITIONS), ("children", self.children, MAX_TREE_NODES)):
            if not 1 <= value <= most:
                raise UsageError(f"--{name} must be 1 to {most}, not {value}")


def _require_truncation(text: str) -> None:
    try:
        Truncation.parse(text)
    except UsageError as error:
        wanted = "k=NUMBER from 1 on, p=SHARE above 0 and at most 1, or off, with commas between"
        raise UsageError(f"--keep must list {wanted}; {text!r} is none of them") from error


def run(plan: Plan, console: Console) -> "Report":
    """Measure, and show the table. Raises one of `antiphon.errors`."""
    prompts, notes = read_prompts(plan.data, plan.prompts), Console(stderr=True)
    if "tight" not in wire_forms(plan.draft_precision):
        notes.print("the wire form tight is left out: it needs `pip install 'antiphon[tight]'` and 8 or 16 bits", markup=False)
    with ExitStack() as stack:
        progress = stack.enter_context(progress_bar(notes))
        bar = progress.add_task("loading the models", total=plan.prompts * plan.positions)
        cloud, device = (stack.enter_context(closing(load(config))) for config in (plan.cloud_model, plan.device_model))
        pair = Pair(cloud, device, common_vocabulary(device.vocabulary, cloud.vocabulary), plan.sampling)
        progress.update(bar, description="positions")
        texts = _measured(plan, pair, prompts, lambda done: progress.update(bar, completed=done))
    found = _report(plan, pair.common, texts)
    console.print(table(found))
    return found


def _measured(plan: Plan, pair: Pair, prompts: Sequence[str], show: Callable[[int], None]) -> Texts:
    """What was found at the positions of each prompt."""
    meter = Meter(pair.common, plan.keep, plan.draft_precision, plan.children)
    texts: list[list[Position]] = []
    for place, prompt in enumerate(prompts):
        texts.append([])
        for target, distribution in distributions(pair, prompt, plan.positions, seed=place):
            texts[-1].append(meter.measure(target, distribution))
            show(place * plan.positions + len(texts[-1]))
        show((place + 1) * plan.positions)
    return texts


@dataclass(frozen=True, slots=True)
class Accepted:
    """Mean acceptance; see `truncated.Acceptance`. The means are over the positions, their intervals over the prompts."""

    single: Mean
    with_replacement: Mean
    without_replacement: Mean | None


@dataclass(frozen=True, slots=True)
class Wire:
    """A form of the wire. entries: tokens listed. saved: the share of `dsd`'s bytes a distribution that it saves."""

    form: str
    bits: int
    entries: Mean
    bytes_per_distribution: Mean
    bytes_per_entry: Mean
    saved: float


@dataclass(frozen=True, slots=True)
class Row:
    """One truncation. kept, mass, sent, largest_excess: see `truncated.Point`. share_of_full: of the full probs' acceptance."""

    truncation: str
    kept: Mean
    mass: Mean
    sent: Mean
    acceptance: Accepted
    share_of_full: Mean
    largest_excess: float
    wires: tuple[Wire, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What was found. full: the acceptance of the probs neither cut nor rounded. largest_excess: see `truncated.Point`."""

    plan: Plan
    common_tokens: int
    cloud_tokens: int
    positions: int
    full: Accepted
    largest_excess: float
    rows: tuple[Row, ...]

    @property
    def bound_held(self) -> bool:
        """True if truncation and rounding never cost more acceptance than their total variation (METHODS 2, TSLT)."""
        return self.largest_excess <= 1e-9

    def as_json(self) -> dict[str, object]:
        """Settings and figures, by name."""
        plan = self.plan
        settings: dict[str, object] = {
            "version": __version__,
            "data": plan.data.name,
            "cloud_model": plan.cloud_model.name,
            "model": plan.device_model.name,
            "temperature": float(plan.sampling.temperature),
            "prompts": plan.prompts,
            "children": plan.children,
            "draft_precision": plan.draft_precision,
        }
        figures = {name: value for name, value in asdict(self).items() if name not in ("plan", "rows")}
        figures |= {"bound_held": self.bound_held, "dense_bytes_per_distribution": DENSE_BYTES * self.common_tokens}
        return {**settings, **figures, "truncations": [asdict(row) for row in self.rows]}


def _report(plan: Plan, common: CommonVocabulary, texts: Texts) -> Report:
    full = _each(texts, lambda position: position.full)
    points = [[[position.points[index] for position in text] for text in texts] for index in range(len(plan.keep))]
    rows = tuple(_row(name, some, full, common) for name, some in zip(plan.keep, points, strict=True))
    largest = max(row.largest_excess for row in rows)
    return Report(plan, common.size, common.target_size, sum(map(len, texts)), accepted_of(full), largest, rows)


def _row(name: str, points: Nested[Point], full: Nested[Acceptance], common: CommonVocabulary) -> Row:
    accepted = _each(points, lambda point: point.acceptance)
    forms = [[[point.packed[form] for point in text] for text in points] for form in range(len(points[0][0].packed))]
    return Row(
        truncation=name,
        kept=mean_of(_each(points, lambda point: point.kept)),
        mass=mean_of(_each(points, lambda point: point.mass)),
        sent=mean_of(_each(points, lambda point: point.sent)),
        acceptance=accepted_of(accepted),
        share_of_full=mean_of(_each(accepted, lambda each: each.single), _each(full, lambda each: each.single)),
        largest_excess=max(point.excess for text in points for point in text),
        wires=tuple(_wire(packed, DENSE_BYTES * common.size) for packed in forms),
    )


def accepted_of(acceptance: Nested[Acceptance]) -> Accepted:
    """The means over all positions of all texts."""
    rates = _each(acceptance, lambda each: each.without_replacement)
    known = [[rate for rate in text if rate is not None] for text in rates]
    return Accepted(
        single=mean_of(_each(acceptance, lambda each: each.single)),
        with_replacement=mean_of(_each(acceptance, lambda each: each.with_replacement)),
        without_replacement=mean_of(known) if sum(map(len, known)) == sum(map(len, rates)) else None,
    )


def _wire(packed: Nested[Packed], dense: int) -> Wire:
    sizes, entries = (
        _each(packed, lambda distribution: distribution.bytes),
        _each(packed, lambda distribution: distribution.entries),
    )
    distribution, form = mean_of(sizes), packed[0][0]
    return Wire(form.form, form.bits, mean_of(entries), distribution, mean_of(sizes, entries), 1.0 - distribution.mean / dense)


def _each(items: Nested[T], of: Callable[[T], S]) -> list[list[S]]:
    return [[of(item) for item in text] for text in items]


def table(report: Report) -> Table:
    """A row a truncation, the full distribution last; below a mean its interval."""
    children = report.plan.children
    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    shown.title, shown.caption = title(report), _caption(report)
    shown.title_justify = shown.caption_justify = "left"
    shown.add_column("distribution", no_wrap=True)
    multi = [f"{children} drawn\n{how}" for how in ("with", "without")]
    forms = [f"{wire.form}\n{wire.bits} bit" for wire in report.rows[0].wires]
    for heading in ("kept", "mass", "single", "of full", *multi, *forms, "saved"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for row in report.rows:
        shown.add_row(*_cells(row))
    single, *others = [_share(rate) for rate in _rates(report.full)]
    shown.add_row("full", f"{report.common_tokens:,}", "1", single, "", *others)
    return shown


def title(report: Report) -> str:
    """Which models, and at what temperature."""
    plan = report.plan
    return f"{plan.device_model.name} drafting for {plan.cloud_model.name}, temperature {plan.sampling.temperature:g}"


def _cells(row: Row) -> list[Text | str]:
    single, *others = [_share(rate) for rate in _rates(row.acceptance)]
    cells: list[Text | str] = [row.truncation, f"{row.kept.mean:,.0f}", _share(row.mass), single]
    cells += [f"{row.share_of_full.mean:.1%}", *others]
    cells += [f"{wire.bytes_per_entry.mean:.2f}" for wire in row.wires]
    return [*cells, f"{row.wires[0].saved:.2%}"]


def _rates(accepted: Accepted) -> tuple[Mean, Mean, Mean | None]:
    return accepted.single, accepted.with_replacement, accepted.without_replacement


def _share(mean: Mean | None) -> Text:
    if mean is None:
        return Text("")
    ends = [f"{end:.2f}".removeprefix("0").removesuffix(".00") for end in mean.interval or ()]
    return Text(f"{mean.mean:.3f}\n").append("-".join(ends), style="dim")


def _caption(report: Report) -> str:
    plan, held = report.plan, "everywhere" if report.bound_held else "NOT everywhere"
    lines = (
        f"means over {report.positions} positions, "
        + (f"95 % intervals over {plan.prompts} texts" if plan.prompts >= FEWEST else f"no intervals: {TOO_FEW}"),
        "kept: tokens left by truncation, and their mass before it",
        f"accepted: a single draft, or one of {plan.children} drawn with or without replacement",
        "delta, tight, plain: bytes for each token on the wire, of packed payloads",
        f"saved: by delta, of the {DENSE_BYTES * report.common_tokens:,} bytes of a distribution of dsd at 16 bits",
        f"acceptance lost <= mass cut + rounding: {held} (largest excess {report.largest_excess:.0e})",
    )
    return "\n".join(lines)

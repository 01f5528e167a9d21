"""`antiphon-lab bench speculative`: methods side by side on links and hardware of one's choice, in virtual or real time.

Virtual time runs the very code of real time with the real models, and charges for forward passes and frames what a profile and
a link say. No token is read twice (`antiphon_lab.ends.remembering_model`), so that more links and draft lengths cost little.
Every answer is kept as soon as it is there, and the same command goes on from there.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from antiphon.device.answer import Result
from antiphon.models import load
from antiphon_lab.ends.no_drafts import NonDraftingModel
from antiphon_lab.ends.real import RealEnds
from antiphon_lab.ends.remembering_model import RememberingModel
from antiphon_lab.ends.timeline import Timeline, watch
from antiphon_lab.ends.trials import attempt
from antiphon_lab.experiments.speculative.auto import NEARNESS, Nearness, nearness
from antiphon_lab.experiments.speculative.figures import Figures, Written, written
from antiphon_lab.experiments.speculative.grid import REFERENCE, Ask, Plan, Row, Setting, asks_of, rows_of, settings_of
from antiphon_lab.report.charts import short
from antiphon_lab.report.page import require_writable
from antiphon_lab.report.screen import plus_minus, progress_bar, table_of
from antiphon_lab.stats.bootstrap import TOO_FEW, UNSURE
from antiphon_lab.store import Store
from antiphon_lab.workloads.prompts import prompts_of

Write = Callable[[Ask], Result]


@dataclass(frozen=True, slots=True)
class Report:
    """What a finished run found. timelines: of the first prompt in the first setting, where they were asked for."""

    plan: Plan
    figures: Mapping[tuple[Setting, Row], Figures]
    timelines: Mapping[Row, Timeline]

    @property
    def settings(self) -> list[Setting]:
        """In order."""
        return list(dict.fromkeys(setting for setting, _ in self.figures))

    def rows(self, setting: Setting) -> dict[Row, Figures]:
        """The rows of a setting."""
        return {row: figures for (where, row), figures in self.figures.items() if where == setting}

    @property
    def nearness(self) -> list[Nearness]:
        """Of the automatic draft lengths to the best fixed ones."""
        return [found for setting in self.settings for found in nearness(setting, self.rows(setting))]

    def as_json(self) -> dict[str, object]:
        """Settings and figures, by name."""
        plan = self.plan
        models = {"cloud_model": plan.cloud_model.name, "model": plan.device_model.name}
        sizes = {"prompts": plan.asked, "seeds": plan.seeds, "tokens": plan.tokens}
        time = "real" if plan.real else "virtual"
        return {
            **models,
            **sizes,
            "time": time,
            "settings": [self._setting(one) for one in self.settings],
            "auto": [one.as_json() for one in self.nearness],
        }

    def _setting(self, setting: Setting) -> dict[str, object]:
        compute = setting.compute
        return {
            "link": setting.link.name,
            "link_source": setting.link.source,
            "profile": compute.name,
            "profile_sources": [compute.source, compute.draft.source, compute.verify.source],
            "temperature": setting.temperature,
            "rows": [{"row": row.name, **figures.as_json()} for row, figures in self.rows(setting).items()],
        }


def run(plan: Plan, console: Console) -> Report:
    """Write the answers that are not there yet, and show a table a setting. Raises one of `antiphon.errors`."""
    if plan.html is not None:
        require_writable(plan.html)
    asks = asks_of(plan, [prompt for file in plan.data for prompt in prompts_of(file, plan.prompts)])
    kept = Store(plan.results)
    timelines = _write(plan, asks, kept)
    report = Report(plan, collected(plan, asks, kept), timelines)
    for setting in report.settings:
        for table in tables(setting, report.rows(setting)):
            console.print(table)
    for table in nearness_tables(report.nearness):
        console.print(table)
    return report


def fastest(rows: Mapping[Row, Figures]) -> dict[str, tuple[Row, Figures]]:
    """Of each method the row with the most tokens a second."""
    found: dict[str, tuple[Row, Figures]] = {}
    for row, figures in rows.items():
        best = found.get(row.family)
        if best is None or figures.tokens_per_s > best[1].tokens_per_s:
            found[row.family] = row, figures
    return found


def _watched(plan: Plan, asks: Sequence[Ask], kept: Store) -> list[Ask]:
    """Whose timelines the page shows: in the first setting the fastest row of each method, to the first prompt."""
    if plan.html is None or plan.real:
        return []
    setting = asks[0].setting
    rows = {row: figures for (where, row), figures in collected(plan, asks, kept).items() if where == setting}
    best = [row for row, _ in fastest(rows).values()]
    return [ask for ask in asks if (ask.setting, ask.prompt, ask.seed) == (setting, 0, 1) and ask.row in best]


def collected(plan: Plan, asks: Sequence[Ask], kept: Store) -> dict[tuple[Setting, Row], Figures]:
    """The figures of every row in every setting."""
    answers: dict[tuple[Setting, Row], list[Written]] = {}
    for ask in asks:
        answers.setdefault((ask.setting, ask.row), []).append(kept.get(ask.key(plan), Written))
    order = [(setting, row) for setting in settings_of(plan) for row in rows_of(plan)]
    return {
        (setting, row): Figures(tuple(answers[setting, row]), tuple(answers[setting, Row(REFERENCE)])) for setting, row in order
    }


def _write(plan: Plan, asks: Sequence[Ask], kept: Store) -> dict[Row, Timeline]:
    """Write what is missing, and watch what the page shows."""
    todo = [ask for ask in asks if ask.key(plan) not in kept]
    if not todo and not _watched(plan, asks, kept):
        return {}
    with progress_bar(Console(stderr=True)) as progress:
        bar = progress.add_task("loading the models", total=len(asks), completed=len(asks) - len(todo))
        with _ends(plan) as (write, look), kept.adding():
            for ask in todo:
                progress.update(bar, description=f"{ask.row.name}, {ask.setting.link.name}")
                kept.keep(ask.key(plan), _kept(ask, write(ask)))
                progress.advance(bar)
            progress.update(bar, description="answers")
            return {ask.row: look(ask) for ask in _watched(plan, asks, kept)}


def _kept(ask: Ask, result: Result) -> Written:
    setting = ask.setting
    where = {"link": setting.link.name, "profile": setting.compute.name, "temperature": setting.temperature}
    return written(result, row=ask.row.name, prompt=ask.prompt, seed=ask.seed, **where)


@contextmanager
def _ends(plan: Plan) -> Iterator[tuple[Write, Callable[[Ask], Timeline]]]:
    """What writes an answer, and what watches one being written."""
    with ExitStack() as stack:
        if plan.real:
            ends = stack.enter_context(RealEnds(plan.cloud_model, plan.device_model))

            def write(ask: Ask) -> Result:
                return ends.write(ask.trial(plan.tokens), ask.text, ask.answer_seed, mute=ask.row.mute)
        else:
            # One context: so whatever was forgotten is read again to the same bits, and texts that are equal are so here.
            cloud = RememberingModel(load(plan.cloud_model), readers=1)
            device = RememberingModel(load(plan.device_model))
            stack.callback(cloud.close)
            stack.callback(device.close)

            def write(ask: Ask) -> Result:
                drafter = NonDraftingModel(device) if ask.row.mute else device
                return attempt(ask.trial(plan.tokens), cloud, drafter, [ask.text], ask.answer_seed)[0]

        def look(ask: Ask) -> Timeline:
            drafter = NonDraftingModel(device) if ask.row.mute else device
            return watch(ask.trial(plan.tokens), cloud, drafter, ask.text, ask.answer_seed)

        yield write, look


SPEED = ("tokens/s", "times cloud", "first\nms", "itl\np50", "itl\np90", "tokens\na round")
WIRE = ("bits up", "bits down", "opening", "packets\nup", "packets\ndown", "TCP/IP\nand TLS")
COSTS = ("passes\na token", "cloud ms\na token", "accepted\nby depth")


def tables(setting: Setting, rows: Mapping[Row, Figures]) -> list[Table]:
    """The rows of a setting: how fast they are, what they send, and what they cost the cloud."""
    spread = f"\u00b1: half of the middle 95 % of resampled answers; {UNSURE}: {TOO_FEW}"
    bits = (
        "bits are payload + framing, a token; those that open an answer are shared out among its tokens; TCP/IP and TLS would "
        "add so many bits more, to so many packets a token"
    )
    return [
        table_of(setting.name, SPEED, {row.name: speed(figures) for row, figures in rows.items()}, spread),
        table_of("", WIRE, {row.name: wire(figures) for row, figures in rows.items()}, bits),
        table_of(
            "",
            COSTS,
            {row.name: costs(figures) for row, figures in rows.items()},
            "the reading of the prompt counts in the milliseconds, and not in the passes",
        ),
    ]


def nearness_tables(found: Sequence[Nearness]) -> list[Table]:
    """How near automatic draft lengths come to the best fixed ones: a table for the links of each hardware and temperature."""
    groups: dict[str, dict[str, list[str]]] = {}
    for one in found:
        setting = one.setting
        title = f"auto beside the best fixed length, {setting.compute.name}, temperature {setting.temperature:g}"
        groups.setdefault(title, {})[f"{setting.link.name}, {one.method}"] = one.cells()
    return [table_of(title, NEARNESS, rows, "of the ratio, answers resampled in pairs") for title, rows in groups.items()]


def speed(figures: Figures) -> list[str]:
    """The cells of SPEED."""
    return [
        f"{figures.tokens_per_s:.1f} {plus_minus(figures.tokens_per_s_interval, '.1f')}",
        f"{figures.speedup:.2f} {plus_minus(figures.speedup_interval, '.2f')}",
        f"{1000 * figures.ttft_s:.0f}",
        *(_milliseconds(figures.itl_s(percent)) for percent in (50, 90)),
        "-" if figures.tokens_per_round is None else f"{figures.tokens_per_round:.2f}",
    ]


def wire(figures: Figures) -> list[str]:
    """The cells of WIRE, a token."""
    bits, packets = {name: short(value) for name, value in figures.bits.items()}, figures.packets
    return [
        f"{bits['up_payload']} + {bits['up_framing']}",
        f"{bits['down_payload']} + {bits['down_framing']}",
        bits["opening"],
        *(f"{packets[name]:.2f}" for name in ("up_packets", "down_packets")),
        short(packets["packet_bits"]),
    ]


def costs(figures: Figures) -> list[str]:
    """The cells of COSTS."""
    return [
        f"{figures.per_token(lambda one: one.passes):.2f}",
        f"{figures.per_token(lambda one: one.cloud_ms):.1f}",
        " ".join(f"{rate:.2f}".lstrip("0") for rate in figures.acceptance[:4]) or "-",
    ]


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1000 * seconds:.0f}"

"""CONCORD's tables and figures with our models: answers, ablation, latency, two machines, how steps were decided (CONCORD V).

Runs of `bench.rag` hold all of it. In virtual time, of questions and of texts: the paper's link; other round trips; a link with
a rate, for all scores of a step take their time on the wire; and a device that is slower than its cloud. In real time, at this
machine's own speed: two processes that meet over an emulated link, as `antiphon link` makes it, as it is and with delay and
jitter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from antiphon.bench.compute import Compute, parse_compute
from antiphon.bench.rag import Plan as RagPlan
from antiphon.bench.rag import Report as RagReport
from antiphon.bench.rag import run as run_rag
from antiphon.bench.rag_answers import Case, Setting
from antiphon.bench.rag_figures import Figures
from antiphon.bench.rag_rows import parse_row
from antiphon.bench.rag_tasks import find_task
from antiphon.bench.reproduce.plans import Plan
from antiphon.methods.mixture_options import MixtureOptions
from antiphon.net.notation import parse_link

TASKS = ("nq", "wikitext")


@dataclass(frozen=True, slots=True)
class Size:
    """questions, texts: of each row in virtual time. timed: both again, in real time."""

    questions: int
    texts: int
    timed: tuple[int, int]


SIZES: Mapping[str, Size] = {
    "smoke": Size(2, 1, (1, 1)),
    "small": Size(24, 4, (8, 2)),
    "full": Size(100, 20, (40, 8)),
}
"""By scale; the paper has 500 questions, three times over, and 100 texts."""

LINK = "concord"
TRIPS = ("concord@10", "concord@25", "concord@100", "concord@200")
"""Round trips beside the paper's 50 ms."""
RATED = "concord,up=100Mbit,down=100Mbit"
NATIVE, DELAYED = "lan", "concord,jitter=10ms"
"""The two links of the paper's two machines; it gives neither's figures, so these are ours."""
SLOWER = 3.0
"""How many times longer a pass takes on the device of the two machines: an RTX 2070 SUPER beside a 4090D (CONCORD V-D)."""

LETTER, FAST, LOSSY = "to the letter", "concord, fast", "dragon, top-p"
OURS = {
    LETTER: f"{LETTER}: concord+gate=off+bound=global+realign=hard+enough=0",
    FAST: f"{FAST}: concord+gate=0.5",
    LOSSY: f"{LOSSY}: dragon+packing=topp",
}
"""The paper without what we added; half the gate; scores of which the tail is cut off."""
MAIN = ("crcg", "drcg", "drdg-sw", "drdg-tw", "dragon", "concord", "concord-nosystem", "concord-nocomm", *OURS.values())
FEW = ("crcg", "drdg-tw", "dragon", "concord")
PAIR = ("dragon", "concord")


@dataclass(frozen=True, slots=True)
class Report:
    """What was found. runs: by task, in virtual time; timed: the same in real time."""

    plan: Plan
    runs: Mapping[str, RagReport]
    timed: Mapping[str, RagReport]

    def figures(self, task: str, link: str, row: str) -> Figures:
        """Those of a row."""
        return self.rows(task, link)[row]

    def rows(self, task: str, link: str, *, slow_device: bool = False) -> dict[str, Figures]:
        """All rows of a task on a link, in virtual time."""
        hardware = self.plan.hardware
        return self.runs[task].rows(parse_link(link), slower(hardware) if slow_device else hardware)

    def timed_rows(self, task: str, link: str) -> dict[str, Figures]:
        """All rows of a task on a link, in real time."""
        return self.timed[task].rows(parse_link(link), self.plan.hardware)

    def options(self, row: str) -> MixtureOptions:
        """What a row of questions was written with."""
        return next(case.row.options for case in self.runs["nq"].answers if case.row.name == row)

    def as_json(self) -> dict[str, object]:
        """Settings and figures, by name."""
        parts = {"tasks": self.runs, "two_processes": self.timed}
        found = {name: {task: run.as_json() for task, run in runs.items()} for name, runs in parts.items()}
        return {"paper": "CONCORD, arXiv 2606.15179", **asdict(self.plan.settings("concord")), **found}


def run(plan: Plan) -> Report:
    """Measure what is not kept yet. Raises one of `antiphon.errors`; what is measured stays."""
    size = SIZES[plan.scale]
    counts = zip(TASKS, (size.questions, size.texts), size.timed, strict=True)
    runs, timed = {}, {}
    for task, count, timed_count in counts:
        usual = MixtureOptions(form=find_task(task).form)
        runs[task] = run_rag(_rag_plan(plan, task, cases(plan, usual), count))
        timed[task] = run_rag(_rag_plan(plan, task, on((NATIVE, DELAYED), PAIR, usual, plan.hardware), timed_count, real=True))
    return Report(plan, runs, timed)


def slower(compute: Compute) -> Compute:
    """The same cloud with a slower device."""
    draft = compute.draft
    times = {"draft": 1000 * draft.seconds(1, 0), "draft-further": draft.further, "draft-thousand": draft.thousand}
    changes = ",".join(f"{name}={SLOWER * value:.4f}ms" for name, value in times.items())
    return replace(parse_compute(f"{compute.name},{changes}"), name=f"{compute.name}, device {SLOWER:g} times slower")


def cases(plan: Plan, usual: MixtureOptions) -> tuple[Case, ...]:
    """Everything that is written for an example in virtual time."""
    hardware = plan.hardware
    return (
        *on([LINK], MAIN, usual, hardware),
        *on([RATED], (*FEW, "dragon+ahead=4"), usual, hardware),
        *on([NATIVE, DELAYED], PAIR, usual, slower(hardware)),
        *(on(TRIPS, FEW, usual, hardware) if usual.form == "question" else ()),
    )


def on(links: Sequence[str], names: Sequence[str], usual: MixtureOptions, compute: Compute) -> tuple[Case, ...]:
    """Rows on links."""
    rows = [parse_row(name, usual) for name in names]
    return tuple(Case(row, link, compute) for link in map(parse_link, links) for row in rows)


def _rag_plan(plan: Plan, task: str, wanted: tuple[Case, ...], examples: int, *, real: bool = False) -> RagPlan:
    found = find_task(task)
    setting = Setting(found, (plan.device_model, plan.cloud_model), plan.sampling, found.tokens, plan.seed, real)
    return RagPlan(plan.data, setting, wanted, examples, plan.results)

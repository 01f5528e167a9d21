"""`antiphon reproduce concord`: every table and figure of CONCORD (arXiv 2606.15179), with our models and in virtual time.

Two runs of `bench.rag`, of questions and of texts, hold all of it: the paper's link; other round trips; a link with a rate, for
all scores of a step take their time on the wire; and two unequal machines, on a local network and with delay and jitter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from antiphon.bench.compute import Compute, parse_compute
from antiphon.bench.rag import Plan as RagPlan
from antiphon.bench.rag import Report as RagReport
from antiphon.bench.rag import run
from antiphon.bench.rag_answers import Case, Setting
from antiphon.bench.rag_figures import Figures
from antiphon.bench.rag_rows import Row, parse_row
from antiphon.bench.rag_tasks import find_task
from antiphon.bench.reproduce.plans import Plan
from antiphon.methods.mixture_options import MixtureOptions
from antiphon.net.link import Link
from antiphon.net.notation import parse_link

EXAMPLES: Mapping[str, tuple[int, int]] = {"smoke": (2, 1), "small": (12, 3), "full": (100, 20)}
"""Questions and texts by scale; the paper has 500, three times over, and 100."""

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
    """What was found. runs: by task."""

    plan: Plan
    runs: Mapping[str, RagReport]

    def figures(self, task: str, link: str, row: str, *, two_machines: bool = False) -> Figures:
        """Those of a row."""
        return self.rows(task, link, two_machines=two_machines)[row]

    def rows(self, task: str, link: str, *, two_machines: bool = False) -> dict[str, Figures]:
        """All rows of a task on a link."""
        hardware = self.plan.hardware
        return self.runs[task].rows(parse_link(link), unequal(hardware) if two_machines else hardware)

    def options(self, row: str) -> MixtureOptions:
        """What a row of questions was written with."""
        return next(case.row.options for case in self.runs["nq"].answers if case.row.name == row)

    def as_json(self) -> dict[str, object]:
        """Settings and figures, by name."""
        return {**self.plan.settings(), "tasks": {task: run.as_json() for task, run in self.runs.items()}}


def report(plan: Plan) -> Report:
    """Measure what is not there yet. Raises one of `antiphon.errors`; what is measured stays."""
    found = {}
    for task, examples in zip(("nq", "wikitext"), EXAMPLES[plan.scale], strict=True):
        found[task] = run(_rag_plan(plan, task, examples))
    return Report(plan, found)


def unequal(compute: Compute) -> Compute:
    """The same cloud with a slower device."""
    draft = compute.draft
    times = {"first": 1000 * draft.seconds(1, 0), "further": draft.further, "thousand": draft.thousand}
    changes = ",".join(f"{name}={SLOWER * times[key]:.4f}ms" for name, key in _NAMES.items())
    return replace(parse_compute(f"{compute.name},{changes}"), name=f"{compute.name}, device {SLOWER:g} times slower")


_NAMES = {"draft": "first", "draft-further": "further", "draft-thousand": "thousand"}


def cases(plan: Plan, usual: MixtureOptions) -> tuple[Case, ...]:
    """Everything that is written for an example."""
    hardware = plan.hardware

    def rows(names: Sequence[str]) -> list[Row]:
        return [parse_row(name, usual) for name in names]

    def on(links: Sequence[str], names: Sequence[str], compute: Compute = hardware) -> list[Case]:
        return [Case(row, link, compute) for link in map(_link, links) for row in rows(names)]

    trips = on(TRIPS, FEW) if usual.form == "question" else []
    return (
        *on([LINK], MAIN),
        *on([RATED], (*FEW, "dragon+ahead=4")),
        *on([NATIVE, DELAYED], PAIR, unequal(hardware)),
        *trips,
    )


def _link(name: str) -> Link:
    return parse_link(name)


def _rag_plan(plan: Plan, task: str, examples: int) -> RagPlan:
    found = find_task(task)
    setting = Setting(found, (plan.device_model, plan.cloud_model), plan.sampling, found.tokens, plan.seed)
    return RagPlan(plan.data, setting, cases(plan, MixtureOptions(form=found.form)), examples, plan.results)

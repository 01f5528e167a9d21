"""CONCORD's tables and figures with our models: answers, ablation, latency, two machines, how steps were decided (CONCORD V).

Runs of `antiphon_lab.experiments.rag.run` hold all of it. In virtual time, of questions and of texts: the paper's link, with
TCP's slow start, which is ours, and without it; other round trips; a link with a rate, for all scores of a step take their time
on the wire; a device that is slower than its cloud; and questions that nobody looked at while the methods were made. In real
time, at this machine's own speed: two processes that meet over an emulated link, as `antiphon-lab link` makes it, as it is and
with delay and jitter.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product

from antiphon.methods.mixture.options import MixtureOptions
from antiphon_lab.experiments.rag.answers import Case, Setting
from antiphon_lab.experiments.rag.figures import Figures
from antiphon_lab.experiments.rag.rows import parse_row
from antiphon_lab.experiments.rag.run import Plan as RagPlan
from antiphon_lab.experiments.rag.run import Report as RagReport
from antiphon_lab.experiments.rag.run import run as run_rag
from antiphon_lab.hardware.profiles import Compute, parse_compute
from antiphon_lab.links.notation import parse_link
from antiphon_lab.papers.plans import Plan
from antiphon_lab.workloads.documents import find_task

TASKS = ("nq", "wikitext")


@dataclass(frozen=True, slots=True)
class Size:
    """questions, texts: of each row in virtual time. timed: both again, in real time.

    new: questions that are new, behind so many that are skipped.
    """

    questions: int
    texts: int
    timed: tuple[int, int]
    new: int
    skipped: int = 500


SIZES: Mapping[str, Size] = {
    "smoke": Size(2, 1, (1, 1), 2, skipped=1),
    "small": Size(24, 4, (6, 1), 24),
    "full": Size(100, 20, (40, 12), 100),
}
"""By scale; the paper has 500 questions, three times over, and 100 texts. While methods were made nobody went beyond 100."""

LINK, FLAT = "concord", "concord,window=0"
"""The paper's link as TCP would have it after a pause, and as the paper says: 50 ms in the path, and nothing of windows."""
TRIPS = ("concord@10", "concord@100", "concord@200")
"""Round trips beside the paper's 50 ms."""
RATED = "concord,up=100Mbit,down=100Mbit"
NATIVE, DELAYED = "lan", "concord,jitter=10ms"
"""The two links of the paper's two machines; it gives neither's figures, so these are ours."""
SLOWER = 3.0
"""How many times longer a pass takes on the device of the two machines: an RTX 2070 SUPER beside a 4090D (CONCORD V-D)."""

PRINTED = "gate=off+bound=global+certificate=upper+realign=hard+undrafted=local+min_share=0"
LETTER, LETTER_NOSYSTEM, LETTER_NOCOMM = "to the letter", "to the letter, nosystem", "to the letter, nocomm"
FAST, LOSSY = "concord, fast", "dragon, top-p"
LETTERS = {
    LETTER: f"{LETTER}: concord+{PRINTED}",
    LETTER_NOSYSTEM: f"{LETTER_NOSYSTEM}: concord-nosystem+{PRINTED}",
    LETTER_NOCOMM: f"{LETTER_NOCOMM}: concord-nocomm+{PRINTED}",
}
"""CONCORD and its ablations as they are printed, without what we added."""
OTHERS = {FAST: f"{FAST}: concord+gate=0.5", LOSSY: f"{LOSSY}: dragon+packing=topp"}
"""Half the gate; scores of which the tail is cut off."""
NEVER, LINEAR, HALVING = (f"{LETTER}, {how}" for how in ("waits as usual", "linear", "halving"))
WAITS = {
    NEVER: f"{NEVER}: concord+{PRINTED}+debt_threshold=5",
    LINEAR: f"{LINEAR}: concord+{PRINTED}+short_timeout=0.09+timeout_decay=linear",
    HALVING: f"{HALVING}: concord+{PRINTED}+short_timeout=0.09+timeout_decay=halving",
    "concord, waits as usual": "concord, waits as usual: concord+debt_threshold=5",
    "concord, halving": "concord, halving: concord+short_timeout=0.09+timeout_decay=halving",
}
"""tau_short(q), which the paper leaves open: as long as usual; from 90 ms, a round trip with a step, down to 0 or by halves."""
OURS = ("concord", "concord-nosystem", "concord-nocomm")
MAIN = ("crcg", "drcg", "drdg-sw", "drdg-tw", "dragon", *OURS, *LETTERS.values(), *OTHERS.values())
FEW = ("crcg", "drdg-tw", "dragon", "concord")
PAIR = ("dragon", "concord")
BOTH = ("crcg", "drdg-tw", "dragon", "concord", "concord-nosystem", LETTER, LETTER_NOSYSTEM)
"""Rows on the link with slow start and without."""
TEXTS, TEXTS_FLAT = ("crcg", "drcg", "drdg-sw", "drdg-tw", "dragon", "concord", LETTER), ("crcg", "dragon", "concord", LETTER)
"""Rows of texts on the same links: those of the paper, whose ablation is of questions, and ours."""
OVER = ((LETTER, LETTER_NOSYSTEM), ("concord", "concord-nosystem"), ("concord", "drdg-tw"), (LETTER, "drdg-tw"))
"""Rows of which the throughput of the first over that of the second says something: of waiting control, of working ahead."""


@dataclass(frozen=True, slots=True)
class Report:
    """What was found. runs: by task, in virtual time; unseen: of new questions; timed: the same as `runs` in real time."""

    plan: Plan
    runs: Mapping[str, RagReport]
    unseen: RagReport
    timed: Mapping[str, RagReport]

    def figures(self, task: str, link: str, row: str) -> Figures:
        """Those of a row."""
        return self.rows(task, link)[row]

    def rows(self, task: str, link: str, *, slow_device: bool = False) -> dict[str, Figures]:
        """All rows of a task on a link, in virtual time."""
        hardware = self.plan.hardware
        return self.runs[task].rows(parse_link(link), slower(hardware) if slow_device else hardware)

    def new_rows(self, link: str) -> dict[str, Figures]:
        """All rows of the new questions on a link."""
        return self.unseen.rows(parse_link(link), self.plan.hardware)

    def timed_rows(self, task: str, link: str) -> dict[str, Figures]:
        """All rows of a task on a link, in real time."""
        return self.timed[task].rows(parse_link(link), self.plan.hardware)

    def _ratios(self) -> Iterator[dict[str, object]]:
        """OVER, on both links, of everything that was written."""
        for link in (LINK, FLAT):
            found = {"new_questions": self.new_rows(link), **{task: self.rows(task, link) for task in TASKS}}
            for (examples, rows), (row, over) in product(found.items(), OVER):
                if {row, over} <= rows.keys() and (mean := rows[row].over(rows[over])) is not None:
                    ratio = {"mean": mean.mean, "interval": mean.interval}
                    yield {"examples": examples, "link": link, "row": row, "over": over, "ratio": ratio}

    def as_json(self) -> dict[str, object]:
        """Settings and figures, by name."""
        parts = {"tasks": self.runs, "two_processes": self.timed}
        found = {name: {task: run.as_json() for task, run in runs.items()} for name, runs in parts.items()}
        new = {"new_questions": self.unseen.as_json(), "ratios": list(self._ratios())}
        return {"paper": "CONCORD, arXiv 2606.15179", **asdict(self.plan.settings("concord")), **found, **new}


def run(plan: Plan) -> Report:
    """Measure what is not kept yet. Raises one of `antiphon.errors`; what is measured stays."""
    size, usual = SIZES[plan.scale], MixtureOptions()
    new = on([LINK, FLAT], _rows(BOTH), usual, plan.hardware)
    unseen = run_rag(_rag_plan(plan, "nq", new, size.new, skipped=size.skipped))
    forms = {task: MixtureOptions(prompt_format=find_task(task).form) for task in TASKS}
    runs = {
        task: run_rag(_rag_plan(plan, task, cases(plan, forms[task]), count))
        for task, count in zip(TASKS, (size.questions, size.texts), strict=True)
    }
    timed = {
        task: run_rag(_rag_plan(plan, task, on((NATIVE, DELAYED), PAIR, forms[task], plan.hardware), count, real=True))
        for task, count in zip(TASKS, size.timed, strict=True)
    }
    return Report(plan, runs, unseen, timed)


def slower(compute: Compute) -> Compute:
    """The same cloud with a slower device."""
    draft = compute.draft
    times = {"draft": 1000 * draft.seconds(1, 0), "draft-further": draft.further, "draft-thousand": draft.thousand}
    changes = ",".join(f"{name}={SLOWER * value:.4f}ms" for name, value in times.items())
    return replace(parse_compute(f"{compute.name},{changes}"), name=f"{compute.name}, device {SLOWER:g} times slower")


def cases(plan: Plan, usual: MixtureOptions) -> tuple[Case, ...]:
    """Everything that is written for an example in virtual time."""
    hardware, asked = plan.hardware, usual.prompt_format == "question"
    near, flat = (MAIN, BOTH) if asked else (TEXTS, TEXTS_FLAT)
    return (
        *on([LINK], _rows(near), usual, hardware),
        *on([FLAT], _rows(flat), usual, hardware),
        *on([RATED], (*FEW, "dragon+ahead=4") if asked else PAIR, usual, hardware),
        *(_of_questions(usual, hardware) if asked else ()),
    )


def _of_questions(usual: MixtureOptions, hardware: Compute) -> tuple[Case, ...]:
    """What is written for a question alone."""
    return (
        *on([NATIVE, DELAYED], _rows((*PAIR, LETTER)), usual, slower(hardware)),
        *on(TRIPS, FEW, usual, hardware),
        *on([LINK], tuple(WAITS.values()), usual, hardware),
    )


def _rows(names: Sequence[str]) -> list[str]:
    return [LETTERS.get(name, name) for name in names]


def on(links: Sequence[str], names: Sequence[str], usual: MixtureOptions, compute: Compute) -> tuple[Case, ...]:
    """Rows on links."""
    rows = [parse_row(name, usual) for name in names]
    return tuple(Case(row, link, compute) for link in map(parse_link, links) for row in rows)


def _rag_plan(
    plan: Plan, task: str, wanted: tuple[Case, ...], examples: int, *, real: bool = False, skipped: int = 0
) -> RagPlan:
    found = find_task(task)
    setting = Setting(found, (plan.device_model, plan.cloud_model), plan.sampling, found.tokens, plan.seed, real)
    return RagPlan(plan.data, setting, wanted, examples, plan.results, skipped)

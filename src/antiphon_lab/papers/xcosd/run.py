"""X-CoSD's tables and figures with our models: quality, bits, throughput against the downlink's rate, latency (X-CoSD 4, B, C).

Every answer is written once, by the real models through the whole stack in virtual time; how it goes on other links is played
from its tape. The link has rates and nothing else (`xcosd_paper`), the hardware is like the paper's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from antiphon_lab.experiments.quality import spread
from antiphon_lab.papers.answers import Ask, Ratio, Timing
from antiphon_lab.papers.lab import Lab
from antiphon_lab.papers.plans import Plan, working
from antiphon_lab.papers.plans import Report as PaperReport
from antiphon_lab.papers.xcosd.entrants import BY_LENGTH, CLOUD, DRAFTS, LOADED, PAPER, TIMED, WRITTEN, Entrant
from antiphon_lab.papers.xcosd.measures import ByLength, Curve, Latency, Load, latency, load, throughput
from antiphon_lab.papers.xcosd.ratios import NAMED_RATE, Along, compared, compared_far
from antiphon_lab.papers.xcosd.scores import Quality, scored
from antiphon_lab.stats.intervals import Mean
from antiphon_lab.workloads.questions import Question
from antiphon_lab.workloads.tasks import Task, chosen

SHORT = "mmlu"
"""The task whose answers are a letter: only their quality counts."""


@dataclass(frozen=True, slots=True)
class Size:
    """questions: of each task. tokens: of an answer at most, besides the task's own limit. lengths: drafts a round besides N.

    by_length: questions that are answered with those. rates: of the downlink, in Mbit/s. round_trips: in milliseconds.
    """

    questions: Mapping[str, int]
    tokens: int
    lengths: tuple[int, ...]
    by_length: int
    rates: tuple[float, ...] = (1, 3, 10, 30, 100, 150, 200, 250, 300)
    round_trips: tuple[float, ...] = (0, 10, 25, 50, 100)


SIZES: Mapping[str, Size] = {
    "smoke": Size({"wmt22": 1, SHORT: 2}, 10, (1, 4), 1, (10, 100, 300), (0, 50)),
    "small": Size({"wmt22": 6, "news": 2, "gsm8k": 4, SHORT: 2}, 32, (1, 4), 2),
    "full": Size({"wmt22": 24, "news": 24, "gsm8k": 24, SHORT: 120}, 96, (1, 3, 4, 6, 8), 12),
}


@dataclass(frozen=True, slots=True)
class Report(PaperReport):
    """What was found. vocabularies: tokens of the cloud, and common ones.

    questions: by task; those of all tasks but `SHORT` are what intervals are over, and by_length is over so many of them.
    """

    paper = "X-CoSD, arXiv 2609.09166"
    vocabularies: tuple[int, int]
    questions: Mapping[str, int]
    questions_by_length: int
    quality: tuple[Quality, ...]
    loads: tuple[Load, ...]
    by_length: tuple[ByLength, ...]
    throughput: tuple[Curve, ...]
    round_trips: tuple[Curve, ...]
    latencies: tuple[Latency, ...]
    ratios: tuple[Ratio, ...]

    def load(self, name: str, task: str = "all") -> Load:
        """A method's bits."""
        return next(load for load in self.loads if (load.name, load.task) == (name, task))

    def speed(self, name: str, rate: float = NAMED_RATE) -> Mean:
        """A method's tokens/s at a downlink's rate."""
        return next(curve for curve in self.throughput if curve.name == name).at(rate)

    def ratio(self, what: str, name: str, other: str, x: float = NAMED_RATE) -> Mean:
        """How many times as fast or as large one method's figure is as another's; see `compared`."""
        where = (what, name, other, x)
        return next(one.times for one in self.ratios if (one.what, one.name, one.other, one.x) == where)

    @property
    def timed(self) -> int:
        """Questions whose answers are long enough to be timed."""
        return sum(count for task, count in self.questions.items() if task != SHORT)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a task. row: its place in the task's file."""

    task: Task
    row: int
    question: Question

    def by(self, entrant: Entrant, tokens: int, drafts: int | None = None) -> Ask:
        """The answer that a method is to write."""
        options = entrant.options if drafts is None else (("draft_length", drafts),)
        limit = min(tokens, self.task.max_tokens)
        name = f"{self.task.name} {self.row}"
        return Ask(name, self.question.prompt, entrant.method, options, limit, entrant.each_asked)


def run(plan: Plan) -> Report:
    """Measure what is not kept yet. Raises one of `antiphon.errors`."""
    size = SIZES[plan.scale]
    tasks = chosen(list(size.questions))
    asked = [one for task in tasks for one in _asked(task, plan, size.questions[task.name])]
    with working(plan) as lab:
        return _Comparison(plan, size, lab, tasks, asked).report()


def _asked(task: Task, plan: Plan, count: int) -> list[Asked]:
    found = task.read(plan.data)
    return [Asked(task, row, found[row]) for row in spread(len(found), min(count, len(found)))]


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The measuring of one report."""

    plan: Plan
    size: Size
    lab: Lab
    tasks: Sequence[Task]
    asked: Sequence[Asked]

    def report(self) -> Report:
        settings = self.plan.settings("x-cosd")  # now, for the code may be another when all is done
        links = [f"x-cosd@{rate:g}" for rate in self.size.rates]
        self.lab.takes(self._all())  # first, so that the bar shows all of it
        far = self._far()
        timings = self.lab.timings([one.by(entrant, self.size.tokens) for one in self._long() for entrant in TIMED], links)
        near = Along(self._timed(timings, dict(zip(self.size.rates, links, strict=True))))
        return Report(
            settings=settings,
            vocabularies=self._vocabularies(),
            questions_by_length=len(self._some(self.size.by_length)),
            questions={task.name: sum(one.task is task for one in self.asked) for task in self.tasks},
            quality=tuple(self._quality()),
            loads=tuple(self._loads(timings, links[0])),
            by_length=tuple(self._by_length()),
            throughput=tuple(near.curves()),
            round_trips=tuple(far.curves()),
            latencies=tuple(self._latency(entrant, timings) for entrant in TIMED),
            ratios=(*compared(near), *compared_far(far)),
        )

    def _long(self) -> list[Asked]:
        return [one for one in self.asked if one.task.name != SHORT]

    def _some(self, count: int) -> list[Asked]:
        """So many of them, of every task in turn."""
        long = self._long()
        ranks = [sum(other.task is one.task for other in long[:place]) for place, one in enumerate(long)]
        return [long[place] for place in sorted(range(len(long)), key=ranks.__getitem__)[:count]]

    def _all(self) -> list[Ask]:
        tokens = self.size.tokens
        long = [one.by(entrant, tokens) for one in self._long() for entrant in WRITTEN]
        short = [one.by(entrant, tokens) for one in self.asked if one.task.name == SHORT for entrant in PAPER]
        return [*long, *(ask for asks in self._lengths().values() for ask in asks), *short]

    def _lengths(self) -> dict[tuple[str, int], list[Ask]]:
        entrants = {entrant.name: entrant for entrant in WRITTEN}
        return {
            (name, drafts): [one.by(entrants[name], self.size.tokens, drafts) for one in self._some(self.size.by_length)]
            for name in BY_LENGTH
            for drafts in sorted({DRAFTS, *self.size.lengths})
        }

    def _vocabularies(self) -> tuple[int, int]:
        if "vocabularies" not in self.lab.store:
            common = self.lab.pair.common
            self.lab.store.keep("vocabularies", (common.target_size, common.size))
        return self.lab.store.get("vocabularies", tuple[int, int])

    def _quality(self) -> list[Quality]:
        found: list[Quality] = []
        for task in self.tasks:
            asked = [one for one in self.asked if one.task is task]
            entrants = PAPER if task.name == SHORT else WRITTEN
            texts = {entrant.name: self._texts(asked, entrant) for entrant in entrants}
            found += scored(task, [one.question for one in asked], texts, CLOUD.name)
        return found

    def _texts(self, asked: Sequence[Asked], entrant: Entrant) -> list[str]:
        asks = [one.by(entrant, self.size.tokens) for one in asked]
        takes = self.lab.takes(asks)
        return [takes[ask].text for ask in asks]

    def _loads(self, timings: Mapping[tuple[Ask, str], Timing], link: str) -> list[Load]:
        names = [task.name for task in self.tasks if task.name != SHORT]
        return [
            load(entrant.name, task, [timings[one.by(entrant, self.size.tokens), link] for one in self._of(task)])
            for task in ("all", *names)
            for entrant in LOADED
        ]

    def _of(self, task: str) -> list[Asked]:
        return [one for one in self._long() if task in ("all", one.task.name)]

    def _by_length(self) -> list[ByLength]:
        link = f"x-cosd@{NAMED_RATE:g}"
        lengths = self._lengths()
        timings = self.lab.timings([ask for asks in lengths.values() for ask in asks], [link])
        found = []
        for (name, drafts), asks in lengths.items():
            mine = [timings[ask, link] for ask in asks]
            found.append(ByLength(name, drafts, load(name, "all", mine), throughput(mine)))
        return found

    def _far(self) -> Along:
        asked = self._long()
        links = {trip: f"x-cosd@{NAMED_RATE:g},rtt={trip:g}ms" for trip in self.size.round_trips}
        asks = [one.by(entrant, self.size.tokens) for one in asked for entrant in TIMED]
        timings = self.lab.timings(asks, list(links.values()))
        return Along(self._timed(timings, links))

    def _timed(
        self, timings: Mapping[tuple[Ask, str], Timing], links: Mapping[float, str]
    ) -> dict[str, dict[float, list[Timing]]]:
        """By method and place, question by question."""
        return {
            entrant.name: {
                x: [timings[one.by(entrant, self.size.tokens), link] for one in self._long()] for x, link in links.items()
            }
            for entrant in TIMED
        }

    def _latency(self, entrant: Entrant, timings: Mapping[tuple[Ask, str], Timing]) -> Latency:
        link = f"x-cosd@{NAMED_RATE:g}"
        return latency(entrant.name, [timings[one.by(entrant, self.size.tokens), link] for one in self._long()])

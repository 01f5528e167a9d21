"""`antiphon-lab bench coupled`: coupled drafting in a stream beside the plain stream of the cloud, in virtual time.

Tables of `bench speculative` over one set of prompts of four kinds: by round trip, by the cloud's patience, by temperature, and
on every named link.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from antiphon.config import ModelConfig
from antiphon.errors import UsageError
from antiphon_lab.experiments.speculative.figures import Figures
from antiphon_lab.experiments.speculative.grid import Plan, Row, Setting
from antiphon_lab.experiments.speculative.run import Report
from antiphon_lab.experiments.speculative.run import run as run_plan
from antiphon_lab.hardware.profiles import parse_compute
from antiphon_lab.links.notation import parse_link
from antiphon_lab.links.profiles import PROFILES

FILES = ("wikitext2_test.raw", "news_summaries_60.jsonl", "nq_questions.jsonl", "gsm8k_test_400.jsonl")
"""Texts to go on with, articles to sum up, questions, and sums."""

ROUND_TRIPS = (0, 10, 25, 50, 100, 200)
"""Milliseconds, on a link that has nothing else."""

PATIENCES = ("0", "10", "25", "50", "100", "lockstep")
PATIENCE_AT = (10, 50)
"""Round trips on which the cloud's patience is tried."""

TEMPERATURES, AT = (0.3, 0.0), 50
"""Besides 1, and on which round trip."""


def link_of(round_trip: int) -> str:
    """The name of a link that has a round trip and nothing else."""
    return f"rtt={round_trip}ms"


@dataclass(frozen=True, slots=True)
class Study:
    """What is asked for. data: the folder of the data sets. prompts: of each of FILES. parts: of PARTS, by name."""

    data: Path
    methods: tuple[str, ...]
    parts: tuple[str, ...]
    prompts: int
    tokens: int
    profile: str
    cloud_model: ModelConfig
    device_model: ModelConfig
    results: Path | None = None

    def plans(self) -> list[Plan]:
        """A plan for each part. Raises UsageError for a part that is none."""
        if unknown := [part for part in self.parts if part not in PARTS]:
            raise UsageError(f"there is no part {unknown[0]!r}: --parts names some of {', '.join(PARTS)}")
        return [PARTS[part](self) for part in self.parts]

    def plan(
        self,
        links: tuple[str, ...],
        *,
        temperatures: tuple[float, ...] = (1.0,),
        patiences: tuple[str, ...] = ("auto",),
        methods: tuple[str, ...] | None = None,
    ) -> Plan:
        """The plan of a part."""
        return Plan(
            data=tuple(self.data / file for file in FILES),
            methods=self.methods if methods is None else methods,
            links=tuple(map(parse_link, links)),
            computes=(parse_compute(self.profile),),
            lengths=(0,),
            expansions=(),
            patiences=patiences,
            temperatures=temperatures,
            prompts=self.prompts,
            tokens=self.tokens,
            seeds=1,
            cloud_model=self.cloud_model,
            device_model=self.device_model,
            results=self.results,
        )


def _round_trips(study: Study) -> Plan:
    return study.plan(tuple(map(link_of, ROUND_TRIPS)), patiences=("auto", "lockstep"))


def _patience(study: Study) -> Plan:
    return study.plan(tuple(map(link_of, PATIENCE_AT)), patiences=("auto", *PATIENCES), methods=study.methods[:1])


def _temperatures(study: Study) -> Plan:
    return study.plan((link_of(AT),), temperatures=TEMPERATURES)


def _links(study: Study, temperature: float) -> Plan:
    return study.plan(tuple(PROFILES), temperatures=(temperature,), methods=study.methods[:1])


PARTS: Mapping[str, Callable[[Study], Plan]] = {
    "trips": _round_trips,
    "patience": _patience,
    "temperatures": _temperatures,
    "links": partial(_links, temperature=1.0),
    "links-cool": partial(_links, temperature=0.3),
    "links-greedy": partial(_links, temperature=0.0),
}
"""Tables, in the order in which they are measured."""


def run(study: Study, console: Console) -> Report:
    """Write the answers that are not there yet, and put the tables together. Raises one of `antiphon.errors`."""
    plans = study.plans()
    figures: dict[tuple[Setting, Row], Figures] = {}
    for plan in plans:
        figures.update(run_plan(plan, console).figures)
    return Report(plans[0], figures, {})

"""`antiphon-lab bench rag`: questions and texts over two libraries, by several methods (METHODS 4; CONCORD V).

In virtual time the very code of real time runs with the real models, and a link and a hardware profile say what passes and
frames take. Methods mostly walk the same tokens, and nothing is read twice (`antiphon_lab.ends.remembering_model`), so that one
more row costs little. Every answer is kept as soon as it is there, and the same command goes on from there.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from rich.console import Console

from antiphon import __version__
from antiphon.errors import UsageError
from antiphon.models import load
from antiphon.models.base import Model
from antiphon_lab.ends.remembering_model import RememberingModel
from antiphon_lab.experiments.quality import spread
from antiphon_lab.experiments.rag.answers import Case, Desk, Setting, Written
from antiphon_lab.experiments.rag.ends import Ends, RealEnds, VirtualEnds
from antiphon_lab.experiments.rag.figures import Figures
from antiphon_lab.experiments.rag.rows import BASELINE, Row
from antiphon_lab.hardware.profiles import Compute
from antiphon_lab.links.link import Link
from antiphon_lab.report.screen import progress_bar
from antiphon_lab.store import Store
from antiphon_lab.workloads.documents import Example, libraries, library_files

DENSE = "drdg-tw"
"""The method whose answers are the dense mixture's, in the simplest way."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the benchmark runs. data: the folder of data. examples: how many. results: where answers are kept, if anywhere.

    skipped: how many of the task's are left out before the first, in the order in which more of them are taken. Raises
    UsageError for what cannot be.
    """

    data: Path
    setting: Setting
    cases: tuple[Case, ...]
    examples: int
    results: Path | None = None
    skipped: int = 0

    def __post_init__(self) -> None:
        if self.examples < 1:
            raise UsageError(f"--questions must be at least 1, not {self.examples}")
        if self.skipped < 0:
            raise UsageError(f"--skip must be 0 or more, not {self.skipped}")
        if self.setting.tokens < 1:
            raise UsageError(f"--tokens must be at least 1, not {self.setting.tokens}")


def cases_of(rows: Sequence[Row], links: Sequence[Link], compute: Compute) -> tuple[Case, ...]:
    """Every row on every link."""
    return tuple(Case(row, link, compute) for link, row in product(links, rows))


@dataclass(frozen=True, slots=True)
class Report:
    """What a finished run found."""

    plan: Plan
    answers: Mapping[Case, tuple[Written, ...]]

    @property
    def settings(self) -> list[tuple[Link, Compute]]:
        """Links and hardware, in order."""
        return list(dict.fromkeys((case.link, case.compute) for case in self.answers))

    def rows(self, link: Link, compute: Compute) -> dict[str, Figures]:
        """The rows on a link and hardware, by name."""
        cases = {case.row.name: case for case in self.answers if (case.link, case.compute) == (link, compute)}
        here = {name: self.answers[case] for name, case in cases.items()}
        beside = here.get(BASELINE, ()), here.get(DENSE, ())
        return {name: Figures(found, *beside, cases[name].row.options.debt()) for name, found in here.items()}

    def as_json(self) -> dict[str, object]:
        """Settings and figures, by name."""
        setting = self.plan.setting
        return {
            "version": __version__,
            "task": setting.task.name,
            "models": [Path(config.name).name for config in setting.models],
            "examples": self.plan.examples,
            "skipped": self.plan.skipped,
            "tokens": setting.tokens,
            "temperature": setting.sampling.temperature,
            "seed": setting.seed,
            "time": "real" if setting.real else "virtual",
            "settings": [self._setting(*one) for one in self.settings],
        }

    def _setting(self, link: Link, compute: Compute) -> dict[str, object]:
        rows = [{"row": name, **figures.as_json()} for name, figures in self.rows(link, compute).items()]
        where = {"link": link.name, "link_source": link.source}
        if not self.plan.setting.real:
            where |= {"profile": compute.name, "profile_source": compute.source}
        return {**where, "rows": rows}


def run(plan: Plan) -> Report:
    """Write the answers that are not there yet. Raises one of `antiphon.errors`; what is written stays."""
    kept = Store(plan.results)
    with _models(plan.setting) as models:
        examples = chosen(plan, models[0])
        missing = [example for example in examples if _todo(plan, example, kept)]
        if missing:
            _write(plan, missing, models, kept)
    keys = {case: [plan.setting.key(example, case) for example in examples] for case in plan.cases}
    return Report(plan, {case: tuple(kept.get(key, Written) for key in found) for case, found in keys.items()})


def chosen(plan: Plan, model: Model) -> list[Example]:
    """The examples of a run, spread over the task's; more of them keep the earlier ones."""
    found = plan.setting.task.examples(plan.data, model)
    if plan.skipped + plan.examples > len(found):
        with_skipped = f", with the {plan.skipped} that are skipped" if plan.skipped else ""
        raise UsageError(f"--questions must be at most {len(found)}{with_skipped}, as many as {plan.setting.task.name} has")
    return [found[place] for place in spread(len(found), plan.skipped + plan.examples)[plan.skipped :]]


def _todo(plan: Plan, example: Example, kept: Store) -> list[Case]:
    return [case for case in plan.cases if plan.setting.key(example, case) not in kept]


def _write(plan: Plan, examples: Sequence[Example], models: tuple[Model, Model], kept: Store) -> None:
    total = sum(len(_todo(plan, example, kept)) for example in examples)
    with ExitStack() as stack:
        progress = stack.enter_context(progress_bar(Console(stderr=True)))
        bar = progress.add_task("making the libraries", total=total)
        desk = stack.enter_context(_desk(plan, models))
        stack.enter_context(kept.adding())
        for example in examples:
            desk.turn()
            for case in _todo(plan, example, kept):
                progress.update(bar, description=f"{example.name}, {case.row.name}")
                kept.keep(plan.setting.key(example, case), desk.write(example, case))
                progress.advance(bar)


@contextmanager
def _desk(plan: Plan, models: tuple[Model, Model]) -> Iterator[Desk]:
    """Where answers are written. Models that are one are shared by both ends."""
    setting = plan.setting
    shared = [RememberingModel(model) for model in dict.fromkeys(models)]
    device, cloud = shared[0], shared[-1]
    with ExitStack() as stack:
        found = stack.enter_context(libraries(setting.task, plan.data))
        if setting.real:
            file = library_files(setting.task, plan.data)[1]
            ends: Ends = stack.enter_context(RealEnds(models[0], found[0], setting.models[1], file))
        else:
            ends = VirtualEnds((device, cloud), found)
        yield Desk(setting, ends, (device, cloud), found)
        for model in shared:
            model.forget()


@contextmanager
def _models(setting: Setting) -> Iterator[tuple[Model, Model]]:
    """The device's and the cloud's; one, where both are the same. In real time the cloud's process has one of its own."""
    with ExitStack() as stack:

        def opened(place: int) -> Model:
            model = load(setting.models[place])
            stack.callback(model.close)
            return model

        device = opened(0)
        yield device, device if setting.models[0] == setting.models[1] else opened(1)

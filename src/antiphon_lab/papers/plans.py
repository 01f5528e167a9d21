"""What a reproduction is asked for: data, models, scale; and the lab that it is done in."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from antiphon import __version__
from antiphon.config import ModelConfig, SamplingParams
from antiphon.errors import UsageError
from antiphon_lab.hardware.profiles import Compute, parse_compute
from antiphon_lab.papers.lab import Lab
from antiphon_lab.report.origin import Origin, origin
from antiphon_lab.store import Store

SCALES = ("smoke", "small", "full")
"""How much is measured: a look at whether it works, half an hour on one core, and a night."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a report says of how it was made; no path of the machine. pass_sources: of a draft's time and of a verdict's."""

    origin: Origin
    scale: str
    cloud_model: str
    model: str
    temperature: float
    seed: int
    profile: str
    profile_source: str
    pass_sources: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Report:
    """What a reproduction found, and how it was made. paper: what its figures are called by."""

    paper: ClassVar[str]
    settings: Settings

    def as_json(self) -> dict[str, object]:
        """Settings and figures, by name."""
        figures = {name: value for name, value in asdict(self).items() if name != "settings"}
        return {"paper": self.paper, **asdict(self.settings), **figures}


@dataclass(frozen=True, slots=True)
class Plan:
    """data: the folder of the data sets. profile: the hardware that is charged for. results: where measurements are kept.

    Raises UsageError for what cannot be.
    """

    data: Path
    scale: str
    cloud_model: ModelConfig
    device_model: ModelConfig
    sampling: SamplingParams
    profile: str
    results: Path
    seed: int = 1

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise UsageError(f"--scale must be one of {', '.join(SCALES)}, not {self.scale!r}")
        parse_compute(self.profile)

    @property
    def hardware(self) -> Compute:
        """What forward passes are charged by."""
        return parse_compute(self.profile)

    def settings(self, paper: str) -> Settings:
        """What the report of a paper says of it."""
        hardware, models = self.hardware, [Path(model.name).name for model in (self.cloud_model, self.device_model)]
        return Settings(
            origin=origin(self._command(paper, *models)),
            scale=self.scale,
            cloud_model=models[0],
            model=models[1],
            temperature=float(self.sampling.temperature),
            seed=self.seed,
            profile=self.profile,
            profile_source=hardware.source,
            pass_sources=(hardware.draft.source, hardware.verify.source),
        )

    def _command(self, paper: str, cloud_model: str, model: str) -> str:
        """What measures this again."""
        models, sampled = f"--cloud-model {cloud_model} --model {model}", f"--temperature {self.sampling.temperature:g}"
        given = f"--scale {self.scale} {models} {sampled} --seed {self.seed} --profile {self.profile}"
        return f"antiphon-lab reproduce {paper} --data DATA {given}"


@contextmanager
def working(plan: Plan) -> Iterator[Lab]:
    """A lab, with its progress on stderr. If it ends before its time, what is done is kept."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    models = plan.cloud_model, plan.device_model
    depends = (
        __version__,
        *(model.name for model in models),
        f"temperature {plan.sampling.temperature:g}",
        f"seed {plan.seed}",
    )
    with (
        Store(plan.results, depends).adding() as store,
        Progress(*columns, console=Console(stderr=True)) as progress,
        Lab(models, plan.sampling, plan.seed, plan.hardware, store, progress) as lab,
    ):
        yield lab

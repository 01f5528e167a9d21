"""`antiphon-lab reproduce`: one command a paper."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from antiphon.cli.arguments import AsJson, ThreadsOfEach
from antiphon.config import ModelConfig, SamplingParams

if TYPE_CHECKING:
    from antiphon_lab.papers.pages import Claim
    from antiphon_lab.papers.plans import Plan
    from antiphon_lab.report.page import Page

reproduce = typer.Typer(no_args_is_help=True, help="The papers' tables and figures, with models of your choice.")

Data = Annotated[Path, typer.Option(help="The folder of the data sets.")]
Scale = Annotated[str, typer.Option(help="smoke (seconds, toy models), small (half an hour on one core) or full (a night).")]
Out = Annotated[Path, typer.Option(help="The folder for the page and its figures as JSON; made if missing.")]
Results = Annotated[
    Path | None, typer.Option(help="Keeps every answer and measurement; the same command goes on. In --out unless given.")
]
CloudModel = Annotated[str | None, typer.Option(help="As for serve. Unless given gemma3-270m, at scale smoke a toy.")]
DeviceModel = Annotated[
    str | None, typer.Option("--model", help="Unless given smollm2-135m (of concord gemma3-270m), at scale smoke a toy.")
]
Heat = Annotated[float, typer.Option("--temperature", help="0 is greedy.")]
Profile = Annotated[str, typer.Option(help="Hardware that passes are charged by: a100-7b, paper, measured, with changes.")]


DRAFTING = {"smoke": ("toy-cloud", "toy-device"), "real": ("gemma3-270m", "smollm2-135m")}
MIXING = {"smoke": ("toy-reader", "toy-reader"), "real": ("gemma3-270m", "gemma3-270m")}
"""The cloud's model and the device's, unless others are given; documents are mixed by two of one tokenizer."""


@reproduce.command()
def tslt(
    data: Data,
    scale: Scale = "small",
    out: Out = Path("reproduced"),
    results: Results = None,
    cloud_model: CloudModel = None,
    model: DeviceModel = None,
    temperature: Heat = 1.0,
    profile: Profile = "a100-7b",
    seed: int = 1,
    threads: ThreadsOfEach = 1,
    as_json: AsJson = False,
) -> None:
    """TSLT: retained mass, acceptance, and speed-up against the uplink's rate."""
    from antiphon_lab.papers.tslt.claims import claims
    from antiphon_lab.papers.tslt.page import page
    from antiphon_lab.papers.tslt.run import run

    models = _models(scale, cloud_model, model, threads, DRAFTING)
    asked = _Asked(data, scale, out, results, models, SamplingParams(temperature=temperature), profile, seed)
    _reproduce("tslt", asked, run, claims, page, as_json)


@reproduce.command("x-cosd")
def x_cosd(
    data: Data,
    scale: Scale = "small",
    out: Out = Path("reproduced"),
    results: Results = None,
    cloud_model: CloudModel = None,
    model: DeviceModel = None,
    temperature: Heat = 1.0,
    profile: Profile = "a100-7b",
    seed: int = 1,
    threads: ThreadsOfEach = 1,
    as_json: AsJson = False,
) -> None:
    """X-CoSD: quality, bits a token, throughput against the downlink's rate, latency a token."""
    from antiphon_lab.papers.xcosd.claims import claims
    from antiphon_lab.papers.xcosd.page import page
    from antiphon_lab.papers.xcosd.run import run

    models = _models(scale, cloud_model, model, threads, DRAFTING)
    asked = _Asked(data, scale, out, results, models, SamplingParams(temperature=temperature), profile, seed)
    _reproduce("x-cosd", asked, run, claims, page, as_json)


@reproduce.command()
def concord(
    data: Data,
    scale: Scale = "small",
    out: Out = Path("reproduced"),
    results: Results = None,
    cloud_model: CloudModel = None,
    model: DeviceModel = None,
    temperature: Heat = 0.0,
    profile: Profile = "4090d-1.7b",
    seed: int = 1,
    threads: ThreadsOfEach = 1,
    as_json: AsJson = False,
) -> None:
    """CONCORD: answers from two libraries, ablation, latency, two processes in real time."""
    from antiphon_lab.papers.concord.claims import claims
    from antiphon_lab.papers.concord.page import page
    from antiphon_lab.papers.concord.run import run

    models = _models(scale, cloud_model, model, threads, MIXING)
    asked = _Asked(data, scale, out, results, models, SamplingParams(temperature=temperature), profile, seed)
    _reproduce("concord", asked, run, claims, page, as_json)


@reproduce.command()
def picture(
    figures: Annotated[Path, typer.Argument(help="What `reproduce x-cosd` wrote: x-cosd.json.")],
    file: Annotated[Path, typer.Argument(help="The SVG file to write.")],
) -> None:
    """Draw a reproduction of X-CoSD: tokens a second by downlink and by round trip."""
    from antiphon_lab.papers.xcosd.picture import panels
    from antiphon_lab.report.picture import write_picture

    write_picture(file, *panels(figures))


@reproduce.command()
def page(
    figures: Annotated[Path, typer.Argument(help="What a reproduction wrote as JSON, such as x-cosd.json.")],
    file: Annotated[Path, typer.Argument(help="The HTML file to write.")],
) -> None:
    """Make a page again from its figures; nothing is measured, no model is loaded."""
    from antiphon_lab.papers.redrawn import redrawn

    redrawn(figures).write(file)


@dataclass(frozen=True, slots=True)
class _Asked:
    data: Path
    scale: str
    out: Path
    results: Path | None
    models: tuple[ModelConfig, ModelConfig]
    sampling: SamplingParams
    profile: str
    seed: int


def _models(
    scale: str, cloud: str | None, device: str | None, threads: int, usual: Mapping[str, tuple[str, str]]
) -> tuple[ModelConfig, ModelConfig]:
    """The cloud's and the device's."""
    own_cloud, own_device = usual["smoke" if scale == "smoke" else "real"]
    return ModelConfig(cloud or own_cloud, threads=threads), ModelConfig(device or own_device, threads=threads)


def _reproduce(
    name: str,
    asked: _Asked,
    run: "Callable[[Plan], Any]",
    claims: "Callable[[Any], Sequence[Claim]]",
    page: "Callable[[Any], Page]",
    as_json: bool,
) -> None:
    """Measure, write the files, and show what was found."""
    from antiphon_lab.papers.files import Files
    from antiphon_lab.papers.plans import Plan

    files = Files(asked.out, name)
    results = asked.results or files.measurements
    plan = Plan(asked.data, asked.scale, *asked.models, asked.sampling, asked.profile, results, asked.seed)
    files.prepare()
    report = run(plan)
    figures = report.as_json()
    files.write(page(report), figures)
    _show(claims(report), files.page, figures if as_json else None)


def _show(claims: "Sequence[Claim]", page: Path, figures: Mapping[str, object] | None) -> None:
    console = Console(stderr=figures is not None, highlight=False)
    for claim in claims:
        console.print(f"{claim.about}: {claim.says}", style="dim", markup=False)
        console.print(f"  {claim.found.replace('`', '')}", markup=False)
    console.print(f"\nAll of it: {page}", markup=False, soft_wrap=True)
    if figures is not None:
        typer.echo(json.dumps(figures))

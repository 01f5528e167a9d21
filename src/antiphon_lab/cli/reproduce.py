"""`antiphon-lab reproduce`: one command a paper."""

import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from antiphon.cli.arguments import AsJson, ThreadsOfEach
from antiphon.config import ModelConfig, SamplingParams

if TYPE_CHECKING:
    from antiphon_lab.papers.pages import Claim
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


def _command(name: str, says: str, usual: Mapping[str, tuple[str, str]], heat: float, hardware: str) -> None:
    """Add the command of a paper, whose folder has `run`, `claims` and `page`. usual: its models unless others are given."""

    @reproduce.command(name, help=says)
    def command(
        data: Data,
        scale: Scale = "small",
        out: Out = Path("reproduced"),
        results: Results = None,
        cloud_model: CloudModel = None,
        model: DeviceModel = None,
        temperature: Heat = heat,
        profile: Profile = hardware,
        seed: int = 1,
        threads: ThreadsOfEach = 1,
        as_json: AsJson = False,
    ) -> None:
        from antiphon_lab.papers.files import Files
        from antiphon_lab.papers.plans import Plan

        files = Files(out, name)
        own_cloud, own_device = usual["smoke" if scale == "smoke" else "real"]
        plan = Plan(
            data=data,
            scale=scale,
            cloud_model=ModelConfig(cloud_model or own_cloud, threads=threads),
            device_model=ModelConfig(model or own_device, threads=threads),
            sampling=SamplingParams(temperature=temperature),
            profile=profile,
            results=results or files.measurements,
            seed=seed,
        )
        files.prepare()
        run, claims, page = _parts(name.replace("-", ""))
        report = run(plan)
        figures = report.as_json()
        files.write(page(report), figures)
        _show(claims(report), files.page, figures if as_json else None)


def _parts(paper: str) -> tuple[Callable[[Any], Any], Callable[[Any], "Sequence[Claim]"], Callable[[Any], "Page"]]:
    """What measures, what the paper says beside what was found, and the page."""
    run, claims, page = (
        getattr(import_module(f"antiphon_lab.papers.{paper}.{part}"), part) for part in ("run", "claims", "page")
    )
    return run, claims, page


_command(
    "tslt",
    "TSLT: retained mass, acceptance, and speed-up against the uplink's rate.",
    DRAFTING,
    heat=1.0,
    hardware="a100-7b",
)
_command(
    "x-cosd",
    "X-CoSD: quality, bits a token, throughput against the downlink's rate, latency a token.",
    DRAFTING,
    heat=1.0,
    hardware="a100-7b",
)
_command(
    "concord",
    "CONCORD: answers from two libraries, ablation, latency, two processes in real time.",
    MIXING,
    heat=0.0,
    hardware="4090d-1.7b",
)


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


def _show(claims: "Sequence[Claim]", page: Path, figures: Mapping[str, object] | None) -> None:
    console = Console(stderr=figures is not None, highlight=False)
    for claim in claims:
        console.print(f"{claim.about}: {claim.says}", style="dim", markup=False)
        console.print(f"  {claim.found.replace('`', '')}", markup=False)
    console.print(f"\nAll of it: {page}", markup=False, soft_wrap=True)
    if figures is not None:
        typer.echo(json.dumps(figures))

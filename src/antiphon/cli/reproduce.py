"""`antiphon reproduce`: one command a paper."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from antiphon.cli.arguments import AsJson, ThreadsOfEach
from antiphon.config import ModelConfig, SamplingParams

reproduce = typer.Typer(no_args_is_help=True, help="The papers' tables and figures, with models of your choice.")

Data = Annotated[Path, typer.Option(help="The folder of the data sets.")]
Scale = Annotated[str, typer.Option(help="smoke (seconds, toy models), small (half an hour on one core) or full (a night).")]
Out = Annotated[Path, typer.Option(help="The folder for the page and its figures as JSON; made if missing.")]
Results = Annotated[
    Path | None, typer.Option(help="Keeps every answer and measurement; the same command goes on. In --out unless given.")
]
CloudModel = Annotated[str | None, typer.Option(help="As for serve. Unless given gemma3-270m, at scale smoke toy-cloud.")]
DeviceModel = Annotated[str | None, typer.Option("--model", help="Unless given smollm2-135m, at scale smoke toy-device.")]
Heat = Annotated[float, typer.Option("--temperature", help="0 is greedy.")]
Profile = Annotated[str, typer.Option(help="Hardware that passes are charged by: a100-7b, paper, measured, with changes.")]


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
    from antiphon.bench.reproduce.files import Files
    from antiphon.bench.reproduce.plans import Plan
    from antiphon.bench.reproduce.tslt import run
    from antiphon.bench.reproduce.tslt_claims import claims
    from antiphon.bench.reproduce.tslt_page import page

    files, models = Files(out, "tslt"), _models(scale, cloud_model, model, threads)
    sampling = SamplingParams(temperature=temperature)
    plan = Plan(data, scale, *models, sampling, profile, results or files.measurements, seed)
    files.prepare()
    report = run(plan)
    files.write(page(report), report.as_json())
    _show([(claim.says, claim.found) for claim in claims(report)], files.page, report.as_json() if as_json else None)


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
    from antiphon.bench.reproduce.files import Files
    from antiphon.bench.reproduce.plans import Plan
    from antiphon.bench.reproduce.xcosd import run
    from antiphon.bench.reproduce.xcosd_claims import claims
    from antiphon.bench.reproduce.xcosd_page import page

    files, models = Files(out, "x-cosd"), _models(scale, cloud_model, model, threads)
    sampling = SamplingParams(temperature=temperature)
    plan = Plan(data, scale, *models, sampling, profile, results or files.measurements, seed)
    files.prepare()
    report = run(plan)
    files.write(page(report), report.as_json())
    _show([(claim.says, claim.found) for claim in claims(report)], files.page, report.as_json() if as_json else None)


def _models(scale: str, cloud: str | None, device: str | None, threads: int) -> tuple[ModelConfig, ModelConfig]:
    """The cloud's and the device's."""
    usual = ("toy-cloud", "toy-device") if scale == "smoke" else ("gemma3-270m", "smollm2-135m")
    return ModelConfig(cloud or usual[0], threads=threads), ModelConfig(device or usual[1], threads=threads)


def _show(claims: list[tuple[str, str]], page: Path, figures: Mapping[str, object] | None) -> None:
    console = Console(stderr=figures is not None, highlight=False)
    for says, found in claims:
        console.print(f"{says}", style="dim", markup=False)
        console.print(f"  {found.replace('`', '')}", markup=False)
    console.print(f"\nAll of it: {page}", markup=False, soft_wrap=True)
    if figures is not None:
        typer.echo(json.dumps(figures))

"""`antiphon-lab race`."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from antiphon.cli.arguments import AsJson, ModelName, Temperature, ThreadsOfEach
from antiphon.config import ModelConfig, SamplingParams


def race(
    prompt: Annotated[
        str, typer.Argument(help="What both go on from.")
    ] = "The three most important things to know about the moon are",
    method: Annotated[str, typer.Option(help="Who races against `cloud`, the plain stream.")] = "coupled",
    hardware: Annotated[
        str, typer.Option(help="a100-7b, 4090d-1.7b, paper, measured (this machine's own) or a file, and changes.")
    ] = "a100-7b",
    link: Annotated[str, typer.Option(help="A link, such as 4g (see antiphon-lab link --list).")] = "4g",
    max_tokens: int = 64,
    temperature: Temperature = 0.0,
    seed: int = 1,
    cloud_model: ModelName = "gemma3-270m",
    model: ModelName = "smollm2-135m",
    threads: ThreadsOfEach = 1,
    svg: Annotated[
        Path | None, typer.Option("--picture", help="Also write an SVG file: how it stood when the first was done.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The same answer as a plain stream and by a method, side by side, replayed at the pace of some hardware and a link."""
    from antiphon_lab.experiments.race import Plan, run
    from antiphon_lab.experiments.race_screen import picture, show
    from antiphon_lab.hardware.profiles import parse_compute
    from antiphon_lab.links.notation import parse_link
    from antiphon_lab.report.origin import from_here, typed
    from antiphon_lab.report.picture import require_svg

    plan = Plan(
        method=method,
        prompt=prompt,
        link=parse_link(link),
        compute=parse_compute(hardware),
        sampling=SamplingParams(temperature=temperature),
        max_tokens=max_tokens,
        seed=seed,
        cloud_model=ModelConfig(cloud_model, threads=threads),
        device_model=ModelConfig(model, threads=threads),
    )
    if svg is not None:
        require_svg(svg, "--picture")
    found = run(plan)
    show(found, Console(stderr=as_json))
    if svg is not None:
        picture(found, svg)
    if as_json:
        typer.echo(json.dumps(from_here(found.as_json(), typed(sys.argv[1:]))))

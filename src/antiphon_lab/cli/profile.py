"""`antiphon-lab profile`."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from antiphon.cli.arguments import AsJson, ModelName, ThreadsOfEach
from antiphon.config import ModelConfig


def profile(
    cloud_model: ModelName = "gemma3-270m",
    model: ModelName = "smollm2-135m",
    threads: ThreadsOfEach = 1,
    repeats: Annotated[int, typer.Option(help="Passes of each kind; the fastest counts.")] = 5,
    output: Annotated[Path | None, typer.Option(help="The file; unless given, the one that --profile measured reads.")] = None,
    as_json: AsJson = False,
) -> None:
    """Time this machine's forward passes, for virtual time (--profile measured)."""
    from antiphon_lab.hardware.measuring import Plan, run

    plan = Plan(ModelConfig(cloud_model, threads=threads), ModelConfig(model, threads=threads), repeats, output)
    report = run(plan, Console(stderr=as_json))
    if as_json:
        typer.echo(json.dumps(report.as_json()))

"""`antiphon demo`."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from antiphon.cli.arguments import DraftLengthOfAll, ModelName, Temperature, ThreadsOfEach, names, number_or_auto
from antiphon.config import ModelConfig, SamplingParams


def demo(
    methods: Annotated[str, typer.Option(help="Methods to run, with commas between.")] = "cloud,dsd,dssd,xcosd,xcosd-e,coupled",
    cloud_model: ModelName = "gemma3-270m",
    model: ModelName = "smollm2-135m",
    draft_length: DraftLengthOfAll = "3",
    max_tokens: int = 40,
    temperature: Temperature = 0.0,
    seed: int = 1,
    threads: ThreadsOfEach = 1,
    picture: Annotated[Path | None, typer.Option(help="Also write the terminal as an SVG file.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object of each method as the last lines of stdout.")
    ] = False,
) -> None:
    """See it work: two real models on this machine, three prompts, one table."""
    from antiphon.demo.table import Plan, run

    console = Console(
        stderr=as_json, record=picture is not None, force_terminal=True if picture else None, width=_width(picture)
    )
    chosen = names(methods)
    cloud_config, device_config = ModelConfig(cloud_model, threads=threads), ModelConfig(model, threads=threads)
    sampling = SamplingParams(temperature=temperature)
    drafts = number_or_auto("draft length", draft_length)
    rows = run(Plan(cloud_config, device_config, chosen, drafts, max_tokens, sampling, seed), console)
    if picture is not None:
        console.save_svg(str(picture), title="antiphon demo")
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row.as_json()))


def _width(picture: Path | None) -> int | None:
    return 110 if picture else None

"""`antiphon-lab bench speculative` and `bench coupled`."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from antiphon.cli.arguments import AsJson, ModelName, ThreadsOfEach, names, number_or_auto
from antiphon.config import ModelConfig
from antiphon.errors import UsageError


def speculative(
    data: Annotated[
        list[Path], typer.Option(help="Prompts: a text such as WikiText-2's wiki.test.raw, or JSON lines; can be repeated.")
    ],
    methods: Annotated[
        str, typer.Option(help="Methods, with commas between; cloud and cloud-trips always run.")
    ] = "dssd,xcosd-e,coupled,coupled-tree",
    link: Annotated[
        list[str] | None, typer.Option(help="A link, such as 4g (see antiphon-lab link --list); can be repeated.")
    ] = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(help="Hardware: a100-7b, 4090d-1.7b, paper, measured or a file, and changes; can be repeated."),
    ] = None,
    patience: Annotated[
        str, typer.Option(help="Milliseconds that a cloud waits for coupled drafts, auto or lockstep; with commas between.")
    ] = "auto,lockstep",
    draft_length: Annotated[
        str, typer.Option(help="Tokens drafted a round in lockstep, or auto; with commas between.")
    ] = "1,2,3,auto",
    expansion: Annotated[
        list[str] | None, typer.Option(help="Children by depth of the trees, unless the methods' own; can be repeated.")
    ] = None,
    temperature: Annotated[str, typer.Option(help="Temperatures, with commas between; 0 is greedy.")] = "1.0",
    prompts: Annotated[int, typer.Option(help="Prompts of each file, evenly spread over it.")] = 4,
    tokens: Annotated[int, typer.Option(help="Tokens of an answer at most.")] = 48,
    seeds: Annotated[int, typer.Option(help="Answers to each prompt.")] = 1,
    cloud_model: ModelName = "gemma3-270m",
    model: ModelName = "smollm2-135m",
    threads: ThreadsOfEach = 1,
    real: Annotated[bool, typer.Option("--real", help="In real time over a proxy, at this machine's own speed.")] = False,
    results: Annotated[Path | None, typer.Option(help="Keeps every answer; the same command goes on.")] = None,
    html: Annotated[Path | None, typer.Option(help="Also write a page with pictures into this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Methods side by side on links and hardware of your choice, in virtual time."""
    from antiphon_lab.experiments.speculative.grid import Plan
    from antiphon_lab.experiments.speculative.page import page
    from antiphon_lab.experiments.speculative.run import run
    from antiphon_lab.hardware.profiles import parse_compute
    from antiphon_lab.links.notation import parse_link
    from antiphon_lab.report.origin import from_here, origin, typed

    plan = Plan(
        data=tuple(data),
        methods=names(methods),
        links=tuple(map(parse_link, link or ["4g"])),
        computes=tuple(map(parse_compute, profile or ["a100-7b"])),
        lengths=tuple(number_or_auto("draft length", length) for length in names(draft_length)),
        expansions=tuple(expansion or ()),
        patiences=names(patience),
        temperatures=tuple(map(heat, names(temperature))),
        prompts=prompts,
        tokens=tokens,
        seeds=seeds,
        cloud_model=ModelConfig(cloud_model, threads=threads),
        device_model=ModelConfig(model, threads=threads),
        results=results,
        html=html,
        real=real,
    )
    report, command = run(plan, Console(stderr=as_json)), typed(sys.argv[1:])
    if html is not None:
        page(report, origin(command)).write(html)
    if as_json:
        typer.echo(json.dumps(from_here(report.as_json(), command)))


def coupled(
    data: Annotated[Path, typer.Option(help="The folder of the data sets.")],
    methods: Annotated[str, typer.Option(help="Coupled methods, with commas between.")] = "coupled,coupled-tree",
    parts: Annotated[
        str,
        typer.Option(
            help="Tables, with commas between: trips, patience, temperatures, links, links-cool, links-greedy.",
            show_default="all",
        ),
    ] = "trips,patience,temperatures,links,links-cool,links-greedy",
    prompts: Annotated[int, typer.Option(help="Prompts of each of four kinds.")] = 6,
    tokens: Annotated[int, typer.Option(help="Tokens of an answer at most.")] = 48,
    profile: Annotated[str, typer.Option(help="Hardware that passes are charged by.")] = "a100-7b",
    cloud_model: ModelName = "gemma3-270m",
    model: ModelName = "smollm2-135m",
    threads: ThreadsOfEach = 1,
    results: Annotated[Path | None, typer.Option(help="Keeps every answer; the same command goes on.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw a picture, into an .svg file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Coupled drafting beside the cloud's plain stream: by round trip, patience, temperature, and on every named link."""
    import msgspec

    from antiphon_lab.experiments.speculative.coupled import Study, run
    from antiphon_lab.experiments.speculative.coupled_picture import Figures, panels
    from antiphon_lab.report.origin import from_here, typed
    from antiphon_lab.report.picture import require_svg, write_picture

    configs = ModelConfig(cloud_model, threads=threads), ModelConfig(model, threads=threads)
    study = Study(data, names(methods), names(parts), prompts, tokens, profile, *configs, results)
    if plot is not None:
        require_svg(plot)
    report, command = run(study, Console(stderr=as_json)), typed(sys.argv[1:])
    if as_json:
        typer.echo(json.dumps(from_here(report.as_json(), command)))
    if plot is not None:
        write_picture(plot, *panels(msgspec.convert(report.as_json(), Figures)))


def heat(given: str) -> float:
    """A temperature. Raises UsageError."""
    try:
        return float(given)
    except ValueError as error:
        raise UsageError(f"a temperature must be a number such as 0.7, not {given!r}") from error

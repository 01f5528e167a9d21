"""`antiphon-lab bench rag`."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from antiphon.cli.arguments import AsJson, ModelName, ThreadsOfEach, names
from antiphon.config import ModelConfig, SamplingParams

METHODS = (
    "crcg,drcg,drdg-sw,drdg-tw,dragon,concord,concord-nosystem,concord-nocomm,dragon top-p: dragon+packing=topp,"
    "to the letter: concord+gate=off+bound=global+certificate=upper+realign=hard+undrafted=local+min_share=0,"
    "concord fast: concord+gate=0.5"
)


def rag(
    data: Annotated[Path, typer.Option(help="The folder of the data sets.")],
    task: Annotated[str, typer.Option(help="nq (questions) or wikitext (texts to go on with).")] = "nq",
    methods: Annotated[
        str, typer.Option(help="Methods, with commas between, each with changes and a name if wanted: fast: concord+gate=0.5.")
    ] = METHODS,
    link: Annotated[
        list[str] | None, typer.Option(help="A link, such as concord@10 (see antiphon-lab link --list); can be repeated.")
    ] = None,
    profile: Annotated[str, typer.Option(help="Hardware: 4090d-1.7b, paper, measured or a file, and changes.")] = "4090d-1.7b",
    questions: Annotated[int, typer.Option(help="Questions or texts, spread over the task's.")] = 20,
    skip: Annotated[int, typer.Option(help="Leave out so many before them: those that were looked at before.")] = 0,
    tokens: Annotated[int, typer.Option(help="Tokens of an answer; 0 is the task's: 10, or 48 of a text.")] = 0,
    passages: Annotated[int, typer.Option(help="Passages that each end puts before its prompt.")] = 2,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.0,
    seed: int = 1,
    cloud_model: ModelName = "smollm2-135m",
    model: ModelName = "smollm2-135m",
    threads: ThreadsOfEach = 1,
    real: Annotated[bool, typer.Option("--real", help="In real time over sockets, at this machine's own speed.")] = False,
    results: Annotated[Path | None, typer.Option(help="Keeps every answer; the same command goes on.")] = None,
    html: Annotated[Path | None, typer.Option(help="Also write a page with pictures into this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Answer over two libraries, one on the device and one in the cloud, by several methods side by side."""
    from antiphon.methods.mixture.options import MixtureOptions
    from antiphon_lab.experiments.rag.answers import Setting
    from antiphon_lab.experiments.rag.page import page
    from antiphon_lab.experiments.rag.rows import parse_row
    from antiphon_lab.experiments.rag.run import Plan, cases_of, run
    from antiphon_lab.experiments.rag.tables import tables
    from antiphon_lab.hardware.profiles import parse_compute
    from antiphon_lab.links.notation import parse_link
    from antiphon_lab.report.origin import from_here, origin, typed
    from antiphon_lab.report.page import require_writable
    from antiphon_lab.workloads.documents import find_task

    found, usual = find_task(task), MixtureOptions(passages=passages, prompt_format=find_task(task).form)
    rows = [parse_row(name, usual) for name in names(methods)]
    cases = cases_of(rows, [parse_link(text) for text in link or ["concord"]], parse_compute(profile))
    models = ModelConfig(model, threads=threads), ModelConfig(cloud_model, threads=threads)
    setting = Setting(found, models, SamplingParams(temperature=temperature), tokens or found.tokens, seed, real)
    if html is not None:
        require_writable(html)
    report = run(Plan(data, setting, cases, questions, results, skip))
    console, command = Console(stderr=as_json), typed(sys.argv[1:])
    for table in tables(report):
        console.print(table)
    if html is not None:
        page(report, origin(command)).write(html)
    if as_json:
        typer.echo(json.dumps(from_here(report.as_json(), command)))

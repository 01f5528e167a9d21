"""`antiphon-lab bench`: one command a measurement."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from antiphon.cli.arguments import (
    AsJson,
    DraftLengthOfAll,
    ModelName,
    Temperature,
    ThreadsOfEach,
    names,
    number_or_auto,
)
from antiphon.config import ModelConfig, SamplingParams
from antiphon_lab.cli.rag import rag
from antiphon_lab.cli.speculative import coupled, heat, speculative

bench = typer.Typer(no_args_is_help=True, help="Measure Antiphon.")
bench.command()(speculative)
bench.command()(coupled)
bench.command()(rag)


@bench.command()
def overhead(rounds: int = 1000, draft_length: Annotated[int | None, typer.Option(show_default="the method's")] = None) -> None:
    """Antiphon's own time a round, without models and link: toy models over loopback, `dssd`."""
    from antiphon.methods.speculative.options import SplitOptions
    from antiphon_lab.experiments.overhead import run

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("rounds", total=rounds)
        found = run(
            rounds, draft_length or SplitOptions().draft_length, lambda done: progress.update(task, completed=min(done, rounds))
        )
    typer.echo(
        f"{found.rounds} rounds: Antiphon's own time {found.overhead_median_ms:.3f} ms median, "
        f"{found.overhead_p99_ms:.3f} ms p99 (a whole round {found.round_median_ms:.3f} ms, of it models "
        f"{found.models_median_ms:.3f}, link {found.link_median_ms:.3f})"
    )
    typer.echo(json.dumps(_told(asdict(found))))


@bench.command()
def noise(
    tokens: Annotated[str, typer.Option(help="Numbers of tokens, with commas between.")] = "46146,262144",
    repeats: Annotated[int, typer.Option(help="Positions that each is measured at; the median counts.")] = 200,
    as_json: AsJson = False,
) -> None:
    """What the noise of one position costs, and the race over it, beside making the distribution that races; no model."""
    from antiphon_lab.experiments.noise import numbers, run, table

    found = run(numbers(tokens), repeats)
    Console(stderr=as_json).print(table(found))
    if as_json:
        typer.echo(json.dumps(_told({"costs": [asdict(cost) for cost in found]})))


@bench.command()
def stream(
    method: Annotated[str, typer.Option(help="What is held against `cloud`, the plain stream.")] = "coupled",
    link: Annotated[
        list[str] | None, typer.Option(help="loopback, or a link (see antiphon-lab link --list); can be repeated.")
    ] = None,
    temperature: Annotated[str, typer.Option(help="Temperatures, with commas between; 0 is greedy.")] = "0,1",
    answers: Annotated[int, typer.Option(help="Pairs of answers in each setting.")] = 10,
    tokens: Annotated[int, typer.Option(help="Tokens of an answer at most.")] = 48,
    seed: int = 1,
    cloud_model: ModelName = "gemma3-270m",
    model: ModelName = "smollm2-135m",
    threads: ThreadsOfEach = 1,
    as_json: AsJson = False,
) -> None:
    """In real time on this machine: how many times as fast as the cloud's plain stream a method is."""
    from antiphon_lab.experiments.stream import LOOPBACK, Plan, run
    from antiphon_lab.links.notation import parse_link

    plan = Plan(
        method=method,
        links=tuple(None if name == LOOPBACK else parse_link(name) for name in link or [LOOPBACK, "rtt=50ms"]),
        temperatures=tuple(map(heat, names(temperature))),
        answers=answers,
        tokens=tokens,
        seed=seed,
        cloud_model=ModelConfig(cloud_model, threads=threads),
        device_model=ModelConfig(model, threads=threads),
    )
    report = run(plan, Console(stderr=as_json))
    if as_json:
        typer.echo(json.dumps(_told(report.as_json())))


@bench.command()
def quality(
    data: Annotated[Path, typer.Option(help="The folder of the data sets.")],
    methods: Annotated[
        str, typer.Option(help="Methods to compare, with commas between; cloud is always one.")
    ] = "dsd,dssd,device",
    tasks: Annotated[str, typer.Option(help="Tasks, with commas between.")] = "gsm8k,mmlu,wmt22,news,nq",
    rows: Annotated[int, typer.Option(help="Questions of each task.")] = 24,
    results: Annotated[Path, typer.Option(help="Keeps every answer; the same command goes on.")] = Path("quality.jsonl"),
    cloud_model: ModelName = "gemma3-270m",
    model: ModelName = "smollm2-135m",
    temperature: Temperature = 1.0,
    draft_length: DraftLengthOfAll = "2",
    seed: int = 1,
    threads: ThreadsOfEach = 1,
    as_json: AsJson = False,
) -> None:
    """Answer questions by several methods and score them side by side."""
    from antiphon_lab.experiments.quality import Plan, run

    configs = ModelConfig(cloud_model, threads=threads), ModelConfig(model, threads=threads)
    sampling, drafts = SamplingParams(temperature=temperature), number_or_auto("draft length", draft_length)
    report = run(
        Plan(data, names(methods), names(tasks), rows, results, *configs, sampling, drafts, seed), Console(stderr=as_json)
    )
    if as_json:
        typer.echo(json.dumps(_told(report.as_json())))


@bench.command()
def truncation(
    data: Annotated[Path, typer.Option(help="A text file with long lines, such as WikiText-2's wiki.test.raw.")],
    cloud_model: ModelName = "gemma3-270m",
    model: ModelName = "smollm2-135m",
    temperature: Temperature = 1.0,
    prompts: Annotated[int, typer.Option(help="Prompts, evenly spread over the file.")] = 20,
    positions: Annotated[int, typer.Option(help="Tokens that are measured after each prompt.")] = 8,
    keep: Annotated[
        str, typer.Option(help="What truncations keep, with commas between: k=TOKENS, p=MASS or off.")
    ] = "k=8,k=32,k=100,k=320,k=461,k=1000,k=3200,p=0.5,p=0.8,p=0.9,p=0.95,p=0.99",
    children: Annotated[int, typer.Option(help="Drafts of the multi-candidate columns; 3 and more are slow.")] = 2,
    draft_precision: Annotated[
        int | None, typer.Option(help="Bits of a draft probability: 8, 16 or 32.", show_default="the method's")
    ] = None,
    threads: ThreadsOfEach = 1,
    plot: Annotated[Path | None, typer.Option(help="Also draw a picture, into an .svg file.")] = None,
    as_json: AsJson = False,
) -> None:
    """How much of a draft distribution must cross: mass, acceptance and bytes by truncation; about a minute on one core."""
    import msgspec

    from antiphon.methods.speculative.tslt import SparseOptions
    from antiphon_lab.experiments.truncation import Plan, run
    from antiphon_lab.experiments.truncation_picture import Figures, panels
    from antiphon_lab.report.picture import require_svg, write_picture

    configs = ModelConfig(cloud_model, threads=threads), ModelConfig(model, threads=threads)
    sampling = SamplingParams(temperature=temperature)
    bits = SparseOptions().draft_precision if draft_precision is None else draft_precision
    plan = Plan(data, *configs, sampling, prompts, positions, names(keep), children, bits)
    if plot is not None:
        require_svg(plot)
    report = run(plan, Console(stderr=as_json))
    if as_json:
        typer.echo(json.dumps(_told(report.as_json())))
    if plot is not None:
        write_picture(plot, *panels(msgspec.convert(report.as_json(), Figures)))


@bench.command()
def picture(
    figures: Annotated[Path, typer.Argument(help="What `bench truncation --json` or `bench coupled --json` wrote.")],
    file: Annotated[Path, typer.Argument(help="The SVG file to write.")],
) -> None:
    """Draw the picture of `bench truncation` or `bench coupled` again; nothing is measured, no model is loaded."""
    from antiphon_lab.experiments import truncation_picture
    from antiphon_lab.experiments.speculative import coupled_picture
    from antiphon_lab.report.picture import read_figures, write_picture

    if "settings" in read_figures(figures, dict[str, object], "bench truncation --json"):
        panels = coupled_picture.panels(read_figures(figures, coupled_picture.Figures, "bench coupled --json"))
    else:
        panels = truncation_picture.panels(read_figures(figures, truncation_picture.Figures, "bench truncation --json"))
    write_picture(file, *panels)


@bench.command()
def retrieval(
    data: Annotated[Path, typer.Option(help="The folder of the data sets.")],
    questions: Annotated[int, typer.Option(help="Questions to ask; 0 is all of them.")] = 0,
    passages: Annotated[int, typer.Option(help="Passages of the large library.")] = 20_000,
    embedder: Annotated[Path | None, typer.Option(help="Also by vectors: a folder with model.onnx and tokenizer.json.")] = None,
    as_json: AsJson = False,
) -> None:
    """A library on Natural Questions: recall, time, and whether the weights of two ends are comparable."""
    from antiphon_lab.experiments.retrieval import Plan, run

    report = run(Plan(data, questions, passages, embedder=embedder), Console(stderr=as_json))
    if as_json:
        typer.echo(json.dumps(_told(asdict(report))))


def _told(figures: dict[str, object]) -> dict[str, object]:
    """With the command that was typed, and where it ran."""
    from antiphon_lab.report.origin import from_here, typed

    return from_here(figures, typed(sys.argv[1:]))

"""The command line: arguments to configuration to one call. Answers go to stdout, everything else to stderr.

Bad input and anything else that a person can mend is one sentence on stderr and exit code 2.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from antiphon import __version__
from antiphon.config import CandidateOptions, ModelConfig, Request, SamplingParams, ServeConfig, TreeOptions, UncertaintyOptions
from antiphon.errors import AntiphonError, UsageError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A small model on a device and a large one in the cloud write one answer together.",
)
bench = typer.Typer(no_args_is_help=True, help="Measure Antiphon.")
app.add_typer(bench, name="bench")

ModelName = Annotated[str, typer.Option(help="A GGUF file, hf:owner/repo/file.gguf, smollm2-135m or gemma3-270m.")]
Threads = Annotated[int, typer.Option(help="Threads of the model; 0 is one a core.")]
Context = Annotated[int, typer.Option(help="Tokens that the model's context holds.")]
CloudUrl = Annotated[str | None, typer.Option("--cloud", help="The cloud's address, such as ws://127.0.0.1:8765.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of stdout.")]
DraftLength = Annotated[int, typer.Option(help="Tokens drafted a round.")]
DraftPrecision = Annotated[
    int | None,
    typer.Option(help="Bits of a draft probability on the wire: 16 or 32, also 8 for tslt, where it is the default."),
]
Precision = Annotated[int, typer.Option(help="Bits of a target probability on the wire: 16 (logarithms) or 32 (float32).")]
Temperature = Annotated[float, typer.Option(help="0 is greedy.")]

# Defaults live in the configuration; the command line only shows them.
_SAMPLING, _CHAIN, _SERVE, _HLM = SamplingParams(), CandidateOptions(), ServeConfig(), UncertaintyOptions()
_TREE = TreeOptions()
_MODEL, _REQUEST = ModelConfig("any"), Request("any")


def main() -> None:
    """Run the command line; exit code 2 for whatever a person can mend."""
    try:
        app()
    except AntiphonError as error:
        sys.exit(_complain(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)


def _complain(error: AntiphonError) -> int:
    print(f"antiphon: {error}", file=sys.stderr)  # noqa: T201
    return 2


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"antiphon {__version__}")
        raise typer.Exit


@app.callback()
def _root(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False) -> None:
    pass


@app.command()
def serve(
    model: ModelName,
    host: str = _SERVE.host,
    port: int = _SERVE.port,
    context: Context = _MODEL.context,
    threads: Threads = _MODEL.threads,
) -> None:
    """Serve a cloud: the large model, for devices to connect to."""
    from antiphon.cloud.server import address, listen
    from antiphon.cloud.server import serve as serve_until_stopped
    from antiphon.cloud.service import Cloud
    from antiphon.models import load

    config = ServeConfig(host, port)
    model_config = ModelConfig(model, context, threads)
    listener = listen(config)
    with listener:
        cloud = Cloud(load(model_config))
        typer.echo(f"antiphon: {cloud.model.name} listens on {address(listener)} (Ctrl-C stops it)")
        sys.stdout.flush()
        try:
            serve_until_stopped(cloud, listener)
        finally:
            cloud.close()
    typer.echo("antiphon: stopped", err=True)


@app.command()
def generate(
    prompt: Annotated[str, typer.Argument(help="The prompt, or - to read it from stdin.")],
    cloud: CloudUrl = None,
    model: Annotated[str | None, typer.Option(help="The device's model, named as in `serve`.")] = None,
    method: Annotated[str, typer.Option(help="One of the README's table, such as cloud, dssd or xcosd-e.")] = _REQUEST.method,
    draft_length: DraftLength = _CHAIN.draft_length,
    draft_precision: DraftPrecision = None,
    precision: Precision = _CHAIN.precision,
    candidates: Annotated[str, typer.Option(help="xcosd-e: candidates a message, or auto.")] = "auto",
    iterations: Annotated[int, typer.Option(help="xcosd-e: messages of candidates at most.")] = _CHAIN.iterations,
    truncate: Annotated[str, typer.Option(help="tslt: the part of a draft law that is kept: k=320, p=0.95 or off.")] = (
        _TREE.truncate
    ),
    wire: Annotated[str, typer.Option(help="tslt: how draft laws are packed: delta, plain or tight.")] = _TREE.wire,
    expansion: Annotated[str, typer.Option(help="tslt-tree: children of each node by depth.")] = _TREE.expansion,
    replacement: Annotated[bool, typer.Option(help="tslt-tree: draw children with replacement.")] = _TREE.replacement,
    uncertain: Annotated[float, typer.Option(help="u-hlm: share of other draws from which a draft counts as uncertain.")] = (
        _HLM.uncertain
    ),
    kept: Annotated[int, typer.Option(help="cu-hlm: tokens of a draft law that are sent.")] = _HLM.kept,
    max_tokens: int = _REQUEST.max_tokens,
    temperature: Temperature = _SAMPLING.temperature,
    top_p: float = _SAMPLING.top_p,
    top_k: int = _SAMPLING.top_k,
    min_p: float = _SAMPLING.min_p,
    repetition_penalty: float = _SAMPLING.repetition_penalty,
    presence_penalty: float = _SAMPLING.presence_penalty,
    frequency_penalty: float = _SAMPLING.frequency_penalty,
    seed: Annotated[int | None, typer.Option(help="Fresh unless given.")] = None,
    stop: Annotated[list[str] | None, typer.Option(help="End the answer before this text; may be repeated.")] = None,
    chat: Annotated[bool, typer.Option(help="Put the prompt into the cloud model's chat template.")] = False,
    check: Annotated[bool, typer.Option(help="Run `cloud` beside it and compare, token for token.")] = False,
    context: Context = _MODEL.context,
    threads: Threads = _MODEL.threads,
    as_json: AsJson = False,
) -> None:
    """Write one answer: text to stdout as it comes, a summary to stderr."""
    from antiphon.methods import find

    sampling = SamplingParams(repetition_penalty, presence_penalty, frequency_penalty, (), temperature, top_k, top_p, min_p)
    given: dict[str, object] = {"draft_length": draft_length, "precision": precision, "uncertain": uncertain, "kept": kept}
    given |= {"candidates": _candidates(candidates), "iterations": iterations}
    given |= {"truncate": truncate, "wire": wire, "expansion": expansion, "replacement": replacement}
    given |= {} if draft_precision is None else {"draft_precision": draft_precision}
    options = find(method).options_from(given)
    text = _read_stdin() if prompt == "-" else prompt
    request = Request(text, method, options, sampling, max_tokens, tuple(stop or ()), chat, seed)
    device_config = None if model is None else ModelConfig(model, context, threads)
    figures = asyncio.run(_generate(request, cloud, device_config, check))
    typer.echo(_summary(figures), err=True)
    if as_json:
        typer.echo(json.dumps(figures))


async def _generate(request: Request, url: str | None, model: ModelConfig | None, checked: bool) -> dict[str, Any]:
    from antiphon.device.answer import Piece
    from antiphon.device.check import check, require_checkable
    from antiphon.device.session import using

    def show(pieces: Sequence[Piece]) -> None:
        typer.echo("".join(piece.text for piece in pieces), nl=False)

    if checked:
        require_checkable(request)
    async with using(request.method, url, model) as (device, connection):
        result = await device.generate(request, connection, show)
        typer.echo()
        figures = result.as_json()
        if checked and connection is not None:
            finding = await check(device, request, result, connection)
            typer.echo(finding.sentence(), err=True)
            figures["check"] = asdict(finding)
    return figures


def _candidates(given: str) -> int:
    if given == "auto":
        return 0
    if not given.isascii() or not given.isdigit() or int(given) == 0:
        raise UsageError(f"candidates must be a number from 1 on, or auto, not {given!r}")
    return int(given)


def _read_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"the prompt on stdin is not UTF-8 (byte {error.start}): convert it first") from error


def _summary(figures: dict[str, Any]) -> str:
    speed, rate = figures["tokens_per_s"], figures["acceptance_rate"]
    parts = [
        f"{figures['method']}: {figures['tokens']} tokens",
        f"{speed:.1f} tokens/s" if speed else "",
        f"first after {1000 * figures['ttft_s']:.0f} ms",
        f"{figures['tokens_per_round']:.2f} tokens a round" if figures["tokens_per_round"] else "",
        f"{figures['trips_per_round']:.2f} trips a round" if (figures["trips_per_round"] or 1) > 1 else "",
        f"{rate:.0%} of tested drafts accepted" if rate is not None else "",
        f"{figures['uplink_bits_per_token']:,.0f} bits up and {figures['downlink_bits_per_token']:,.0f} down a token",
        f"{figures['cloud_passes_per_token']:.2f} cloud passes a token",
        f"ended by {figures['finish_reason']}",
        f"seed {figures['seed']}",
    ]
    return ", ".join(part for part in parts if part)


@app.command()
def demo(
    methods: Annotated[str, typer.Option(help="Methods to run, with commas between.")] = "cloud,dsd,dssd,xcosd,xcosd-e",
    cloud_model: ModelName = "gemma3-270m",
    model: ModelName = "smollm2-135m",
    draft_length: DraftLength = _CHAIN.draft_length,
    max_tokens: int = 40,
    temperature: Temperature = 0.0,
    seed: int = 1,
    threads: Annotated[int, typer.Option(help="Threads of each of the two models.")] = 1,
    picture: Annotated[Path | None, typer.Option(help="Also write the terminal as an SVG file.")] = None,
    as_json: AsJson = False,
) -> None:
    """See it work: two real models on this machine, three prompts, one table."""
    from antiphon.bench.demo import Plan, run

    console = Console(
        stderr=as_json, record=picture is not None, force_terminal=True if picture else None, width=_width(picture)
    )
    names = tuple(name.strip() for name in methods.split(","))
    cloud_config, device_config = ModelConfig(cloud_model, threads=threads), ModelConfig(model, threads=threads)
    sampling = SamplingParams(temperature=temperature)
    rows = run(Plan(cloud_config, device_config, names, draft_length, max_tokens, sampling, seed), console)
    if picture is not None:
        console.save_svg(str(picture), title="antiphon demo")
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row.as_json()))


def _width(picture: Path | None) -> int | None:
    return 110 if picture else None


@app.command()
def doctor(cloud: CloudUrl, model: ModelName, threads: Threads = _MODEL.threads, as_json: AsJson = False) -> None:
    """Can this device model and that cloud work together, and how well?"""
    from rich.table import Table

    report = asyncio.run(_examine(cloud, ModelConfig(model, threads=threads)))
    shown = Table(show_header=False, box=None)
    for name, value in report.rows():
        shown.add_row(name, value)
    console = Console(stderr=as_json)
    console.print(shown)
    console.print(report.verdict)
    if as_json:
        typer.echo(json.dumps({**asdict(report), "fits": report.fits, "verdict": report.verdict}))


async def _examine(url: str | None, model: ModelConfig) -> Any:
    from antiphon.device.doctor import examine
    from antiphon.device.session import using

    async with using("dssd", url, model) as (device, connection):
        if connection is None or url is None:
            raise UsageError("doctor needs a cloud: give --cloud ws://HOST:PORT")
        return await examine(device, connection, url)


@bench.command()
def overhead(rounds: int = 1000, draft_length: DraftLength = _CHAIN.draft_length) -> None:
    """Antiphon's own time a round, without models and link: toy models over loopback, `dssd`."""
    from antiphon.bench.overhead import run

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("rounds", total=rounds)
        found = run(rounds, draft_length, lambda done: progress.update(task, completed=min(done, rounds)))
    typer.echo(
        f"{found.rounds} rounds: Antiphon's own time {found.overhead_median_ms:.3f} ms median, "
        f"{found.overhead_p99_ms:.3f} ms p99 (a whole round {found.round_median_ms:.3f} ms, of it models "
        f"{found.models_median_ms:.3f}, link {found.link_median_ms:.3f})"
    )
    typer.echo(json.dumps(asdict(found)))


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
    draft_length: DraftLength = 2,
    seed: int = 1,
    threads: Annotated[int, typer.Option(help="Threads of each of the two models.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Answer questions by several methods and score them side by side."""
    from antiphon.bench.quality import Plan, run

    configs = ModelConfig(cloud_model, threads=threads), ModelConfig(model, threads=threads)
    sampling = SamplingParams(temperature=temperature)
    names, chosen = _names(methods), _names(tasks)
    report = run(Plan(data, names, chosen, rows, results, *configs, sampling, draft_length, seed), Console(stderr=as_json))
    if as_json:
        typer.echo(json.dumps(report.as_json()))


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
    draft_precision: Annotated[int, typer.Option(help="Bits of a draft probability: 8, 16 or 32.")] = _TREE.draft_precision,
    threads: Annotated[int, typer.Option(help="Threads of each of the two models.")] = 1,
    plot: Annotated[Path | None, typer.Option(help="Also draw a picture, into an .svg, .png or .pdf file.")] = None,
    as_json: AsJson = False,
) -> None:
    """How much of a draft law must cross: mass, acceptance and bytes by truncation; about a minute on one core."""
    from antiphon.bench.plots import draw, require_drawable
    from antiphon.bench.truncation import Plan, run

    configs = ModelConfig(cloud_model, threads=threads), ModelConfig(model, threads=threads)
    sampling = SamplingParams(temperature=temperature)
    plan = Plan(data, *configs, sampling, prompts, positions, _names(keep), children, draft_precision)
    if plot is not None:
        require_drawable(plot)
    report = run(plan, Console(stderr=as_json))
    if as_json:
        typer.echo(json.dumps(report.as_json()))
    if plot is not None:
        draw(report, plot)


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in listed.split(","))

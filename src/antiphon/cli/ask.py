"""`antiphon ask`: an answer from documents of both ends to stdout as it comes, each token marked; a summary to stderr."""

import asyncio
import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from antiphon.cli.arguments import (
    MODEL,
    AsJson,
    Context,
    LibraryEmbedder,
    LibraryKeyFile,
    Temperature,
    Threads,
    WeightTemperature,
)
from antiphon.cli.screen import from_stdin
from antiphon.config import ModelConfig, Request, SamplingParams
from antiphon.errors import UsageError

_GREEDY, _REQUEST = SamplingParams(temperature=0.0), Request("any")


def _shown(default: str, help_text: str) -> Any:
    """An option whose default is the method's: shown here, kept in `MixtureOptions`, which costs time to import."""
    return typer.Option(help=help_text, show_default=default)


def ask(
    question: Annotated[str, typer.Argument(help="The question, or - to read it from stdin.")],
    cloud: Annotated[list[str] | None, typer.Option(help="A cloud's address; may be repeated.")] = None,
    model: Annotated[str | None, typer.Option(help="The device's model, of the same tokenizer as the cloud's.")] = None,
    library: Annotated[
        str | None, typer.Option(help="The device's documents: a library's file, or postgresql://USER@HOST/DATABASE.")
    ] = None,
    library_key_file: LibraryKeyFile = None,
    embedder: LibraryEmbedder = None,
    weight_temperature: WeightTemperature = None,
    method: Annotated[
        str, typer.Option(help="concord, concord-nosystem, concord-nocomm, dragon, drdg-tw, drdg-sw, drcg or crcg.")
    ] = "concord",
    disclosure: Annotated[
        str, typer.Option(help="ids: scores are asked for by token; push: never, the next --chunk comes instead.")
    ] = "ids",
    disclosure_log: Annotated[
        Path | None, typer.Option(help="Add a line of JSON to this file for every frame that leaves, before it does.")
    ] = None,
    kept: Annotated[int | None, _shown("2", "Passages that each end keeps.")] = None,
    form: Annotated[str | None, _shown("question", "What is asked: a question, or a text to go on with.")] = None,
    first: Annotated[int | None, _shown("8", "K0: scores in the evidence of a step.")] = None,
    enough: Annotated[float | None, _shown("0.2", "Only those at least this share as strong as the first.")] = None,
    asked: Annotated[int | None, _shown("4", "k: tokens in a question for more scores.")] = None,
    rounds: Annotated[int | None, _shown("2", "R_max: questions a step at most, then chunks.")] = None,
    epsilon: Annotated[float | None, _shown("0.05", "epsilon: share of ambiguous mass a question may omit.")] = None,
    delta: Annotated[float | None, _shown("0.0", "delta: the certificate's margin, in log-probability.")] = None,
    chunk: Annotated[int | None, _shown("64", "Scores in a chunk.")] = None,
    chunks: Annotated[int | None, _shown("4", "Chunks a step at most, then all scores.")] = None,
    bound: Annotated[str | None, _shown("next", "b, of scores not sent: the next one, or the global maximum.")] = None,
    certificate: Annotated[str | None, _shown("both", "both: bounds from below count too; upper: as in the paper.")] = None,
    wait: Annotated[str | None, _shown("auto", "tau_base: ms to wait for evidence; auto measures.")] = None,
    short: Annotated[float | None, _shown("0.0", "tau_short(Q): ms to wait in debt.")] = None,
    fall: Annotated[str | None, _shown("constant", "tau_short in more debt: constant, linear to 0, halving.")] = None,
    threshold: Annotated[float | None, _shown("3.0", "Q: debt from which on waits are short.")] = None,
    limit: Annotated[float | None, _shown("4.0", "Q_max: debt at most.")] = None,
    repayment: Annotated[float | None, _shown("1.0", "rho_a: debt repaid by a draft of the cloud that is taken.")] = None,
    ahead: Annotated[int | None, _shown("8", "W: steps that a cloud works ahead of the answer.")] = None,
    gate: Annotated[str | None, _shown("1.0", "kappa: 1 is exact, below it tokens are guessed; or off.")] = None,
    realign: Annotated[str | None, _shown("soft", "soft: where drafts differ; hard: after a timeout too.")] = None,
    neither: Annotated[str | None, _shown("dense", "A token that is no end's draft: dense; or local, the paper's.")] = None,
    packing: Annotated[
        str | None, _shown("dense", "dragon: dense, or topp, which cuts off the tail of a distribution.")
    ] = None,
    packing_top_p: Annotated[float | None, _shown("0.9", "dragon: the mass that --packing topp leaves.")] = None,
    max_tokens: int = _REQUEST.max_tokens,
    temperature: Temperature = _GREEDY.temperature,
    top_p: float = _GREEDY.top_p,
    top_k: int = _GREEDY.top_k,
    min_p: float = _GREEDY.min_p,
    repetition_penalty: float = _GREEDY.repetition_penalty,
    presence_penalty: float = _GREEDY.presence_penalty,
    frequency_penalty: float = _GREEDY.frequency_penalty,
    seed: Annotated[int | None, typer.Option(help="Fresh unless given.")] = None,
    stop: Annotated[list[str] | None, typer.Option(help="End the answer before this text; may be repeated.")] = None,
    chat: Annotated[bool, typer.Option(help="Put it all into the chat template of each model.")] = False,
    context: Context = MODEL.context,
    threads: Threads = MODEL.threads,
    plain: Annotated[bool, typer.Option("--plain", help="Do not mark tokens on a terminal.")] = False,
    as_json: AsJson = False,
) -> None:
    """Answer from your documents and a cloud's: text to stdout, each token marked on a terminal, a summary to stderr."""
    from antiphon.cli.ask_output import Ends, answer, summary  # only now: what they need is slow to import
    from antiphon.methods.mixture.options import MixtureOptions
    from antiphon.retrieval.options import SearchOptions

    given: dict[str, Any] = {"kept": kept, "form": form, "first": first, "asked": asked, "epsilon": epsilon, "delta": delta}
    given |= {"enough": enough, "rounds": _rounds(rounds, disclosure), "chunk": chunk, "chunks": chunks, "bound": bound}
    given |= {"wait": _wait(wait), "short": _seconds(short), "threshold": threshold, "limit": limit, "repayment": repayment}
    given |= {"ahead": ahead, "gate": _gate(gate), "realign": realign, "packing": packing, "top_p": packing_top_p}
    given |= {"certificate": certificate, "fall": fall, "neither": neither}
    options = MixtureOptions(**{name: value for name, value in given.items() if value is not None})
    sampling = SamplingParams(repetition_penalty, presence_penalty, frequency_penalty, (), temperature, top_k, top_p, min_p)
    text = from_stdin("question") if question == "-" else question
    request = Request(text, method, options, sampling, max_tokens, tuple(stop or ()), chat, seed)
    own_model = None if model is None else ModelConfig(model, context, threads)
    search = SearchOptions(temperature=weight_temperature)
    ends = Ends(tuple(cloud or ()), own_model, library, library_key_file, disclosure_log, embedder, search)
    figures = asyncio.run(answer(request, ends, plain))
    typer.echo(summary(figures), err=True)
    if as_json:
        typer.echo(json.dumps(figures))


def _rounds(given: int | None, disclosure: str) -> int | None:
    """R_max, which is 0 where no ids may be asked for. Raises UsageError."""
    if disclosure not in ("ids", "push"):
        raise UsageError(f"disclosure must be ids or push, not {disclosure!r}")
    if disclosure == "push" and given:
        raise UsageError(f"--disclosure push asks for no ids, so --rounds {given} does not go with it: leave one of them out")
    return 0 if disclosure == "push" else given


def _gate(given: str | None) -> float | None:
    """kappa; infinity is off. Raises UsageError."""
    return math.inf if given == "off" else _number("gate", given, "off")


def _wait(given: str | None) -> float | None:
    """tau_base in seconds; 0 is auto. Raises UsageError."""
    if given == "auto":
        return 0.0
    milliseconds = _number("wait", given, "auto")
    if milliseconds is not None and not milliseconds > 0:
        raise UsageError(f"wait must be a number of ms above 0, or auto, not {given}")
    return _seconds(milliseconds)


def _number(name: str, given: str | None, word: str) -> float | None:
    try:
        return None if given is None else float(given)
    except ValueError as error:
        raise UsageError(f"{name} must be a number, or {word}, not {given!r}") from error


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000

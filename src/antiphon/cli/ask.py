"""`antiphon ask`: an answer from documents of both ends to stdout as it comes, each token marked; a summary to stderr."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from antiphon.cli.arguments import (
    ANSWER,
    DOCUMENTS,
    ENDS,
    METHOD,
    MODEL,
    AnswerAsJson,
    Context,
    DeviceModel,
    FrequencyPenalty,
    LibraryEmbedder,
    LibraryKeyFile,
    MaxTokens,
    MinP,
    PresencePenalty,
    RepetitionPenalty,
    Seed,
    Stops,
    Temperature,
    Threads,
    TopK,
    TopP,
    WeightTemperature,
)
from antiphon.cli.method_options import OptionTexts, method_options
from antiphon.cli.screen import from_stdin
from antiphon.config import ModelConfig, Request, SamplingParams
from antiphon.errors import UsageError

if TYPE_CHECKING:
    from antiphon.methods.base import Method

_GREEDY, _REQUEST = SamplingParams(temperature=0.0), Request("any")


def ask(
    question: Annotated[str, typer.Argument(help="The question, or - to read it from stdin.")],
    cloud: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="A cloud's address; repeatable.", rich_help_panel=ENDS)
    ] = None,
    model: DeviceModel = None,
    library: Annotated[
        str | None, typer.Option(metavar="PLACE", help="A file, or postgresql://...", rich_help_panel=DOCUMENTS)
    ] = None,
    library_key_file: LibraryKeyFile = None,
    embedder: LibraryEmbedder = None,
    weight_temperature: WeightTemperature = None,
    context: Context = MODEL.context,
    threads: Threads = MODEL.threads,
    method: Annotated[str, typer.Option(help="See `antiphon methods`.", rich_help_panel=METHOD)] = "concord",
    option: OptionTexts = None,
    disclosure: Annotated[str, typer.Option(help="ids; push: no token is asked for.", rich_help_panel=METHOD)] = "ids",
    disclosure_log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Gets all that leaves, before it does.", rich_help_panel=METHOD),
    ] = None,
    temperature: Temperature = _GREEDY.temperature,
    top_p: TopP = _GREEDY.top_p,
    top_k: TopK = _GREEDY.top_k,
    min_p: MinP = _GREEDY.min_p,
    repetition_penalty: RepetitionPenalty = _GREEDY.repetition_penalty,
    presence_penalty: PresencePenalty = _GREEDY.presence_penalty,
    frequency_penalty: FrequencyPenalty = _GREEDY.frequency_penalty,
    seed: Seed = None,
    max_tokens: MaxTokens = _REQUEST.max_tokens,
    stop: Stops = None,
    chat: Annotated[bool, typer.Option("--chat", help="Use each model's chat template.", rich_help_panel=ANSWER)] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Do not mark tokens on a terminal.", rich_help_panel=ANSWER)] = False,
    as_json: AnswerAsJson = False,
) -> None:
    """Answer from your documents and a cloud's: text to stdout, each token marked on a terminal, a summary to stderr."""
    from antiphon.cli.ask_output import (  # only now: what they need is slow to import
        Ends,
        answer,
        method_with_documents,
        summary,
    )
    from antiphon.retrieval.options import SearchOptions

    options = _options(method_with_documents(method), option, disclosure)
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


def _options(method: "Method", given: Sequence[str] | None, disclosure: str) -> Any:
    """The method's options; with the disclosure `push` no token is asked for by its id. Raises UsageError."""
    if disclosure not in ("ids", "push"):
        raise UsageError(f"disclosure must be ids or push, not {disclosure!r}")
    options = method_options(method, given)
    if disclosure == "ids":
        return options
    if any(text.partition("=")[0].strip() == "questions" for text in given or ()) and options.questions:
        raise UsageError("--disclosure push asks for no ids, so questions above 0 do not go with it: leave one of them out")
    return replace(options, questions=0)

"""`antiphon generate`: the answer to stdout as it comes, a summary to stderr."""

import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from antiphon.cli.arguments import (
    ANSWER,
    METHOD,
    MODEL,
    AnswerAsJson,
    CloudUrl,
    Context,
    DeviceModel,
    DraftLength,
    FrequencyPenalty,
    MaxTokens,
    MinP,
    OnLoss,
    OnReturn,
    Patience,
    PresencePenalty,
    RepetitionPenalty,
    Seed,
    Stops,
    Temperature,
    Threads,
    TopK,
    TopP,
)
from antiphon.cli.method_options import OptionTexts, method_options
from antiphon.cli.screen import from_stdin
from antiphon.config import ModelConfig, Request, SamplingParams
from antiphon.errors import UsageError

if TYPE_CHECKING:
    from antiphon.methods.base import Method

_SAMPLING, _REQUEST = SamplingParams(), Request("any")


def generate(
    prompt: Annotated[str, typer.Argument(help="The prompt, or - to read it from stdin.")],
    cloud: CloudUrl = None,
    model: DeviceModel = None,
    context: Context = MODEL.context,
    threads: Threads = MODEL.threads,
    on_loss: OnLoss = _REQUEST.on_loss,
    on_return: OnReturn = _REQUEST.on_return,
    method: Annotated[str, typer.Option(help="See `antiphon methods`.", rich_help_panel=METHOD)] = _REQUEST.method,
    draft_length: DraftLength = None,
    patience: Patience = None,
    option: OptionTexts = None,
    temperature: Temperature = _SAMPLING.temperature,
    top_p: TopP = _SAMPLING.top_p,
    top_k: TopK = _SAMPLING.top_k,
    min_p: MinP = _SAMPLING.min_p,
    repetition_penalty: RepetitionPenalty = _SAMPLING.repetition_penalty,
    presence_penalty: PresencePenalty = _SAMPLING.presence_penalty,
    frequency_penalty: FrequencyPenalty = _SAMPLING.frequency_penalty,
    seed: Seed = None,
    max_tokens: MaxTokens = _REQUEST.max_tokens,
    stop: Stops = None,
    chat: Annotated[bool, typer.Option("--chat", help="Use the cloud model's chat template.", rich_help_panel=ANSWER)] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Run `cloud` beside it and compare the tokens.", rich_help_panel=ANSWER)
    ] = False,
    as_json: AnswerAsJson = False,
) -> None:
    """Write one answer: text to stdout as it comes, a summary to stderr."""
    sampling = SamplingParams(repetition_penalty, presence_penalty, frequency_penalty, (), temperature, top_k, top_p, min_p)
    options = method_options(_method(method), option, draft_length=draft_length, patience=patience)
    text = from_stdin("prompt") if prompt == "-" else prompt
    request = Request(text, method, options, sampling, max_tokens, tuple(stop or ()), chat, seed, on_loss, on_return)
    device_config = None if model is None else ModelConfig(model, context, threads)
    figures = asyncio.run(_generate(request, cloud, device_config, check))
    typer.echo(_summary(figures), err=True)
    if as_json:
        typer.echo(json.dumps(figures))


def _method(name: str) -> "Method":
    """The method of this name. Raises UsageError, with the command that runs it where it answers from documents."""
    from antiphon.methods import WITH_DOCUMENTS, find

    if name in WITH_DOCUMENTS:
        raise UsageError(f"the method {name} answers from documents: `antiphon ask` runs it")
    return find(name, mixes=False)


async def _generate(request: Request, url: str | None, model: ModelConfig | None, checked: bool) -> dict[str, Any]:
    from antiphon.cli.answer_screen import answer_screen
    from antiphon.device.check import check, require_checkable
    from antiphon.device.fitting import require_given, require_loss
    from antiphon.device.generate import Device

    if checked:
        require_checkable(request)
    method, clouds = _method(request.method), () if url is None else (url,)
    require_given(method, model=model, clouds=clouds, library=None)
    require_loss(method, request)
    needed = model if method.drafts else None  # one that the method does not need takes time to load
    async with Device(needed, cloud=clouds) as device:
        with answer_screen(keeps=request.on_return == "keep") as screen:
            result = await device.generate(request, show=screen.show)
        typer.echo()
        figures = result.as_json()
        if checked and method.cloud is not None:
            (connection,) = await device.connect()
            finding = await check(device, request, result, connection)
            typer.echo(finding.sentence(), err=True)
            figures["check"] = {"equal": finding.equal, **asdict(finding)}
    return figures


def _summary(figures: dict[str, Any]) -> str:
    speed, passes = figures["tokens_per_s"], figures["cloud_passes_per_token"]
    parts = [
        f"{figures['method']}: {figures['tokens']} tokens",
        "exact" if figures["exact"] else "not exact",
        f"{speed:.1f} tokens/s" if speed else "",
        f"first after {1000 * figures['ttft_s']:.0f} ms" if figures["ttft_s"] is not None else "",
        f"{figures['tokens_per_round']:.2f} tokens a round" if figures["tokens_per_round"] else "",
        f"{figures['trips_per_round']:.2f} trips a round" if (figures["trips_per_round"] or 1) > 1 else "",
        _alone(figures),
        _drafts(figures),
        f"{figures['uplink_bits_per_token']:,.0f} bits up and {figures['downlink_bits_per_token']:,.0f} down a token"
        if figures["tokens"]
        else "",
        f"{passes:.2f} cloud passes a token" if passes is not None else "",
        f"ended by {figures['finish_reason']}",
        f"seed {figures['seed']}",
    ]
    return ", ".join(part for part in parts if part)


def _drafts(figures: dict[str, Any]) -> str:
    """What became of drafts. Of a stream all are counted: it has no rounds, and the device may make more than are tested."""
    rate = figures["acceptance_rate"]
    if rate is None:
        return ""
    if figures["rounds"]:
        return f"{rate:.0%} of tested drafts accepted"
    return f"{figures['drafted']} drafts sent, {figures['accepted']} of {figures['tested']} tested accepted"


def _alone(figures: dict[str, Any]) -> str:
    """What the device wrote while the link was lost; none of an answer that it was to write alone."""
    written, revised, kept = figures["provisional"], figures["revised"], figures["kept"]
    if written:
        return f"{written} tokens were written without the cloud, and {revised} of them revised"
    return f"{kept} tokens were written without the cloud" if kept else ""

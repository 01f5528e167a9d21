"""One question of `antiphon ask`: the answer as it comes, its figures, and a summary of them."""

from collections.abc import Mapping
from typing import Any

import typer

from antiphon.cli.marks import Marking
from antiphon.config import Request
from antiphon.core.mixture.weights import weights_of
from antiphon.device.answer import Result
from antiphon.device.assembly import Mixing, MixingConfig, mixing
from antiphon.methods import find
from antiphon.methods.effects import Kind
from antiphon.methods.mixture.device import MixtureDevice
from antiphon.models.base import Model

HERE = "device"
"""What this end is called among the clouds' addresses."""


async def answer(request: Request, config: MixingConfig, plain: bool) -> dict[str, Any]:
    """Write an answer. Its figures, with the mark of each token and where its passages came from. Raises AntiphonError."""
    marking = Marking(plain=plain)
    async with mixing(request.method, config) as ends:
        marking.explain()
        result = await ends.device.generate(request, ends.connections, marking.show)
        typer.echo()
        figures = result.as_json() | {"confirmed": _share(result, Kind.CONFIRMED), "lost": _lost(request, result)}
        return figures | _sources(request, ends, result) | {"marks": _marks(result, marking, ends.device.model)}


def summary(figures: Mapping[str, Any]) -> str:
    """One line for a person."""
    speed = figures["tokens_per_s"]
    parts = [
        f"{figures['method']}: {_tokens(figures)}",
        "exact" if figures["exact"] else "not exact",
        f"{figures['uplink_bits_per_token'] / 8:,.1f} bytes up and {figures['downlink_bits_per_token'] / 8:,.1f} down a token"
        if figures["tokens"]
        else "",
        f"{speed:.1f} tokens/s" if speed else "",
        f"waited {figures['waited_s']:.2f} s",
        f"passages: {_passages(figures)}",
        *(_left_out(end, count) for end, count in figures["passages"]["left_out"].items()),
        "a cloud was lost on the way" if figures["lost"] else "",
        f"ended by {figures['finish_reason']}",
        f"seed {figures['seed']}",
    ]
    return ", ".join(part for part in parts if part)


def _tokens(figures: Mapping[str, Any]) -> str:
    tokens = figures["tokens"]
    shares = [f"{figures[kind]:.0%} {kind}" for kind in ("local", "certain", "confirmed", "changed")] if tokens else []
    return f"{tokens} token{'' if tokens == 1 else 's'}" + (f" ({', '.join(shares)})" if shares else "")


def _passages(figures: Mapping[str, Any]) -> str:
    counts = {HERE: len(figures["passages"][HERE]), **figures["passages"]["clouds"]}
    return ", ".join(_counted(end, count, figures["weights"]) for end, count in counts.items())


def _left_out(end: str, count: int) -> str:
    """The note about passages that the model of an end has no room for."""
    whose, ways = (
        ("yours", "--context, or a library with fewer --words") if end == HERE else (f"those at {end}", "--max-tokens")
    )
    return f"{count} more of {whose} did not fit its model's context ({ways})" if count else ""


def _counted(end: str, count: int | None, weights: Mapping[str, float]) -> str:
    where = "here" if end == HERE else f"at {end}"
    if not count:
        why = " (your library has nothing of this question)" if end == HERE else ""
        return f"{'an unknown number' if count is None else 'none'} {where}{why}"
    return f"{count} {where}" + (f" (weight {weights[end]:.2f})" if end in weights else "")


def _sources(request: Request, ends: Mixing, result: Result) -> dict[str, Any]:
    """Where the passages of this end stand, how many the clouds found, and what each end's weigh where they are weighed."""
    looked = result.looked
    own = [
        {"source": one.passage.source, "place": str(one.passage.place), "title": one.passage.title, "score": one.score}
        for one in (looked.found if looked else ())
    ]
    masses = {} if looked is None else {HERE: looked.log_mass}
    masses |= {url: said.log_mass for url, said in ends.found.items()}
    weighed = issubclass(find(request.method).device, MixtureDevice)
    weights = dict(zip(masses, weights_of(list(masses.values())), strict=True)) if weighed else {}
    counts = {url: ends.found[url].passages if url in ends.found else None for url in ends.clouds}
    left_out = {HERE: looked.left_out if looked else 0} | {url: said.left_out for url, said in ends.found.items()}
    return {"passages": {HERE: own, "clouds": counts, "left_out": left_out}, "weights": weights}


def _lost(request: Request, result: Result) -> bool:
    return find(request.method).cloud is not None and result.closed is None


def _share(result: Result, kind: Kind) -> float | None:
    return result.answer.kinds[kind] / result.tokens if result.tokens else None


def _marks(result: Result, marking: Marking, model: Model | None) -> list[dict[str, Any]]:
    pieces = () if model is None else model.vocabulary.pieces
    kinds = marking.kinds(result.answer.kinds)
    return [
        {"id": token, "text": pieces[token].decode(errors="replace"), "mark": None if kind is None else kind.value}
        for token, kind in zip(result.token_ids, kinds, strict=True)
    ]

"""One question of `antiphon ask`: the answer as it comes, its figures, and a summary of them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from antiphon.cli.marks import Marking
from antiphon.config import ModelConfig, Request
from antiphon.core.mixture.weights import weights_of
from antiphon.device.answer import Result
from antiphon.device.fitting import require_given
from antiphon.device.generate import Device
from antiphon.errors import UsageError
from antiphon.methods import WITH_DOCUMENTS, WITHOUT_DOCUMENTS, find
from antiphon.methods.base import Method
from antiphon.methods.effects import Kind
from antiphon.methods.mixture.device import MixtureDevice
from antiphon.models.base import Model
from antiphon.retrieval.index import Index
from antiphon.retrieval.opening import open_library
from antiphon.retrieval.options import SearchOptions

HERE = "device"
"""What this end is called among the clouds' addresses."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Who takes part: addresses of clouds, the device's model, its library with its key's file, its disclosure log.

    embedder: a folder as of `OnnxEmbedder`, to search by vectors too. search: how passages are ranked and weighed.
    """

    clouds: tuple[str, ...]
    model: ModelConfig | None
    library: str | None
    key_file: Path | None = None
    disclosure_log: Path | None = None
    embedder: Path | None = None
    search: SearchOptions | None = None


async def answer(request: Request, ends: Ends, plain: bool) -> dict[str, Any]:
    """Write an answer. Its figures, with the mark of each token and where its passages came from. Raises AntiphonError."""
    method, marking = method_with_documents(request.method), Marking(plain=plain)
    clouds = () if method.cloud is None else ends.clouds
    require_given(method, model=ends.model, clouds=clouds, library=ends.library)
    with _library(ends) as library:
        async with Device(ends.model, cloud=clouds, library=library, disclosure_log=ends.disclosure_log) as device:
            await device.connect()
            marking.explain()
            result = await device.generate(request, show=marking.show)
            typer.echo()
            figures = result.as_json() | {"confirmed": _share(result, Kind.CONFIRMED), "lost": _lost(request, result)}
            return figures | _sources(request, device, result) | {"marks": _marks(result, marking, device.model)}


@contextmanager
def _library(ends: Ends) -> Iterator[Index | None]:
    """The device's library, if one was named."""
    if ends.library is None or ends.model is None:
        yield None
        return
    key, embedder, threads = ends.key_file, ends.embedder, ends.model.threads
    with open_library(ends.library, key_file=key, embedder=embedder, threads=threads, options=ends.search) as library:
        yield library


def method_with_documents(name: str) -> Method:
    """The method of this name. Raises UsageError if it mixes no documents."""
    if name in WITHOUT_DOCUMENTS:
        known = ", ".join(WITH_DOCUMENTS)
        raise UsageError(f"the method {name} reads no documents: `antiphon generate` runs it; ask has {known}")
    return find(name, mixes=True)


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


def _sources(request: Request, device: Device, result: Result) -> dict[str, Any]:
    """Where the passages of this end stand, how many the clouds found, and what each end's weigh where they are weighed."""
    looked, found = result.looked, device.clouds.found
    own = [
        {"source": one.passage.source, "place": str(one.passage.place), "title": one.passage.title, "score": one.score}
        for one in (looked.found if looked else ())
    ]
    masses = {} if looked is None else {HERE: looked.log_mass}
    masses |= {url: said.log_mass for url, said in found.items()}
    weighed = issubclass(find(request.method).device, MixtureDevice)
    weights = dict(zip(masses, weights_of(list(masses.values())), strict=True)) if weighed else {}
    counts = {url: found[url].passages if url in found else None for url in device.clouds.addresses}
    left_out = {HERE: looked.left_out if looked else 0} | {url: said.left_out for url, said in found.items()}
    return {"passages": {HERE: own, "clouds": counts, "left_out": left_out}, "weights": weights}


def _lost(request: Request, result: Result) -> bool:
    """Whether a cloud was lost on the way, be it that it came back."""
    return find(request.method).cloud is not None and (result.closed is None or result.answer.resumed > 0)


def _share(result: Result, kind: Kind) -> float | None:
    return result.answer.kinds[kind] / result.tokens if result.tokens else None


def _marks(result: Result, marking: Marking, model: Model | None) -> list[dict[str, Any]]:
    pieces = () if model is None else model.vocabulary.pieces
    kinds = marking.kinds(result.answer.kinds)
    return [
        {"id": token, "text": pieces[token].decode(errors="replace"), "mark": None if kind is None else kind.value}
        for token, kind in zip(result.token_ids, kinds, strict=True)
    ]

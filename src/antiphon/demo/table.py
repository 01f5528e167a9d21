"""`antiphon demo`: a cloud process and a device on this machine, three prompts, several methods, one table."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from antiphon.config import ModelConfig, Request, SamplingParams
from antiphon.demo.cloud_process import cloud_process, connected
from antiphon.device.answer import Piece, Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods import find
from antiphon.methods.base import Method
from antiphon.methods.effects import Kind
from antiphon.models import load

PROMPTS = (
    "The three most important things to know about the moon are",
    "To bake a simple loaf of bread, you first",
    "Once upon a time, in a small village by the sea,",
)
STYLES = {
    Kind.ACCEPTED: "green",
    Kind.CORRECTION: "bold red",
    Kind.BONUS: "cyan",
    Kind.STREAMED: "white",
    Kind.LOCAL: "yellow",
}
MARKS = {Kind.ACCEPTED: "", Kind.CORRECTION: "~", Kind.BONUS: "+", Kind.STREAMED: "", Kind.LOCAL: ""}


@dataclass(frozen=True, slots=True)
class Plan:
    """What the demo runs."""

    cloud_model: ModelConfig
    device_model: ModelConfig
    methods: tuple[str, ...]
    draft_length: int
    max_tokens: int
    sampling: SamplingParams
    seed: int


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one method, over all prompts."""

    method: str
    exact: bool
    results: tuple[Result, ...]

    def as_json(self) -> dict[str, object]:
        """Sums and means over the prompts, by the names of `generate --json`."""
        figures = [result.as_json() for result in self.results]
        means = {name: _mean([row[name] for row in figures]) for name in _MEANS}
        return {
            "method": self.method,
            "exact": self.exact,
            "text": [row["text"] for row in figures],
            "finish_reason": [row["finish_reason"] for row in figures],
            "tokens": sum(result.tokens for result in self.results),
            "rounds": sum(result.answer.rounds for result in self.results) or None,
            **means,
        }


_MEANS = (
    "tokens_per_round",
    "trips_per_round",
    "acceptance_rate",
    "uplink_bits_per_token",
    "downlink_bits_per_token",
    *(f"{way}_{part}_bits_per_token" for way in ("uplink", "downlink") for part in ("payload", "closed_form", "framing")),
    "ttft_s",
    "itl_p50_s",
    "itl_p90_s",
    "tokens_per_s",
    "cloud_passes_per_token",
)


def run(plan: Plan, console: Console) -> list[Row]:
    """Start a cloud, write every answer, show it all. Raises one of `antiphon.errors`."""
    for name in plan.methods:  # what cannot be is said before the first answer
        _request(plan, find(name, mixes=False), PROMPTS[0])
    names = f"{plan.device_model.name} on the device, {plan.cloud_model.name} in the cloud"
    console.print(f"[bold]Antiphon[/bold]: {names}, one answer.\n")
    with ExitStack() as stack:
        with Console(stderr=True).status("starting the cloud and loading two models ..."):
            url = stack.enter_context(cloud_process(plan.cloud_model))
            device = Device(load(plan.device_model))
            stack.callback(device.close)
        return asyncio.run(_answers(plan, device, url, console))


async def _answers(plan: Plan, device: Device, url: str, console: Console) -> list[Row]:
    async with connected(device, url) as connection:
        console.print(_legend(console))
        rows = [await _row(plan, name, device, connection, console) for name in plan.methods]
    console.print()
    console.print(table(rows))
    console.print(bits_table(rows))
    if plan.sampling.temperature == 0 and (finding := same_tokens(rows)):
        console.print(finding)
    for sentence in beside_the_stream(rows):
        console.print(sentence, highlight=False)
    return rows


async def _row(plan: Plan, name: str, device: Device, connection: Connection, console: Console) -> Row:
    method = find(name)
    console.print(f"\n[bold]{name}[/bold]: {method.summary}")
    results = []
    for prompt in PROMPTS:
        results.append(await device.generate(_request(plan, method, prompt), connection, _Line(console, prompt).show))
        console.print()
    return Row(name, method.exact, tuple(results))


def _request(plan: Plan, method: Method, prompt: str) -> Request:
    options = method.options_from({"draft_length": plan.draft_length})
    return Request(prompt, method.name, options, plan.sampling, plan.max_tokens, seed=plan.seed)


class _Line:
    """A line of text that grows token by token, wrapped at the console's width."""

    def __init__(self, console: Console, prompt: str) -> None:
        self._console, self._column = console, 0
        self._put(f"  {prompt}", "dim")

    def show(self, pieces: Sequence[Piece]) -> None:
        """Add what a round brought."""
        for piece in filter(lambda piece: piece.text, pieces):
            mark = "" if self._console.is_terminal else MARKS[piece.origin]
            self._put(mark + piece.text.replace("\n", " "), STYLES[piece.origin])

    def _put(self, text: str, style: str) -> None:
        if self._column and self._column + cell_len(text) > self._console.width:
            self._console.print("\n    ", end="")
            self._column, text = 4, text.lstrip(" ")
        self._console.print(Text(text, style=style), end="", soft_wrap=True)
        self._column += cell_len(text)


def _legend(console: Console) -> Text:
    drafted = {Kind.ACCEPTED: "drafted and accepted", Kind.CORRECTION: "correction", Kind.BONUS: "bonus"}
    names = {**drafted, Kind.STREAMED: "streamed"}
    legend = Text("tokens: ")
    for kind, name in names.items():
        mark = "" if console.is_terminal or not MARKS[kind] else f" ({MARKS[kind]})"
        legend.append(name + mark, style=STYLES[kind]).append("  ")
    return legend


_COLUMNS = (
    # name of the figure, heading, format, factor
    ("tokens", "tokens", ".0f", 1.0),
    ("tokens_per_round", "per round", ".2f", 1.0),
    ("acceptance_rate", "accepted", ".2f", 1.0),
    ("uplink_bits_per_token", "bits up", "", 1.0),
    ("downlink_bits_per_token", "bits down", "", 1.0),
    ("ttft_s", "first ms", ".0f", 1000.0),
    ("itl_p50_s", "itl p50", ".0f", 1000.0),
    ("itl_p90_s", "itl p90", ".0f", 1000.0),
    ("tokens_per_s", "tok/s", ".1f", 1.0),
    ("cloud_passes_per_token", "passes", ".2f", 1.0),
)


_BITS_COLUMNS = (
    ("uplink_payload_bits_per_token", "up payload", "", 1.0),
    ("uplink_closed_form_bits_per_token", "up form", "", 1.0),
    ("uplink_framing_bits_per_token", "up framing", "", 1.0),
    ("downlink_payload_bits_per_token", "down payload", "", 1.0),
    ("downlink_closed_form_bits_per_token", "down form", "", 1.0),
    ("downlink_framing_bits_per_token", "down framing", "", 1.0),
    ("trips_per_round", "trips a_round", ".2f", 1.0),
)


def table(rows: Sequence[Row]) -> Table:
    """The figures of the methods, side by side; bits, milliseconds and cloud passes are a token."""
    return _table(rows, "Means over the prompts, all of their tokens; bits and cloud passes are a token", _COLUMNS)


def bits_table(rows: Sequence[Row]) -> Table:
    """The bits that crossed beside the methods' closed forms, and what wrapped them."""
    return _table(rows, "Bits a token: what methods sent, their closed forms, and framing", _BITS_COLUMNS)


def _table(rows: Sequence[Row], title: str, columns: Sequence[tuple[str, str, str, float]]) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    shown.title, shown.title_justify = title, "left"
    shown.add_column("method")
    for _, heading, _, _ in columns:
        shown.add_column(heading.replace(" ", "\n").replace("_", " "), justify="right")
    for row in rows:
        figures = row.as_json()
        shown.add_row(row.method, *(_cell(figures[name], form, factor) for name, _, form, factor in columns))
    return shown


def _cell(value: object, form: str, factor: float) -> str:
    if value is None:
        return "-"
    number = factor * float(str(value))
    return format(number, form) if form else _short(number)


def _short(number: float) -> str:
    """Three digits or so, with k or M for thousands and millions."""
    for bound, unit in ((1e6, "M"), (1e4, "k")):
        if number >= bound:
            return f"{number / (1e6 if unit == 'M' else 1e3):.3g}{unit}"
    return f"{number:.0f}"


def same_tokens(rows: Sequence[Row]) -> str:
    """Which methods wrote the very tokens of `cloud`, as every exact one must at temperature 0."""
    reference = next((row for row in rows if row.method == "cloud"), None)
    if reference is None:
        return ""
    wanted = [result.token_ids for result in reference.results]
    others = [row for row in rows if row is not reference and row.exact]
    equal = [row.method for row in others if [result.token_ids for result in row.results] == wanted]
    different = [row.method for row in others if row.method not in equal]
    parts = [f"{', '.join(equal)}: the very tokens of cloud" if equal else ""]
    parts += [f"{', '.join(different)}: other tokens than cloud (run `generate --check` to see why)" if different else ""]
    return "; ".join(part for part in parts if part)


def beside_the_stream(rows: Sequence[Row]) -> list[str]:
    """How many times as fast as `cloud` methods are in which neither end waits for the other."""
    speeds = {row.method: _mean([result.as_json()["tokens_per_s"] for result in row.results]) for row in rows}
    streams = [row.method for row in rows if row.method != "cloud" and not any(result.answer.rounds for result in row.results)]
    stream = speeds.get("cloud")
    told = [(name, speed) for name in streams if (speed := speeds[name]) is not None and find(name).cloud is not None]
    return [f"{name}: {speed / stream:.2f} times the tokens a second of cloud" for name, speed in told] if stream else []


def _mean(values: Sequence[object]) -> float | None:
    known = [float(str(value)) for value in values if value is not None]
    return sum(known) / len(known) if known else None

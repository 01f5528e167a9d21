"""`antiphon demo`: a cloud process and a device on this machine, three prompts, several methods, one table."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from antiphon.config import ModelConfig, Request, SamplingParams
from antiphon.device.answer import Piece, Result
from antiphon.device.connection import Connection, connect
from antiphon.device.generate import Device
from antiphon.errors import LinkError, ModelError
from antiphon.methods import find
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
START_SECONDS = 120.0


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
            "rounds": sum(result.answer.rounds for result in self.results if result.answer.drafted) or None,
            **means,
        }


_MEANS = (
    "tokens_per_round",
    "acceptance_rate",
    "uplink_bits_per_token",
    "downlink_bits_per_token",
    "ttft_s",
    "itl_p50_s",
    "itl_p90_s",
    "tokens_per_s",
    "cloud_passes_per_token",
)


def run(plan: Plan, console: Console) -> list[Row]:
    """Start a cloud, write every answer, show it all. Raises one of `antiphon.errors`."""
    for name in plan.methods:
        find(name)
    console.print(
        f"[bold]Antiphon[/bold]: {plan.device_model.name} on the device and {plan.cloud_model.name} in the cloud "
        "write one answer together.\n"
    )
    with console.status("starting the cloud and loading two models ..."), _cloud_process(plan.cloud_model) as url:
        device = Device(load(plan.device_model))
        try:
            return asyncio.run(_answers(plan, device, url, console))
        finally:
            device.close()


async def _answers(plan: Plan, device: Device, url: str, console: Console) -> list[Row]:
    async with _connected(device, url) as connection:
        console.print(_legend(console))
        rows = [await _row(plan, name, device, connection, console) for name in plan.methods]
    console.print(table(rows))
    return rows


async def _row(plan: Plan, name: str, device: Device, connection: Connection, console: Console) -> Row:
    method = find(name)
    console.print(f"\n[bold]{name}[/bold]: {method.summary}")
    results = []
    for prompt in PROMPTS:
        options = method.options(plan.draft_length) if method.drafts and method.cloud else method.options()
        request = Request(prompt, name, options, plan.sampling, plan.max_tokens, seed=plan.seed)
        console.print(Text(f"  {prompt}", style="dim"), end="")
        results.append(await device.generate(request, connection, _printer(console)))
        console.print()
    return Row(name, method.exact, tuple(results))


def _printer(console: Console):  # type: ignore[no-untyped-def] # noqa: ANN202
    def show(pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            mark = "" if console.is_terminal else MARKS[piece.kind]
            console.print(Text(mark + piece.text.replace("\n", " "), style=STYLES[piece.kind]), end="", soft_wrap=True)

    return show


def _legend(console: Console) -> Text:
    names = {Kind.ACCEPTED: "drafted and accepted", Kind.CORRECTION: "correction", Kind.BONUS: "bonus"}
    legend = Text("tokens: ")
    for kind, name in names.items():
        mark = "" if console.is_terminal or not MARKS[kind] else f" ({MARKS[kind]})"
        legend.append(name + mark, style=STYLES[kind]).append("  ")
    return legend


def table(rows: Sequence[Row]) -> Table:
    """The figures of the methods, side by side."""
    shown = Table(title="Means over the prompts", title_justify="left")
    heads = ("method", "exact", "tokens", "tokens/round", "accepted", "up bit/tok", "down bit/tok", "first tok ms")
    for head in (*heads, "itl p50/p90 ms", "tok/s", "cloud passes/tok"):
        shown.add_column(head, justify="left" if head == "method" else "right")
    for row in rows:
        shown.add_row(*_cells(row))
    return shown


def _cells(row: Row) -> list[str]:
    figures = row.as_json()

    def cell(name: str, spec: str, scale: float = 1.0) -> str:
        value = figures[name]
        return "-" if value is None else format(scale * float(str(value)), spec)

    return [
        row.method,
        "yes" if row.exact else "no",
        cell("tokens", ".0f"),
        cell("tokens_per_round", ".2f"),
        cell("acceptance_rate", ".2f"),
        cell("uplink_bits_per_token", ",.0f"),
        cell("downlink_bits_per_token", ",.0f"),
        cell("ttft_s", ".0f", 1000),
        cell("itl_p50_s", ".0f", 1000) + "/" + cell("itl_p90_s", ".0f", 1000),
        cell("tokens_per_s", ".1f"),
        cell("cloud_passes_per_token", ".2f"),
    ]


def _mean(values: Sequence[object]) -> float | None:
    known = [float(str(value)) for value in values if value is not None]
    return sum(known) / len(known) if known else None


@contextmanager
def _cloud_process(config: ModelConfig) -> Iterator[str]:
    """A cloud in a process of its own; gives its address once it listens."""
    command = [sys.executable, "-m", "antiphon", "serve", "--model", config.name, "--port", "0"]
    command += ["--context", str(config.context), "--threads", str(config.threads)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603
    try:
        yield _address(process)
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()


def _address(process: "subprocess.Popen[str]") -> str:
    if process.stdout is None or process.stderr is None:
        raise LinkError("the cloud process has no output to read its address from")
    for line in process.stdout:
        if "ws://" in line:
            return line[line.index("ws://") :].split()[0]
    raise ModelError(process.stderr.read().strip().removeprefix("antiphon: ") or "the cloud did not start")


@asynccontextmanager
async def _connected(device: Device, url: str) -> AsyncIterator[Connection]:
    connection = await connect(url, device.model, device.worker)
    try:
        yield connection
    finally:
        await connection.close()

"""`antiphon-lab link`."""

import asyncio
import signal
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from antiphon.errors import UsageError

if TYPE_CHECKING:
    from antiphon_lab.links.link import Channel, Direction, Link
    from antiphon_lab.links.proxy import Address, Proxy

SHOW_SECONDS = 0.5


def link(
    profile: Annotated[str, typer.Option(help="A profile's name, or values such as 4g,loss=1% (see docs/links.md).")] = "4g",
    listen: Annotated[str, typer.Option(help="Where devices connect: HOST:PORT; port 0 is any free one.")] = "127.0.0.1:9000",
    to: Annotated[str | None, typer.Option(help="The cloud behind the link: ws://HOST:PORT.")] = None,
    seed: Annotated[int, typer.Option(help="Of jitter and losses.")] = 0,
    shown: Annotated[bool, typer.Option("--list", help="Show the profiles and where their figures are from.")] = False,
) -> None:
    """Put an emulated link, such as a mobile network, between a device and a cloud."""
    from antiphon_lab.links.emulated import precise_loop
    from antiphon_lab.links.notation import parse_link
    from antiphon_lab.links.proxy import Address

    if shown:
        _show_profiles()
        return
    if to is None:
        raise UsageError("link needs the cloud that it leads to: give --to ws://HOST:PORT, or --list to see the profiles")
    emulated, ends = parse_link(profile), (Address.parse(listen), Address.parse(to))
    with asyncio.Runner(loop_factory=precise_loop) as runner:
        runner.run(_run(emulated, *ends, seed))
    typer.echo("antiphon: stopped", err=True)


async def _run(link: "Link", listen: "Address", to: "Address", seed: int) -> None:
    from antiphon_lab.links.proxy import proxying

    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with proxying(link, listen, to, seed) as (proxy, address):
        typer.echo(f"antiphon: {_sentence(link)}: ws://{address} leads to ws://{to} (Ctrl-C stops it)")
        sys.stdout.flush()
        await _show_until(stopped, proxy)


async def _show_until(stopped: asyncio.Event, proxy: "Proxy") -> None:
    """Live counters, where a person can see them."""
    from rich.live import Live

    console = Console(stderr=True)
    if not console.is_terminal:
        await stopped.wait()
        return
    before = (0, 0)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while not stopped.is_set():
            live.update(_counters(proxy, before), refresh=True)
            before = (proxy.up.payload_bytes, proxy.down.payload_bytes)
            try:
                async with asyncio.timeout(SHOW_SECONDS):
                    await stopped.wait()
            except TimeoutError:
                continue


def _counters(proxy: "Proxy", before: tuple[int, int]) -> str:
    ways = zip(("up", "down"), (proxy.up, proxy.down), before, strict=True)
    parts = [f"{proxy.connections} connections ({proxy.total} so far)", *(_way(*way) for way in ways)]
    return "   ".join(parts)


def _way(name: str, channel: "Channel", before: int) -> str:
    speed = 8 * (channel.payload_bytes - before) / SHOW_SECONDS
    lost = f", {channel.lost_segments} segments lost" if channel.direction.loss else ""
    return f"{name} {channel.payload_bytes:,} bytes ({_rate(speed)}{lost})"


def _sentence(link: "Link") -> str:
    return f"{link.name} ({_speed(link.up)} up, {_speed(link.down)} down, round trip {1000 * link.round_trip():.4g} ms)"


def _show_profiles() -> None:
    from rich.table import Table

    from antiphon_lab.links.profiles import PROFILES

    console = Console()
    table = Table("profile", "up", "down", "round trip", "of it jitter", box=None, padding=(0, 2, 0, 0))
    for name, known in PROFILES.items():
        link = known.link
        jitter = 1000 * (link.up.jitter + link.down.jitter)
        table.add_row(name, _speed(link.up), _speed(link.down), f"{1000 * link.round_trip():.4g} ms", f"{jitter:.4g} ms")
    sources = Table("profile", "source", box=None, padding=(0, 2, 0, 0))
    for name, known in PROFILES.items():
        sources.add_row(name, known.link.source)
    console.print(table, "", sources, sep="\n", markup=False)


def _speed(direction: "Direction") -> str:
    from antiphon_lab.links.traces import mean_rate

    return _rate(mean_rate(direction.rate))


def _rate(bits: float) -> str:
    unit, scale = ("kbit/s", 1e3) if bits < 1e6 else ("Mbit/s", 1e6)
    return f"{bits / scale:.4g} {unit}"

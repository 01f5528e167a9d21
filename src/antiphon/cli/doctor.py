"""`antiphon doctor`."""

import asyncio
import json
from dataclasses import asdict
from typing import Any

import typer
from rich.console import Console

from antiphon import shown
from antiphon.cli.arguments import MODEL, AsJson, CloudUrl, ModelName, Threads
from antiphon.config import ModelConfig
from antiphon.errors import UsageError


def doctor(cloud: CloudUrl, model: ModelName, threads: Threads = MODEL.threads, as_json: AsJson = False) -> None:
    """Can this device model and that cloud work together, and how well?"""
    from rich.table import Table
    from rich.text import Text

    report = asyncio.run(_examine(cloud, ModelConfig(model, threads=threads)))
    table = Table(show_header=False, box=None)
    for name, value in report.rows():
        table.add_row(name, Text(shown.line(shown.address(value))))
    console = Console(stderr=as_json)
    console.print(table)
    console.print(report.verdict)
    if as_json:
        typer.echo(json.dumps({**asdict(report), "fits": report.fits, "verdict": report.verdict}))


async def _examine(url: str | None, model: ModelConfig) -> Any:
    from antiphon.device.doctor import examine
    from antiphon.device.generate import Device

    if url is None:
        raise UsageError("doctor needs a cloud: give --cloud ws://HOST:PORT")
    async with Device(model, cloud=url) as device:
        (connection,) = await device.connect()
        return await examine(device, connection, url)

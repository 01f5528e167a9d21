"""`antiphon methods`: what there is, and the options of one."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from antiphon.options import options_of

if TYPE_CHECKING:
    from antiphon.methods.base import Method


def methods(name: Annotated[str | None, typer.Argument(help="A method, to see its options.")] = None) -> None:
    """List the methods, or the options of one, which `generate` and `ask` take as -o name=value."""
    from antiphon.methods import find, offered

    console = Console()
    if name is None:
        console.print(_table(offered(baselines=True).values()))
        return
    method = find(name)
    console.print(f"[bold]{name}[/bold]: {escape(method.summary)} ({_exactness(method)}; needs {_needs(method)})")
    options = options_of(method.options)
    console.print(_options(method) if options else f"{name} has no options.")


def _table(known: Iterable["Method"]) -> Table:
    from antiphon.methods import BASELINES

    table = Table("method", "exact", "run by", "what it does", show_edge=False)
    for method in known:
        baseline = " (baseline)" if method.name in BASELINES else ""
        table.add_row(method.name, _exactness(method), _command(method), escape(method.summary) + baseline)
    return table


def _options(method: "Method") -> Table:
    table = Table("option", "default", "what it is", show_edge=False)
    for one in options_of(method.options):
        table.add_row(one.name, one.shown, escape(one.help))
    return table


def _command(method: "Method") -> str:
    return "ask" if method.mixes else "generate"


def _exactness(method: "Method") -> str:
    return "exact" if method.exact else "not exact"


def _needs(method: "Method") -> str:
    return ", ".join(sorted(method.needs)) or "no cloud"

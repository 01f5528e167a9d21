"""The command line: arguments to configuration to one call. Answers go to stdout, everything else to stderr.

Bad input and anything else that a person can mend is one sentence on stderr and exit code 2.
"""

from typing import Annotated

import typer

from antiphon import __version__
from antiphon.cli import ask, demo, doctor, generate, library, methods, serve
from antiphon.cli.moved import refuse_moved
from antiphon.cli.running import run

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A small model on a device and a large one in the cloud write one answer together.",
)
app.command()(serve.serve)
app.command()(generate.generate)
app.command()(ask.ask)
app.command()(methods.methods)
app.command()(demo.demo)
app.command()(doctor.doctor)
app.add_typer(library.commands, name="library")
refuse_moved(app)


def main() -> None:
    """Run the command line; exit code 2 for whatever a person can mend."""
    run(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"antiphon {__version__}")
        raise typer.Exit


@app.callback()
def _root(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False) -> None:
    pass

"""The command line: arguments to configuration to one call. Answers go to stdout, everything else to stderr.

Bad input and anything else that a person can mend is one sentence on stderr and exit code 2.
"""

import sys
from contextlib import suppress
from typing import Annotated

import typer

from antiphon import __version__, shown
from antiphon.cli import ask, bench, demo, doctor, generate, library, link, profile, reproduce, serve
from antiphon.errors import AntiphonError

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A small model on a device and a large one in the cloud write one answer together.",
)
app.command()(serve.serve)
app.command()(generate.generate)
app.command()(ask.ask)
app.command()(demo.demo)
app.command()(doctor.doctor)
app.command()(link.link)
app.command()(profile.profile)
app.add_typer(library.commands, name="library")
app.add_typer(bench.bench, name="bench")
app.add_typer(reproduce.reproduce, name="reproduce")


def main() -> None:
    """Run the command line; exit code 2 for whatever a person can mend."""
    try:
        app()
    except AntiphonError as error:
        sys.exit(_complain(error))
    except KeyboardInterrupt:
        _say_stopped()
        sys.exit(INTERRUPTED)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # typer's word for a Ctrl-C within a command
            _say_stopped()
        raise
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)


def _say_stopped() -> None:
    """On a line of its own, for text may have ended within one."""
    with suppress(OSError):
        sys.stdout.flush()
        print("\nantiphon: stopped", file=sys.stderr)  # noqa: T201


def _complain(error: AntiphonError) -> int:
    print(f"antiphon: {shown.line(shown.address(str(error)))}", file=sys.stderr)  # noqa: T201
    return 2


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"antiphon {__version__}")
        raise typer.Exit


@app.callback()
def _root(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False) -> None:
    pass

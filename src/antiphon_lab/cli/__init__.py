"""The command line of the laboratory: what measures Antiphon. It speaks as `antiphon.cli` does."""

import typer

from antiphon.cli.running import run
from antiphon_lab.cli import bench, link, profile, race, reproduce

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="The laboratory of Antiphon: benchmarks, the papers' tables, emulated links.",
)
app.add_typer(bench.bench, name="bench")
app.add_typer(reproduce.reproduce, name="reproduce")
app.command()(link.link)
app.command()(profile.profile)
app.command()(race.race)


@app.callback()
def _root() -> None:
    """Measure Antiphon."""


def main() -> None:
    """Run the command line; exit code 2 for whatever a person can mend."""
    run(app)

"""`antiphon serve`."""

import sys
from contextlib import ExitStack
from typing import Annotated

import typer

from antiphon import shown
from antiphon.cli.arguments import MODEL, Context, LibraryEmbedder, LibraryKeyFile, ModelName, Threads, WeightTemperature
from antiphon.config import ModelConfig, ServeConfig
from antiphon.errors import UsageError

_SERVE = ServeConfig()


def serve(
    model: ModelName,
    host: str = _SERVE.host,
    port: int = _SERVE.port,
    context: Context = MODEL.context,
    threads: Threads = MODEL.threads,
    library: Annotated[
        str | None,
        typer.Option(help="Documents for what `antiphon ask` runs: a library's file, or postgresql://USER@HOST/DATABASE."),
    ] = None,
    library_key_file: LibraryKeyFile = None,
    embedder: LibraryEmbedder = None,
    weight_temperature: WeightTemperature = None,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Offer also gr, tr, u-hlm, cu-hlm, drdg-sw, drdg-tw and drcg, to compare with.")
    ] = False,
    patience: Annotated[
        float, typer.Option(metavar="MS", help="Wait so long for drafts at least: fewer passes, slower answers.")
    ] = 0.0,
) -> None:
    """Serve a cloud: the large model, for devices to connect to."""
    from antiphon.cloud.server import address, listen
    from antiphon.cloud.server import serve as serve_until_stopped
    from antiphon.cloud.service import Cloud
    from antiphon.methods import offered
    from antiphon.models import load
    from antiphon.retrieval.opening import open_library
    from antiphon.retrieval.options import SearchOptions

    config = ServeConfig(host, port)
    model_config = ModelConfig(model, context, threads)
    with ExitStack() as stack:
        index = None
        if library is not None:
            options = SearchOptions(temperature=weight_temperature)
            opened = open_library(library, key_file=library_key_file, embedder=embedder, threads=threads, options=options)
            index = stack.enter_context(opened)
            stats = index.stats()
            if embedder is not None and stats.vectors < stats.passages:
                missing = stats.passages - stats.vectors
                raise UsageError(f"{missing:,} passages have no vectors yet: run `antiphon library update` with --embedder")
            held = f"{stats.passages:,} passage{'' if stats.passages == 1 else 's'}"
            typer.echo(f"antiphon: {held} in {shown.line(shown.address(library))}", err=True)
        listener = stack.enter_context(listen(config))
        cloud = Cloud(load(model_config), methods=offered(baselines=baselines), library=index, patience=patience / 1000)
        typer.echo(f"antiphon: {cloud.model.name} listens on {address(listener)} (Ctrl-C stops it)")
        sys.stdout.flush()
        try:
            serve_until_stopped(cloud, listener, config)
        finally:
            cloud.close()
    typer.echo("antiphon: stopped", err=True)

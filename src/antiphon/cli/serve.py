"""`antiphon serve`."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from antiphon.cli.arguments import MODEL, Context, ModelName, Threads
from antiphon.config import ModelConfig, ServeConfig

_SERVE = ServeConfig()


def serve(
    model: ModelName,
    host: str = _SERVE.host,
    port: int = _SERVE.port,
    context: Context = MODEL.context,
    threads: Threads = MODEL.threads,
    library: Annotated[str | None, typer.Option(help="Documents for what `antiphon ask` runs: a library's file.")] = None,
    library_key_file: Annotated[
        Path | None,
        typer.Option(
            "--library-key-file",
            "--key-file",
            help="A file with the key of an encrypted library; else ANTIPHON_LIBRARY_KEY has it.",
        ),
    ] = None,
) -> None:
    """Serve a cloud: the large model, for devices to connect to."""
    from antiphon.cloud.server import address, listen
    from antiphon.cloud.server import serve as serve_until_stopped
    from antiphon.cloud.service import Cloud
    from antiphon.models import load
    from antiphon.retrieval.opening import open_library

    config = ServeConfig(host, port)
    model_config = ModelConfig(model, context, threads)
    with ExitStack() as stack:
        index = None
        if library is not None:
            index = stack.enter_context(open_library(library, key_file=library_key_file))
            typer.echo(f"antiphon: {index.stats().passages:,} passages in {library}", err=True)
        listener = stack.enter_context(listen(config))
        cloud = Cloud(load(model_config), library=index)
        typer.echo(f"antiphon: {cloud.model.name} listens on {address(listener)} (Ctrl-C stops it)")
        sys.stdout.flush()
        try:
            serve_until_stopped(cloud, listener)
        finally:
            cloud.close()
    typer.echo("antiphon: stopped", err=True)

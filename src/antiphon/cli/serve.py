"""`antiphon serve`."""

import sys

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
) -> None:
    """Serve a cloud: the large model, for devices to connect to."""
    from antiphon.cloud.server import address, listen
    from antiphon.cloud.server import serve as serve_until_stopped
    from antiphon.cloud.service import Cloud
    from antiphon.models import load

    config = ServeConfig(host, port)
    model_config = ModelConfig(model, context, threads)
    listener = listen(config)
    with listener:
        cloud = Cloud(load(model_config))
        typer.echo(f"antiphon: {cloud.model.name} listens on {address(listener)} (Ctrl-C stops it)")
        sys.stdout.flush()
        try:
            serve_until_stopped(cloud, listener)
        finally:
            cloud.close()
    typer.echo("antiphon: stopped", err=True)

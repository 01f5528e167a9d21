"""A device, and a connection if its method needs one, opened and closed together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from antiphon.config import ModelConfig
from antiphon.device.connection import Connection, connect
from antiphon.device.generate import Device
from antiphon.errors import UsageError
from antiphon.methods import find
from antiphon.models import load


@asynccontextmanager
async def using(method: str, url: str | None, config: ModelConfig | None) -> AsyncIterator[tuple[Device, Connection | None]]:
    """What `method` needs: a loaded model, a greeted connection. Raises one of `antiphon.errors`."""
    wanted = find(method)
    if wanted.drafts and config is None:
        raise UsageError(f"the method {method} drafts on the device: give --model")
    if wanted.cloud is not None and url is None:
        raise UsageError(f"the method {method} needs a cloud: give --cloud ws://HOST:PORT")
    device = Device(load(config) if config is not None and wanted.drafts else None)
    try:
        connection = await connect(url, device.model, device.worker) if url is not None and wanted.cloud is not None else None
        try:
            yield device, connection
        finally:
            if connection is not None:
                await connection.close()
    finally:
        device.close()

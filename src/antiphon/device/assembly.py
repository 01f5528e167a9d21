"""What a method needs, opened and closed together: a device, its library and its disclosure log, a connection to each cloud."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from antiphon.config import ModelConfig
from antiphon.device.connection import Connection, connect
from antiphon.device.disclosure_log import DisclosureLog, disclosure_log
from antiphon.device.generate import Device, require_clouds
from antiphon.errors import UsageError
from antiphon.methods import WITH_DOCUMENTS, WITHOUT_DOCUMENTS, find
from antiphon.methods.base import Method
from antiphon.models import load
from antiphon.retrieval.index import Index
from antiphon.retrieval.opening import open_library
from antiphon.retrieval.options import SearchOptions
from antiphon.vocabulary import identity
from antiphon.wire.messages import Envelope, Retrieved
from antiphon.wire.session import Side


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


@dataclass(frozen=True, slots=True)
class MixingConfig:
    """Where documents are mixed: addresses of clouds, the device's model, its library with its key's file, its disclosure log.

    embedder: a folder as of `OnnxEmbedder`, to search by vectors too. search: how passages are ranked and weighed.
    """

    clouds: tuple[str, ...]
    model: ModelConfig | None
    library: str | None
    key_file: Path | None = None
    disclosure_log: Path | None = None
    embedder: Path | None = None
    search: SearchOptions | None = None


@dataclass(frozen=True, slots=True)
class Mixing:
    """What mixes documents: a device, its library, and a connection to each cloud that takes part.

    found: what each said it found for the last question, by address.
    """

    device: Device
    library: Index
    clouds: tuple[str, ...]
    connections: list[Connection] = field(default_factory=list)
    found: dict[str, Retrieved] = field(default_factory=dict)


@asynccontextmanager
async def mixing(name: str, config: MixingConfig) -> AsyncIterator[Mixing]:
    """What the method of this name needs to mix documents. Raises one of `antiphon.errors`.

    Nothing leaves before the device has its library, its model, and a disclosure log that can be written if one is wanted.
    """
    method = _mixture(name)
    clouds = _clouds(method, config.clouds)
    if config.model is None:
        raise UsageError(f"the method {name} writes on the device: give --model")
    if config.library is None:
        raise UsageError(f"the method {name} reads documents of the device: give --library FILE")
    async with AsyncExitStack() as stack:
        key_file, embedder, threads = config.key_file, config.embedder, config.model.threads
        opened = open_library(config.library, key_file=key_file, embedder=embedder, threads=threads, options=config.search)
        library = stack.enter_context(opened)
        log = stack.enter_context(disclosure_log(config.disclosure_log, clouds))
        device = Device(load(config.model), library=library)
        stack.callback(device.close)
        ends = Mixing(device, library, clouds)
        for url in clouds:
            ends.connections.append(await stack.enter_async_context(_connected(device, url, log, ends.found)))
            _require_library(method, ends.connections[-1], url)
        yield ends


@asynccontextmanager
async def _connected(
    device: Device, url: str, log: DisclosureLog | None, found: dict[str, Retrieved]
) -> AsyncIterator[Connection]:
    """A connection, watched."""
    record = None if log is None or device.model is None else log.watch(url, identity(device.model.vocabulary))

    def watch(sender: Side, envelope: Envelope, frame: bytes) -> None:
        if record is not None:
            record(sender, envelope, frame)
        if isinstance(envelope.message, Retrieved):
            found[url] = envelope.message

    connection = await connect(url, device.model, device.worker, watch)
    try:
        yield connection
    finally:
        await connection.close()


def _mixture(name: str) -> Method:
    """The method of this name. Raises UsageError if it mixes no documents."""
    if name in WITHOUT_DOCUMENTS:
        known = ", ".join(WITH_DOCUMENTS)
        raise UsageError(f"the method {name} reads no documents: `antiphon generate` runs it; ask has {known}")
    return find(name, WITH_DOCUMENTS)


def _clouds(method: Method, urls: Sequence[str]) -> tuple[str, ...]:
    """The clouds that take part. Raises UsageError where there are too few, too many or the same ones."""
    if method.cloud is None:
        return ()
    if not urls:
        raise UsageError(f"the method {method.name} needs a cloud: give --cloud ws://HOST:PORT")
    if len(set(urls)) < len(urls):
        raise UsageError("a cloud is named twice, and its documents would count twice: name each once")
    require_clouds(method, len(urls))
    return tuple(urls)


def _require_library(method: Method, connection: Connection, url: str) -> None:
    """A cloud that was started without documents is the likeliest reason not to know a method that mixes them."""
    if not connection.welcome.scorer:
        sentence = f"the cloud at {url} has no documents, and {method.name} mixes what both ends have: "
        raise UsageError(f"{sentence}start it with `antiphon serve --library FILE`, or use crcg, which asks no cloud")

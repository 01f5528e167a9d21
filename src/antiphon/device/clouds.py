"""The clouds of a device by their addresses: each is connected to when an answer first needs it, and stays so."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from antiphon.config import Timeouts
from antiphon.device.connection import Connection, Watch, connect
from antiphon.device.disclosure_log import DisclosureLog
from antiphon.engine.worker import Worker
from antiphon.errors import UsageError
from antiphon.models.base import Model
from antiphon.vocabulary import identity
from antiphon.wire.messages import Envelope, Retrieved
from antiphon.wire.session import Side


class Clouds:
    """Connections by address."""

    def __init__(self, addresses: Sequence[str], timeouts: Timeouts | None = None) -> None:
        self.addresses = tuple(addresses)
        self.log: DisclosureLog | None = None
        """Sees every frame before it leaves; it shows tokens as the device's model has them."""
        self.found: dict[str, Retrieved] = {}
        """What each cloud said that it found in its documents for the last question, by address."""
        self._timeouts = timeouts
        self._connections: dict[str, Connection] = {}
        self._connecting = asyncio.Lock()

    async def connected(self, model: Model | None, worker: Worker) -> list[Connection]:
        """A connection to each. Raises one of `antiphon.errors`; those that answered stay connected."""
        # One at a time: two answers that begin together must not both greet the same cloud.
        async with self._connecting:
            for address in self.addresses:
                if address not in self._connections:
                    watch = self._watch(address, model)
                    self._connections[address] = await connect(address, model, worker, watch, self._timeouts)
        return [self._connections[address] for address in self.addresses]

    async def close(self) -> None:
        """Say goodbye to all."""
        async with AsyncExitStack() as leaving:  # the others too where one fails
            for connection in self._connections.values():
                leaving.push_async_callback(connection.close)
            self._connections.clear()

    def _watch(self, address: str, model: Model | None) -> Watch:
        if self.log is not None and model is None:
            raise UsageError("a disclosure log shows tokens as the device's model has them: give --model")
        record = None if self.log is None or model is None else self.log.watch(address, identity(model.vocabulary))

        def watch(sender: Side, envelope: Envelope, frame: bytes) -> None:
            if record is not None:
                record(sender, envelope, frame)
            if isinstance(envelope.message, Retrieved):
                self.found[address] = envelope.message

        return watch

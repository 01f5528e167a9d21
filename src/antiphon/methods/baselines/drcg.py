"""`drcg`: all documents in one context, on the device (METHODS 4; CONCORD's reference).

The device has the cloud's passages sent over and reads them before its own: no document isolation, so it is a reference and
nothing for documents that must not be shared.
"""

from collections.abc import Generator
from typing import Any

from antiphon.errors import LinkError
from antiphon.methods.base import CloudSide, DeviceSide, Method, OnLoss
from antiphon.methods.effects import Half, Receive, Send, ServingHalf, expect
from antiphon.methods.mixture.cloud import mixing_of
from antiphon.methods.mixture.options import LONGEST_WAIT, MixtureOptions
from antiphon.methods.speculative.device_only import DeviceOnly
from antiphon.models.needs import Need
from antiphon.wire.messages import Message, Passages, Retrieved


class SharedDevice(DeviceOnly):
    """Reads the cloud's passages before it writes."""

    def __init__(self, side: DeviceSide, options: Any) -> None:
        super().__init__(side, options)
        if side.mixing is None:
            raise ValueError("this method needs a library on the device")
        self._mixing = side.mixing

    def run(self) -> Half:
        """Read, then write alone."""
        expect((yield from self._next()), Retrieved)
        self._mixing.reread(expect((yield from self._next()), Passages).texts)
        return (yield from super().run())

    def _next(self) -> Generator[Any, Any, Message]:
        message: Message | None = yield Receive(LONGEST_WAIT)
        if message is None:
            raise LinkError(f"the cloud sent no passages within {LONGEST_WAIT:g} s: ask again, or use crcg, which needs none")
        return message


class SharingCloud:
    """Sends its passages."""

    def __init__(self, side: CloudSide, options: MixtureOptions) -> None:
        self._mixing = mixing_of(side)

    def run(self) -> ServingHalf:
        """Send them, and wait for the device to be done."""
        yield Send(self._mixing.retrieved())
        yield Send(Passages(self._mixing.passages))
        while True:
            yield Receive()


DRCG = Method(
    "drcg",
    "all documents on the device, one context",
    False,
    SharedDevice,
    SharingCloud,
    options=MixtureOptions,
    needs=frozenset({Need.DOCUMENTS}),
    one_cloud=True,
    on_loss=OnLoss.DROP,
)

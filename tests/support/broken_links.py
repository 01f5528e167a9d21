"""Two real ends in virtual time over links that delay frames by any amounts, in order, and break where a test says."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TypeVar

from antiphon.cloud.connection import CloudConnection
from antiphon.cloud.service import Cloud
from antiphon.config import Limits
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import LinkError
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.base import Method
from antiphon.models.base import Model
from antiphon.models.toy import named_toy
from antiphon.wire.messages import Envelope, Goodbye, encode
from antiphon_lab.links.virtual_time import Cost, VirtualWorker, run_virtual
from support.frames import Passing

Result = TypeVar("Result")

Delay = Callable[[], float]
Cut = tuple[int, str]
"""The number of a frame, from 1 on, and whether the link breaks `before` or `after` it is delivered, or with a `goodbye`."""

PATIENCE = 200
"""Dials, and frames that an end may try to send over a link that it was told is down; more is a loop without end."""


def draft_cost(width: int, length: int) -> float:
    """4 ms."""
    return 0.004


def verify_cost(width: int, length: int) -> float:
    """33 ms, and 1 for each further token."""
    return 0.032 + 0.001 * width


def random_delay(seed: int, most: float) -> Delay:
    """Delays up to `most` seconds, some of them 0."""
    source = random.Random(seed)
    return lambda: source.choice([0.0, source.uniform(0.0, most)])


class End:
    """One end of a link of a `Network`."""

    def __init__(self, network: "Network") -> None:
        self.inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.up = True
        self.other: End
        self.mute = False
        """Whether sending fails although nothing else tells that the link is down."""
        self.sent, self.read, self.delivered = Passing(), Passing(), Passing()
        self._closed = False
        self._network = network
        self._arrives = 0.0
        self._in_vain = 0

    async def send(self, frame: bytes) -> None:
        """Hand over a frame."""
        self._network.note(self, self.sent, frame)
        if self.mute or not self.up:
            self._in_vain += 1
            assert self._in_vain < PATIENCE, "an end sends for ever over a link that is down"
            raise LinkError("the link is closed")
        loop = asyncio.get_running_loop()
        self._arrives = max(self._arrives + 1e-9, loop.time() + self._network.delay())
        loop.call_at(self._arrives, self._network.deliver, self, frame)

    async def receive(self) -> bytes:
        """The next frame."""
        frame = await self.inbox.get()
        if frame is None:
            self.inbox.put_nowait(None)
            raise LinkError("the other end closed the link")
        self._network.note(self, self.read, frame)
        return frame

    async def close(self, reason: str = "") -> None:
        """End the link, for both; what is on its way still arrives."""
        if not self._closed:
            self._closed = True
            loop = asyncio.get_running_loop()
            self._arrives = max(self._arrives + 1e-9, loop.time())
            loop.call_at(self._arrives, self.other.down)
            self.down()

    def cut_off(self) -> None:
        """This end notices that the link is gone; the other one does not."""
        self._closed = True
        self.down()

    def down(self) -> None:
        """Nothing goes in or out any more; what has come can still be read."""
        self.up = False
        self.inbox.put_nowait(None)


class Network:
    """Links between a device and a cloud. `log` is every frame that was delivered since `arm`: its time, sender and content."""

    def __init__(self, cloud: Callable[[], Cloud], delay: Delay = lambda: 0.02) -> None:
        self.delay = delay
        self.cloud = cloud
        self.log: list[tuple[float, str, Envelope]] = []
        self.dials = 0
        self.refuse = False
        self.device_frames: list[tuple[Envelope, int]] = []
        """Every frame that the device sent, if in vain, or read since `arm`, and its size."""
        self.cut_at = 0.0
        """When a link was cut last."""
        self._cuts: set[Cut] = set()
        self._count = 0
        self._recording = True
        self._serving: set[asyncio.Task[None]] = set()
        self._ends: list[tuple[End, End]] = []

    def arm(self, *cuts: Cut) -> None:
        """Count frames from now on, and cut there."""
        self._cuts, self._count = set(cuts), 0
        self.log.clear()
        self.device_frames.clear()

    def disarm(self) -> None:
        """Cut nothing more and write down nothing more."""
        self._cuts, self._recording = set(), False

    async def dial(self) -> End:
        """A new link, with a cloud at its other end."""
        self.dials += 1
        assert self.dials < PATIENCE, "a cloud is dialled for ever"
        if self.refuse:
            raise LinkError("nobody answers")
        device, cloud = End(self), End(self)
        device.other, cloud.other = cloud, device
        self._ends.append((device, cloud))
        self._serving.add(asyncio.create_task(CloudConnection(self.cloud(), cloud).serve()))
        return device

    def note(self, end: End, passing: Passing, frame: bytes) -> None:
        """The end has sent or read a frame."""
        if self._recording and any(end is device for device, _ in self._ends):
            self.device_frames.append((passing.read(frame), len(frame)))

    @property
    def newest(self) -> tuple[End, End]:
        """The device's and the cloud's end of the newest link."""
        return self._ends[-1]

    def deliver(self, sender: End, frame: bytes) -> None:
        """A frame comes to the end of its way."""
        receiver = sender.other
        if not receiver.up:
            return None
        self._count += 1
        if (self._count, "before") in self._cuts:
            return self.cut(sender)
        if self._recording:
            name = "device" if any(sender is device for device, _ in self._ends) else "cloud"
            self.log.append((asyncio.get_running_loop().time(), name, sender.delivered.read(frame)))
        receiver.inbox.put_nowait(frame)
        if (self._count, "after") in self._cuts:
            self.cut(sender)
        if (self._count, "goodbye") in self._cuts:
            self.newest[0].inbox.put_nowait(encode(Envelope(0, Goodbye("the cloud is stopping"))))
            self.cut()
        return None

    def cut(self, end: End | None = None) -> None:
        """The link of this end (the newest one) is gone at once."""
        end = end or self.newest[0]
        self.cut_at = asyncio.get_running_loop().time()
        end.down()
        end.other.down()

    async def over(self) -> None:
        """Wait for all clouds to notice."""
        await asyncio.gather(*self._serving)


Test = Callable[[Device, Connection, Network], Awaitable[Result]]


def broken(
    test: Test[Result],
    *,
    methods: Mapping[str, Method] = WITHOUT_DOCUMENTS,
    models: Callable[[], tuple[Model, Model]] = lambda: (named_toy("toy-device"), named_toy("toy-cloud")),
    delay: Delay = lambda: 0.02,
    costs: tuple[Cost, Cost] = (draft_cost, verify_cost),
    limits: Limits | None = None,
    mend_seconds: float = 30.0,
) -> Result:
    """Run `test` in virtual time with a connected device."""
    device_model, cloud_model = models()

    async def run() -> Result:
        cloud = Cloud(cloud_model, limits, methods, VirtualWorker(costs[1]))
        device = Device(device_model, methods=methods, worker=VirtualWorker(costs[0]))
        network = Network(lambda: cloud, delay)
        connection = Connection(network.dial, device.model, device.worker, mend_seconds)
        await connection.establish()
        network.arm()
        try:
            return await test(device, connection, network)
        finally:
            network.disarm()
            with suppress(LinkError):
                await connection.close()
            await network.over()

    return run_virtual(run())


def boundaries(frames: int) -> list[Cut]:
    """Every place where a link can break while so many frames cross it."""
    return list(itertools.product(range(1, frames + 1), ("before", "after")))

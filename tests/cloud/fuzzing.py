"""A seeded fuzzer of a cloud: sessions as honest devices lead them, with frames that are changed, moved, repeated or left out.

`python tests/cloud/fuzzing.py FRAMES SEED [MODEL]` prints what came of it.
"""

import asyncio
import gc
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from antiphon.cloud.connection import CloudConnection
from antiphon.cloud.service import Cloud
from antiphon.config import Limits, ModelConfig, Request, SamplingParams
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import AntiphonError, LinkError
from antiphon.methods import ALL_METHODS, WITHOUT_DOCUMENTS
from antiphon.methods.base import Method
from antiphon.models import load
from antiphon.models.base import Model
from antiphon.models.toy import named_toy
from antiphon.transport.frames import MemoryTransport, memory_pair
from antiphon.wire import messages as m
from antiphon.wire.session import Side
from support.frames import Passing
from support.mixtures import Shelf
from support.resources import require_forgotten, require_nothing_kept

PROMPTS = ("a", "Once", "the mill", "é🦀", "\x04\x00", "x " * 40)
INTEGERS = (0, 1, 2, 7, 63, 64, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32, 2**63, 2**64 - 1, -1, -(2**31))
FLOATS = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e308, 5e-324)
TEXTS = ("", "\x00", "A" * 300, "‮\x1b[31m", "x" * 5000, "concord", "coupled-tree", "tight", "63", "2,2,2,2,2")
OPTIONS = {
    "draft_length": (0, 1, 3, 16),
    "ahead": (0, 1, 8, 32, 64),
    "expansion": ("63", "2,2,2", "1,1,1", "31,1", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"),
    "wire": ("plain", "delta", "tight"),
    "first": (1, 8, 256),
    "bound": ("next", "global"),
    "passages": (1, 2, 64),
    "replacement": (True, False),
    "candidates": (0, 1, 31),
}
SAMPLINGS: tuple[dict[str, Any], ...] = (
    {},
    {"temperature": 0.0},
    {"temperature": 1.0, "top_k": 5},
    {"temperature": 0.7, "top_p": 0.3, "min_p": 0.1},
    {"temperature": 1.0, "repetition_penalty": 1e300},
    {"presence_penalty": 1e308, "frequency_penalty": -1e308},
    {"logit_bias": [[5, 1e308], [7, -1e308]]},
    {"temperature": 100.0},
    {"temperature": 1e-300},
)


@dataclass
class Outcome:
    """What came of it."""

    frames: int = 0
    connections: int = 0
    told: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    mebibytes: list[int] = field(default_factory=list)
    """Memory of the process at tenths of the way."""

    def __str__(self) -> str:
        told = ", ".join(f"{code} {count}" for code, count in self.told.most_common())
        return (
            f"{self.frames} frames on {self.connections} connections; told: {told}; {len(self.faults)} faults; "
            f"memory in MiB at tenths: {self.mebibytes}"
        )


class _Faults(logging.Handler):
    """Whatever is logged with a traceback, or as an error."""

    def __init__(self, found: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        self._found.append(self.format(record))


def resident() -> int:
    """MiB of this process in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096 >> 20


async def recorded(cloud: Cloud) -> list[list[bytes]]:
    """The frames of a device, of two short answers by every method, handshake and all: as they are sent, and all in full."""
    await _recorded(cloud, "cloud", 0.0)  # the first device brings its map, which no other may
    found = []
    for name, method in WITHOUT_DOCUMENTS.items():
        if method.cloud is not None:
            found += [await _recorded(cloud, name, temperature) for temperature in (0.0, 1.0)]
    return found


async def _recorded(cloud: Cloud, name: str, temperature: float) -> list[bytes]:
    frames: list[bytes] = []
    device_end, cloud_end = memory_pair()
    serving = asyncio.create_task(CloudConnection(cloud, cloud_end).serve())
    device = Device(named_toy("toy-device"))

    async def dial() -> MemoryTransport:
        return device_end

    def watch(side: Side, envelope: m.Envelope, frame: bytes) -> None:
        if side is Side.DEVICE:
            frames.append(m.encode(envelope) if temperature else frame)

    connection = Connection(dial, device.model, device.worker, mend_seconds=0.0, watch=watch)
    await connection.establish()
    sampling = SamplingParams(temperature=temperature)
    await device.generate(Request("the ", name, None, sampling, 4, seed=7), connection)
    await connection.close()
    await serving
    device.close()
    return frames[:-1]  # without the goodbye


class Fuzzer:
    """Changes recorded sessions, by chance of one seed."""

    def __init__(self, cloud: Cloud, honest: Sequence[list[bytes]], seed: int) -> None:
        self._cloud, self._honest, self._chance = cloud, honest, random.Random(seed)
        self._handshake = [frame for frame in honest[0] if msgspec.msgpack.decode(frame)[0] == 0]
        self.outcome = Outcome()
        self._target = 0

    async def run(self, frames: int, at_once: int = 12) -> Outcome:
        """Send so many frames, on several connections at once."""
        log = logging.getLogger()
        handler = _Faults(self.outcome.faults)
        log.addHandler(handler)
        try:
            for tenth in range(1, 11):
                self._target = frames * tenth // 10
                await asyncio.gather(*[self._lane() for _ in range(at_once)])
                gc.collect()
                self.outcome.mebibytes.append(resident())
        finally:
            log.removeHandler(handler)
        return self.outcome

    async def _lane(self) -> None:
        while self.outcome.frames < self._target:
            await self._connection()

    async def _connection(self) -> None:
        self.outcome.connections += 1
        device_end, cloud_end = memory_pair()
        connection = CloudConnection(self._cloud, cloud_end)
        serving = asyncio.create_task(connection.serve())
        listening = asyncio.create_task(self._listen(device_end))
        with suppress(LinkError):
            for frame in self._session():
                await device_end.send(frame)
                self.outcome.frames += 1
                await asyncio.sleep(self._chance.choice((0.0, 0.0, 0.0, 0.001, 0.02)))
        if self._chance.random() < 0.7:
            await asyncio.sleep(self._chance.choice((0.0, 0.01, 0.1)))
        await (device_end if self._chance.random() < 0.5 else cloud_end).close()
        async with asyncio.timeout(120):
            await serving
        listening.cancel()
        await asyncio.wait([listening])
        if serving.exception() is not None:
            self.outcome.faults.append(repr(serving.exception()))
        require_forgotten(connection)

    async def _listen(self, device_end: MemoryTransport) -> None:
        down = Passing()
        with suppress(LinkError, AntiphonError):
            while True:
                message = down.read(await device_end.receive()).message
                if isinstance(message, m.Failure):
                    self.outcome.told[message.code] += 1

    def _session(self) -> Iterator[bytes]:
        chance = self._chance
        if chance.random() < 0.4:
            yield from self._handshake
            yield from self._made_up()
            return
        frames = list(chance.choice(self._honest))
        start = 0 if chance.random() < 0.1 else len(self._handshake)
        for _ in range(chance.choice((1, 1, 2, 4))):
            self._change(frames, start)
        yield from frames

    def _change(self, frames: list[bytes], start: int) -> None:
        chance = self._chance
        place = chance.randrange(min(start, len(frames) - 1), len(frames))
        match chance.randrange(9):
            case 0:
                frames[place:place] = [frames[place]] * chance.choice((1, 2, 70))
            case 1:
                frames.insert(place, m.encode(m.Envelope(1, m.Cancel())))
            case 2:
                del frames[place]
            case 3:
                other = chance.randrange(min(start, len(frames) - 1), len(frames))
                frames[place], frames[other] = frames[other], frames[place]
            case 4:
                frames[place] = self._bytes(frames[place])
            case 5:
                frames += [self._renumbered(frame) for frame in chance.choice(self._honest)[start:]]
            case _:
                frames[place] = self._fields(frames[place])
        frames[:] = frames or [self._handshake[0]]

    def _bytes(self, frame: bytes) -> bytes:
        data, chance = bytearray(frame), self._chance
        for _ in range(chance.choice((1, 1, 2, 8))):
            if data:
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        return bytes(data[: chance.randrange(len(data) + 1)]) if chance.random() < 0.2 else bytes(data)

    def _renumbered(self, frame: bytes) -> bytes:
        if frame[:1] < b"\x80":  # it is of the newest session, whichever that is, unless it says another
            return bytes([frame[0] | 1, frame[1], self._chance.choice((1, 2, 2, 3, 255))]) + frame[2:]
        found = msgspec.msgpack.decode(frame)
        found[0] = self._chance.choice((1, 2, 2, 3, 2**31 - 1))
        return msgspec.msgpack.encode(found)

    def _fields(self, frame: bytes) -> bytes:
        if frame[:1] < b"\x80":
            return self._bytes(frame)
        try:
            found = msgspec.msgpack.decode(frame)
        except msgspec.DecodeError:
            return frame
        if not isinstance(found, list):
            return frame
        places = list(_leaves(found))
        for _ in range(self._chance.choice((1, 1, 2, 3))):
            path = self._chance.choice(places)
            with suppress(TypeError, IndexError, KeyError):
                _put(found, path, self._odd)
        with suppress(OverflowError, TypeError, msgspec.MsgspecError):
            return msgspec.msgpack.encode(found)
        return frame

    def _odd(self, value: Any) -> Any:
        chance = self._chance
        match value:
            case bytes() if chance.random() < 0.7:
                return self._bytes(value)
            case int() if chance.random() < 0.6:
                return max(-(2**63), min(2**64 - 1, value + chance.choice((-1, 1, 2, 10, 1000))))
            case list() if chance.random() < 0.6:
                return [*value, chance.choice(INTEGERS)] if chance.random() < 0.5 else value[:-1]
        return chance.choice(
            (*INTEGERS, *FLOATS, *TEXTS, None, [], {}, True, chance.randbytes(chance.choice((0, 1, 16, 1000))))
        )

    def _made_up(self) -> Iterator[bytes]:
        """Sessions whose every message is valid, and whose content is chance."""
        chance = self._chance
        for session in range(1, chance.choice((2, 2, 3, 6))):
            name = chance.choice([*self._cloud.methods])
            yield m.encode(m.Envelope(session, self._opening(self._cloud.methods[name])))
            epoch = turn = 0
            for _ in range(chance.randrange(7)):
                message, epoch, turn = self._message(epoch, turn)
                yield m.encode(m.Envelope(session, message))
            if chance.random() < 0.3:
                yield m.encode(m.Envelope(session, m.Cancel()))

    def _opening(self, method: Method) -> m.Open:
        chance, known = self._chance, getattr(method.options, "__dataclass_fields__", {})
        chosen = {name: chance.choice(values) for name, values in OPTIONS.items() if name in known and chance.random() < 0.7}
        sampling = msgspec.convert(chance.choice(SAMPLINGS), SamplingParams)
        size = len(self._cloud.model.vocabulary)
        committed = tuple(chance.randrange(size) for _ in range(chance.choice((0, 0, 0, 1, 6))))
        tokens, chat = chance.choice((1, 2, 4, 9)), chance.random() < 0.1
        return m.Open(method.name, chosen, sampling, chance.choice(PROMPTS), chat, tokens, chance.getrandbits(64), committed)

    def _message(self, epoch: int, turn: int) -> tuple[m.Message, int, int]:
        chance = self._chance
        count, payload = chance.randrange(5), chance.randbytes(chance.choice((0, 2, 4, 8, 40, 300)))
        match chance.randrange(6):
            case 0:
                return m.Realign(epoch + 1, chance.randrange(6), count, payload), epoch + 1, turn
            case 1:
                return m.Progress(chance.randrange(8)), epoch, turn
            case 2:
                return m.Ask(epoch, chance.randrange(8), payload), epoch, turn
            case 3:
                return m.Retry(turn), epoch, turn
        return m.Draft(turn, count, payload), epoch, turn + 1


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from _leaves(item, (*path, place))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))


def _put(value: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> None:
    for step in path[:-1]:
        value = value[step]
    if path:
        value[path[-1]] = change(value[path[-1]])


def fuzz(model: Model, frames: int, seed: int) -> Outcome:
    """Send so many frames to a cloud of this model; what it took must be back afterwards."""

    async def run() -> Outcome:
        limits = Limits(max_tokens=64, idle_seconds=5.0)
        cloud = Cloud(model, limits, ALL_METHODS, library=Shelf(("the mill burned down", 0.0)))
        try:
            fuzzer = Fuzzer(cloud, await recorded(cloud), seed)
            outcome = await fuzzer.run(frames)
            require_nothing_kept(cloud)
            await _recorded(cloud, "coupled", 1.0)  # an honest device is served
            return outcome
        finally:
            cloud.worker.close()

    return asyncio.run(run())


if __name__ == "__main__":
    began = time.monotonic()
    named = load(ModelConfig(sys.argv[3] if len(sys.argv) > 3 else "smollm2-135m", context=4096, threads=1))
    print(fuzz(named, int(sys.argv[1]), int(sys.argv[2])))
    print(f"{time.monotonic() - began:.0f} s; in use now: {named.in_use}")  # type: ignore[attr-defined]
    named.close()

"""`antiphon-lab bench overhead`: Antiphon's own time a round, without the models and the link.

Toy models over a loopback WebSocket, `dssd`. A round's time is measured on the device from its first draft step to its
tokens; what the models of both ends took is subtracted, and so is the median round trip of a bare frame of the same size over
the same connection. What is left is sampling, packing, the state machines, and the hand-over between threads.
"""

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from antiphon.cloud.server import serving
from antiphon.cloud.service import Cloud
from antiphon.config import Request, SamplingParams, ServeConfig
from antiphon.core.distributions import Logits
from antiphon.device.answer import Piece
from antiphon.device.connection import Connection, connect
from antiphon.device.generate import Device
from antiphon.errors import UsageError
from antiphon.methods.speculative.options import SplitOptions
from antiphon.models.base import Context, Model, Stop
from antiphon.models.toy import named_toy

TOKENS_PER_ANSWER = 200
PINGS = 200


@dataclass(frozen=True, slots=True)
class Overhead:
    """Milliseconds a round, and what they were made of."""

    rounds: int
    overhead_median_ms: float
    overhead_p99_ms: float
    round_median_ms: float
    models_median_ms: float
    link_median_ms: float


@dataclass(slots=True)
class _Meter:
    """Seconds that models worked, both ends together, since it was last read."""

    seconds: float = 0.0
    rounds: list[tuple[float, float]] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    def lap(self, pieces: Sequence[Piece]) -> None:
        """A round is over; tokens without text, which come once an answer has ended, are none."""
        if not all(piece.text for piece in pieces):
            return
        now = time.perf_counter()
        self.rounds.append((now - self.started, self.seconds))
        self.started, self.seconds = now, 0.0


class _MeteredContext:
    """A context whose passes are timed."""

    def __init__(self, context: Context, meter: _Meter) -> None:
        self._context, self._meter = context, meter
        self.rewind, self.settle, self.close = context.rewind, context.settle, context.close

    @property
    def length(self) -> int:
        return self._context.length

    def extend(self, tokens: list[int], rows: int = 1, stop: Stop | None = None) -> Logits:
        started = time.perf_counter()
        try:
            return self._context.extend(tokens, rows, stop)
        finally:
            self._meter.seconds += time.perf_counter() - started


def metered(model: Model, meter: _Meter) -> Model:
    """The same model, its passes timed by `meter`."""
    plain = model.open
    model.open = lambda: _MeteredContext(plain(), meter)  # type: ignore[method-assign, assignment, return-value]
    return model


async def measure(rounds: int, draft_length: int, progress: Callable[[int], None]) -> Overhead:
    """Run at least `rounds` rounds. `progress` is told how many are done."""
    meter = _Meter()
    cloud = Cloud(metered(named_toy("toy-cloud"), meter))
    device = Device(metered(named_toy("toy-device"), meter))
    try:
        async with serving(cloud, ServeConfig(port=0)) as url:
            connection = await connect(url, device.model, device.worker)
            try:
                return await _measured(device, connection, meter, rounds, draft_length, progress)
            finally:
                await connection.close()
    finally:
        device.close()
        cloud.close()


async def _measured(
    device: Device, connection: Connection, meter: _Meter, rounds: int, draft_length: int, progress: Callable[[int], None]
) -> Overhead:
    samples: list[tuple[float, float]] = []
    seed = 0
    while len(samples) < rounds:
        meter.rounds.clear()
        request = _request(seed, draft_length)
        await device.generate(request, connection, meter.lap)
        samples += meter.rounds[1:]  # the first round also opens the session and reads the prompt
        seed += 1
        progress(len(samples))
    link = statistics.median([await connection.ping(64) for _ in range(PINGS)])
    return _summary(samples, link)


def _request(seed: int, draft_length: int) -> Request:
    sampling = SamplingParams(temperature=1.0)
    return Request("the river ", "dssd", SplitOptions(draft_length), sampling, TOKENS_PER_ANSWER, seed=seed)


def _summary(samples: list[tuple[float, float]], link: float) -> Overhead:
    own = sorted(1000 * max(0.0, total - models - link) for total, models in samples)
    return Overhead(
        rounds=len(own),
        overhead_median_ms=statistics.median(own),
        overhead_p99_ms=own[int(0.99 * (len(own) - 1))],
        round_median_ms=1000 * statistics.median(total for total, _ in samples),
        models_median_ms=1000 * statistics.median(models for _, models in samples),
        link_median_ms=1000 * link,
    )


def run(rounds: int, draft_length: int, progress: Callable[[int], None] = lambda done: None) -> Overhead:
    """Measure in an event loop of its own. Raises UsageError for no rounds."""
    if rounds < 1:
        raise UsageError(f"at least one round must be run, not {rounds}")
    return asyncio.run(measure(rounds, draft_length, progress))

"""Real time and virtual time agree: the same ends on the same link, once with threads that sleep, once with a clock that jumps.

The toys take no time of their own to speak of; a pass sleeps for what the profile says. Whatever else runs on the machine only
adds to real time, so an answer is written several times if need be and its fastest time counts.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from math import inf
from statistics import median
from typing import TypeVar

import pytest

from antiphon.cloud.connection import CloudConnection
from antiphon.cloud.service import Cloud
from antiphon.config import SamplingParams
from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.engine.worker import Worker
from antiphon.models.toy import named_toy
from antiphon.transport.frames import Transport, memory_pair
from antiphon_lab.ends.trials import Trial, attempt
from antiphon_lab.hardware.profiles import Compute, PassCost
from antiphon_lab.links.emulated import emulate, precise_loop
from antiphon_lab.links.notation import parse_link

Passed = TypeVar("Passed")

COMPUTE = Compute("test", PassCost(30.0, 2.0), PassCost(120.0, 4.0, 8.0), "a test")
LINK = parse_link("rtt=100ms,up=1Mbit,down=2Mbit")
ANSWERS, TOKENS, TRIES = 3, 12, 4


class SleepingWorker(Worker):
    """A model's thread whose passes take what a profile says; waking up late makes the next pass shorter."""

    def __init__(self, cost: PassCost) -> None:
        super().__init__()
        self._cost, self._late = cost, 0.0

    def timed(self, forward: Callable[[], Passed], width: int, length: int) -> tuple[Passed, float]:
        """A pass, made within the time that it is to take."""
        seconds = self._cost.seconds(width, length)
        until = time.perf_counter() + seconds - self._late
        result = forward()
        time.sleep(max(0.0, until - time.perf_counter()))
        self._late = min(seconds, time.perf_counter() - until)
        return result, seconds


def in_real_time(trial: Trial) -> list[Result]:
    """As `attempt`, with threads, in real time."""
    cloud = Cloud(named_toy("toy-cloud"), worker=SleepingWorker(trial.compute.verify))
    device = Device(named_toy("toy-device"), worker=SleepingWorker(trial.compute.draft))

    async def run() -> list[Result]:
        serving: set[asyncio.Task] = set()

        async def dial() -> Transport:
            device_end, cloud_end = emulate(*memory_pair(), trial.link)
            serving.add(asyncio.create_task(CloudConnection(cloud, cloud_end).serve()))
            return device_end

        connection = Connection(dial, device.model, device.worker)
        await connection.establish()
        try:
            return [await device.generate(trial.request("the ", seed), connection) for seed in range(1, ANSWERS + 1)]
        finally:
            await connection.close()
            await asyncio.gather(*serving)

    try:
        with asyncio.Runner(loop_factory=precise_loop) as runner:
            return runner.run(run())
    finally:
        device.close()
        cloud.close()


def ratios(real: Sequence[Result], virtual: Sequence[Result], of: Callable[[Result], float]) -> list[float]:
    return [of(one) / of(other) for one, other in zip(real, virtual, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["cloud", "dssd", "coupled"])
def test_real_time_and_virtual_time_agree_within_5_percent(method: str) -> None:
    trial = Trial(method, LINK, COMPUTE, SamplingParams(temperature=1.0), {"draft_length": 3}, TOKENS)
    virtual = attempt(trial, named_toy("toy-cloud"), named_toy("toy-device"), ["the "] * ANSWERS)
    whole, first = [inf] * ANSWERS, [inf] * ANSWERS
    for _ in range(TRIES):
        real = in_real_time(trial)
        assert [result.token_ids for result in real] == [result.token_ids for result in virtual]
        whole = list(map(min, whole, ratios(real, virtual, lambda result: result.answer.seconds)))
        first = list(map(min, first, ratios(real, virtual, lambda result: result.answer.first_token_s)))
        print(f"{method}: real over virtual {' '.join(f'{ratio:.3f}' for ratio in [*whole, *first])}")
        if max(median(whole), median(first)) < 1.05:
            break
    assert median(whole) == pytest.approx(1.0, abs=0.05)
    assert median(first) == pytest.approx(1.0, abs=0.05)

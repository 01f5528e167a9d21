"""A cloud gives up a pass whose answer nobody wants any more: another token was committed, or the session is over."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from antiphon.cloud.connection import CloudConnection
from antiphon.cloud.service import Cloud
from antiphon.core.distributions import Logits
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods.effects import Kind
from antiphon.methods.verifier import Verifier
from antiphon.models.base import Preempted, Stop
from antiphon.models.toy import ToyContext
from antiphon.transport.frames import Transport, memory_pair
from support.mixtures import Reader, Shelf, answer, question, require_true, world


def test_a_rollback_does_not_wait_for_the_pass_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """In virtual time: the same tokens, sooner, and no pass is charged for longer than it went on."""
    request = question("concord-nosystem", tokens=60)
    there = world(4, masses=(0.0, 0.0), end=-99.0)
    told = answer(there, request)
    require_true(there, request, told)
    score_next = Verifier.score_next
    monkeypatch.setattr(Verifier, "score_next", lambda verifier, gives_way: score_next(verifier, None))
    patient = answer(there, request)
    assert told.numbers == patient.numbers
    changes = told.kinds.count(Kind.CHANGED)
    assert changes > 5
    assert told.seconds < patient.seconds - 0.002 * changes
    assert told.result.compute_ms < patient.result.compute_ms


class Endless(Reader):
    """A model whose passes go on until they are told to stop, from the third step of an answer on."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, end=-99.0)
        self.stuck, self.given_up = threading.Event(), 0

    def open(self) -> ToyContext:
        return _EndlessContext(self, [])


class _EndlessContext(ToyContext):
    def extend(self, tokens: Sequence[int], rows: int = 1, stop: Stop | None = None) -> Logits:
        model = self._model
        assert isinstance(model, Endless)
        if stop is not None and self.length % 3 == 0 and not model.stuck.is_set():
            model.stuck.set()
            while not stop.is_set:
                pass
            model.given_up += 1
            raise Preempted
        return super().extend(tokens, rows)


async def _ask(cloud: Cloud, reader: Reader, method: str, seconds: float) -> list[int]:
    """An answer in real time."""
    device_end, cloud_end = memory_pair()
    serving = asyncio.create_task(CloudConnection(cloud, cloud_end).serve())

    async def dial() -> Transport:
        return device_end

    device = Device(reader, library=Shelf(("mine", 0.0)))
    connection = Connection(dial, device.model, device.worker, mend_seconds=0.0)
    await connection.establish()
    async with asyncio.timeout(seconds):
        result = await device.generate(question(method, tokens=20), [connection])
    await connection.close()
    await serving
    return list(result.token_ids)


def test_a_pass_under_way_in_the_models_thread_is_given_up() -> None:
    """It would never end by itself: a new epoch, or the end of the session, ends it."""
    model = Endless(7)
    cloud = Cloud(model, library=Shelf(("theirs", 0.0)))
    numbers = asyncio.run(_ask(cloud, Reader(8, end=-99.0), "concord", 60.0))
    assert len(numbers) == 20
    cloud.worker.close()
    assert model.given_up == 1

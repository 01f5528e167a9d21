"""Virtual time: the clock jumps, what passes cost is charged, two runs have one timeline, and a deadlock is told."""

import asyncio
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from antiphon.cloud.connection import CloudConnection
from antiphon.cloud.service import Cloud
from antiphon.cloud.session import SessionHost
from antiphon.config import Limits, Timeouts
from antiphon.device.answer import Answer
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.device.runner import Host
from antiphon.device.session import DeviceSession
from antiphon.engine.worker import Worker
from antiphon.errors import ProtocolError
from antiphon.methods.drive import drive, serve
from antiphon.methods.effects import Finish, Now, Receive, ServingHalf, Step
from antiphon.models.toy import ToyModel, named_toy
from antiphon.testing.distributions import SHARED
from antiphon.transport.frames import memory_pair, next_within
from antiphon.vocabulary import identity
from antiphon.wire.messages import Draft, Message
from antiphon.wire.session import Received
from antiphon_lab.links.virtual_time import Deadlock, VirtualWorker, run_virtual
from support.broken_links import Network, broken, random_delay
from support.links import request

Result = TypeVar("Result")


def now() -> float:
    return asyncio.get_running_loop().time()


# The clock.


def test_hours_pass_at_once_and_to_the_point() -> None:
    async def run() -> list[float]:
        times = [now()]
        for seconds in (0.25, 7200.0, 0.0):
            await asyncio.sleep(seconds)
            times.append(now())
        return times

    assert run_virtual(run()) == [0.0, 0.25, 7200.25, 7200.25]


def test_computing_takes_no_time() -> None:
    async def run() -> float:
        sum(range(2_000_000))
        await asyncio.sleep(0)
        return now()

    assert run_virtual(run()) == 0.0


def test_timers_end_in_order_whoever_began_first() -> None:
    async def run() -> list[tuple[float, str]]:
        seen: list[tuple[float, str]] = []

        async def one(name: str, *pauses: float) -> None:
            for pause in pauses:
                await asyncio.sleep(pause)
                seen.append((now(), name))

        await asyncio.gather(one("slow", 3.0, 3.0), one("fast", 1.0, 1.0, 1.5), one("late", 5.0))
        return seen

    assert run_virtual(run()) == [(1.0, "fast"), (2.0, "fast"), (3.0, "slow"), (3.5, "fast"), (5.0, "late"), (6.0, "slow")]


def test_timeouts_count_virtual_seconds() -> None:
    async def run() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(40.0):
                await asyncio.Event().wait()
        return now()

    assert run_virtual(run()) == 40.0


def test_everything_waiting_is_a_deadlock() -> None:
    async def run() -> None:
        first: asyncio.Queue[int] = asyncio.Queue()
        second: asyncio.Queue[int] = asyncio.Queue()

        async def pass_on(source: "asyncio.Queue[int]", target: "asyncio.Queue[int]") -> None:
            target.put_nowait(await source.get())

        await asyncio.gather(pass_on(first, second), pass_on(second, first))

    with pytest.raises(Deadlock, match="everything waits, and nothing is due to happen"):
        run_virtual(run())


def test_the_loop_is_gone_afterwards_whatever_happened() -> None:
    async def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run_virtual(fail())
    with pytest.raises(RuntimeError, match="no running event loop"):
        asyncio.get_running_loop()
    assert run_virtual(asyncio.sleep(1.0, "again")) == "again"


# The worker.


def by_width(width: int, length: int) -> float:
    """1 s, 0.1 a token, 0.001 a token that is looked back on."""
    return 1.0 + 0.1 * width + 0.001 * length


def test_a_call_is_charged_for_its_passes() -> None:
    context = ToyModel(SHARED).open()

    async def run() -> tuple[list[float], float]:
        worker = VirtualWorker(by_width)

        def two_passes() -> list[float]:
            assert now() == 0.0, "the work is done first, and paid for afterwards"
            return [worker.timed(partial(context.extend, [0] * width), width, width)[1] for width in (1, 4)]

        return await worker.run(two_passes), now()

    charged, ended = run_virtual(run())
    assert charged == [pytest.approx(1.101), pytest.approx(1.404)]
    assert ended == pytest.approx(sum(charged))
    assert context.length == 5


def test_a_call_without_a_pass_is_free() -> None:
    async def run() -> tuple[int, float]:
        return await VirtualWorker(by_width).run(lambda: 7), now()

    assert run_virtual(run()) == (7, 0.0)


def test_calls_wait_for_their_turn_in_the_order_in_which_they_came() -> None:
    async def run() -> list[tuple[str, float, float]]:
        worker = VirtualWorker(lambda width, length: float(width))
        seen: list[tuple[str, float, float]] = []

        async def call(name: str, after: float, width: int) -> None:
            await asyncio.sleep(after)
            began: list[float] = []

            def forward() -> None:
                began.append(now())

            await worker.run(lambda: worker.timed(forward, width, 0))
            seen.append((name, began[0], now()))

        await asyncio.gather(call("b", 0.5, 1), call("a", 0.0, 3), call("d", 2.0, 1), call("c", 1.0, 2))
        return seen

    assert run_virtual(run()) == [("a", 0.0, 3.0), ("b", 3.0, 4.0), ("c", 4.0, 6.0), ("d", 6.0, 7.0)]


def test_a_pass_that_fails_is_paid_for_and_the_next_one_has_its_turn() -> None:
    async def run() -> tuple[float, int]:
        worker = VirtualWorker(lambda width, length: 2.0)

        def broken_pass() -> None:
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await worker.run(lambda: worker.timed(broken_pass, 1, 0))
        return now(), await worker.run(lambda: worker.timed(lambda: 5, 1, 0)[0])

    assert run_virtual(run()) == (2.0, 5)


def test_a_caller_that_is_cancelled_gives_up_its_turn() -> None:
    async def run() -> tuple[float, int]:
        worker = VirtualWorker(lambda width, length: 5.0)
        first = asyncio.create_task(worker.run(lambda: worker.timed(lambda: 1, 1, 0)))
        await asyncio.sleep(1.0)
        first.cancel()
        found = await worker.run(lambda: 2)
        return now(), found

    assert run_virtual(run()) == (1.0, 2)


def test_a_pass_that_is_given_up_is_paid_until_then() -> None:
    """And the next call has its turn at once. A pass that ends first has its result."""

    async def run() -> list[object]:
        worker, told, found = VirtualWorker(lambda width, length: 2.0), asyncio.Event(), []
        asyncio.get_running_loop().call_later(2.5, told.set)
        for _ in range(3):
            found.append((*await worker.preemptible(lambda: worker.timed(lambda: "distribution", 1, 0)[0], told), now()))
        return [*found, await worker.run(lambda: now())]

    assert run_virtual(run()) == [("distribution", 0.0, 2.0), (None, 1.5, 2.5), (None, 2.0, 2.5), 2.5]


def test_the_real_worker_measures() -> None:
    async def run() -> tuple[int, float]:
        worker = Worker()
        try:
            return await worker.run(lambda: worker.timed(lambda: sum(range(1000)), 3, 9))
        finally:
            worker.close()

    result, seconds = asyncio.run(run())
    assert result == 499_500
    assert 0.0 < seconds < 1.0


# Whole answers.


def timeline(seed: int) -> list[tuple[float, str, object]]:
    """Everything that crosses the link for three answers, and when."""

    async def test(device: Device, connection: Connection, network: Network) -> list[tuple[float, str, object]]:
        await asyncio.gather(*(device.generate(request(name, tokens=20), connection) for name in ("coupled", "dssd", "cloud")))
        return list(network.log)

    return broken(test, delay=random_delay(seed, 0.05))


def test_two_runs_have_one_timeline() -> None:
    first = timeline(1)
    assert len(first) > 60
    assert first == timeline(1)
    assert [time for time, _, _ in first] != [time for time, _, _ in timeline(2)]


def test_an_answer_takes_what_its_passes_and_trips_take() -> None:
    """`cloud`: one way up, the prompt's pass, one pass a token, one way down."""

    async def test(device: Device, connection: Connection, network: Network) -> tuple[float, float, int, float]:
        result = await device.generate(request("cloud", tokens=20, prompt="the other one"), connection)
        return result.answer.first_token_s, result.answer.seconds, result.tokens, result.compute_ms

    first, whole, tokens, compute = broken(
        test, delay=lambda: 0.1, costs=(lambda width, length: 9.0, lambda width, length: 0.5 if width == 1 else 2.0)
    )
    assert first == pytest.approx(0.1 + 2.0 + 0.5 + 0.1)
    assert whole == pytest.approx(first + 0.5 * (tokens - 1))
    assert compute == pytest.approx(1000 * (2.0 + 0.5 * tokens))


# `Receive(within)` and `Now`, on every host.


def asking(seen: list[tuple[str, object]]) -> ServingHalf:
    """Asks for what has come already, then for at most a second, then for as long as it takes; computes in between."""
    context = ToyModel(SHARED).open()
    for name, within in (("at once", 0.0), ("soon", 1.0), ("at last", None), ("at once", 0.0), ("soon", 1.0)):
        started = yield Now()
        message = yield Receive(within)
        waited = (yield Now()) - started
        seen.append((name, message if message is None else message.round, round(waited, 6)))
        yield Step(context, 0, [0], 1)
    return Finish.END


EXPECTED = [("at once", None, 0.0), ("soon", None, 1.0), ("at last", 1, 1.8), ("at once", 2, 0.0), ("soon", 3, 0.3)]
SENT = [(3.0, 1), (3.05, 2), (3.5, 3)]
"""When messages come, and their rounds."""


def deliver(take: Callable[[Message], None]) -> None:
    for time, number in SENT:
        asyncio.get_running_loop().call_at(time + 1e-9 * number, take, Draft(number, 0, b""))


def tenth(width: int, length: int) -> float:
    """A tenth of a second."""
    return 0.1


def device_host() -> tuple[Any, Callable[[Message], None]]:
    session = DeviceSession(SimpleNamespace(wire=None, timeouts=Timeouts()), 1)  # type: ignore[arg-type]
    host = Host(VirtualWorker(tenth), Answer(identity(ToyModel(SHARED).vocabulary), (), 0.0), lambda pieces: None)
    host.sessions = SimpleNamespace(send=session.send, receive=session.receive)
    return host, session.deliver


def cloud_host(idle_seconds: float = 300.0) -> tuple[Any, Callable[[Message], None]]:
    cloud = Cloud(named_toy("toy-cloud"), Limits(idle_seconds=idle_seconds), worker=VirtualWorker(tenth))
    host = SessionHost(CloudConnection(cloud, memory_pair()[1]), 1)
    return host, lambda message: host.deliver(Received(1, message))


@pytest.mark.parametrize(("make", "driver"), [(device_host, drive), (cloud_host, serve)])
def test_a_half_waits_as_long_as_it_says(make: Callable[[], tuple[Any, Callable[[Message], None]]], driver: Any) -> None:
    async def run() -> list[tuple[str, object]]:
        host, take = make()
        seen: list[tuple[str, object]] = []
        deliver(take)
        await driver(asking(seen), host)
        return seen

    assert run_virtual(run()) == EXPECTED


def test_a_device_that_is_silent_is_given_up_however_the_half_waits() -> None:
    """The limit is the cloud's own for a message that must come; one that need not come may be as late as it likes."""

    async def run(within: float | None) -> tuple[object, float]:
        host, _ = cloud_host(idle_seconds=5.0)
        try:
            return await host.receive(within), now()
        except ProtocolError as error:
            return str(error), now()

    assert run_virtual(run(None)) == ("the device was silent for 5 s, so its session is over", 5.0)
    assert run_virtual(run(9.0)) == (None, 9.0)
    assert run_virtual(run(0.0)) == (None, 0.0)


@pytest.mark.parametrize("within", [0.0, -1.0, 0.5, None])
def test_what_has_come_is_taken_in_order_however_long_one_would_wait(within: float | None) -> None:
    async def run() -> list[int | None]:
        queue: asyncio.Queue[int] = asyncio.Queue()
        for number in (1, 2):
            queue.put_nowait(number)
        return [await next_within(queue, within) for _ in range(2)]

    assert run_virtual(run()) == [1, 2]

"""Two ends with a link between them: exact in virtual time, close in real time; errors and the end are clean."""

import asyncio
import statistics
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import LinkError
from antiphon.transport.frames import memory_pair
from antiphon.transport.websocket import header_bytes
from antiphon_lab.links.emulated import CLOSE_BYTES, LinkedTransport, emulate, precise_loop
from antiphon_lab.links.link import Channel, Direction, Link
from antiphon_lab.links.notation import parse_link
from antiphon_lab.links.profiles import PROFILES
from antiphon_lab.links.virtual_time import run_virtual
from support.examples import examples

Result = TypeVar("Result")

LINK = Link("test", Direction(1e6, 0.05, overhead=0), Direction(2e6, 0.02, overhead=0), "here", handshakes=0)
EXACT = 1e-8
"""Seconds by which a timer of asyncio may be early."""


def now() -> float:
    return asyncio.get_running_loop().time()


def virtual(test: Callable[[LinkedTransport, LinkedTransport], Awaitable[Result]], link: Link = LINK) -> Result:
    """Run `test` with two ends; afterwards both are closed, and nothing is left running."""

    async def run() -> Result:
        device, cloud = emulate(*memory_pair(), link, seed=1)
        result = await test(device, cloud)
        await asyncio.gather(device.close(), cloud.close())
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    return run_virtual(run())


async def echo(end: LinkedTransport) -> None:
    """Send back what comes, until the link ends."""
    try:
        while True:
            await end.send(await end.receive())
    except LinkError:
        return


async def trips(device: LinkedTransport, cloud: LinkedTransport, size: int, count: int) -> list[float]:
    """Seconds of frames of `size` bytes to the cloud and back."""
    echoing, found = asyncio.create_task(echo(cloud)), []
    await device.send(b"first")  # the handshakes come before it
    await device.receive()
    for _ in range(count):
        started = now()
        await device.send(bytes(size))
        await device.receive()
        found.append(now() - started)
    await device.close()
    await echoing
    return found


@pytest.mark.parametrize("size", [0, 10, 200, 100_000])
def test_a_frame_takes_its_time_and_comes_whole(size: int) -> None:
    async def test(device: LinkedTransport, cloud: LinkedTransport) -> None:
        await device.send(b"x" * size)
        assert now() == 0.0  # it is handed over, and the queue has room
        assert await cloud.receive() == b"x" * size
        assert now() == pytest.approx(0.05 + 8 * (size + header_bytes(size, True)) / 1e6, abs=EXACT)
        started = now()
        await cloud.send(b"y" * size)
        assert await device.receive() == b"y" * size
        assert now() - started == pytest.approx(0.02 + 8 * (size + header_bytes(size, False)) / 2e6, abs=EXACT)

    virtual(test)


@pytest.mark.parametrize("name", PROFILES)
def test_round_trips_and_goodput_of_every_profile_in_virtual_time(name: str) -> None:
    link = parse_link(f"{name},jitter=0ms,window=0")  # slow start is tested by itself
    found = virtual(lambda device, cloud: trips(device, cloud, 60, 20), link)
    expected = link.round_trip(60 + header_bytes(60, True), 60 + header_bytes(60, False))
    assert found == pytest.approx([expected] * 20, abs=20 * EXACT)

    payload = 28_000 / link.up.wire_bytes(28_000 + header_bytes(28_000, True))
    assert virtual(bulk, link) == pytest.approx(link.up.rate * payload, rel=1e-4)


def test_mean_round_trip_with_jitter_is_the_profile_s() -> None:
    link = parse_link("4g")
    found = virtual(lambda device, cloud: trips(device, cloud, 60, 2000), link)
    assert statistics.mean(found) == pytest.approx(link.round_trip(66, 62), rel=0.02)


async def send_all(end: LinkedTransport, frames: list[bytes]) -> None:
    for frame in frames:
        await end.send(frame)


FRAMES = st.lists(st.tuples(st.sampled_from([0.0, 0.0, 0.003, 0.5]), st.integers(0, 30_000)), min_size=1, max_size=25)
LINKS = st.sampled_from(["4g,loss=20%", "3g,jitter=50ms", "satellite,outage=1s-3s,every=5s", "lan", "up=1Mbit,queue=5000"])


@examples(30)
@given(FRAMES, LINKS)
def test_frames_arrive_in_order_when_the_model_says(frames: list[tuple[float, int]], name: str) -> None:
    async def test(device: LinkedTransport, cloud: LinkedTransport) -> None:
        model, _ = parse_link(name).channels(1)
        expected: list[float] = []

        async def send() -> None:
            for number, (gap, size) in enumerate(frames):
                await asyncio.sleep(gap)
                frame = number.to_bytes(2) + bytes(size)
                handed = now()
                expected.append(model.arrival(len(frame) + header_bytes(len(frame), True), handed))
                await device.send(frame)
                assert now() == pytest.approx(model.accepted(handed), abs=EXACT * len(frames))

        sending = asyncio.create_task(send())
        for number, (_, size) in enumerate(frames):
            assert await cloud.receive() == number.to_bytes(2) + bytes(size)
            assert now() == pytest.approx(expected[number], abs=EXACT * len(frames))
        await sending

    virtual(test, parse_link(name))


def test_a_sender_waits_while_the_queue_is_full() -> None:
    link = parse_link("up=1Mbit,overhead=0,queue=10000,handshakes=0")

    async def test(device: LinkedTransport, cloud: LinkedTransport) -> list[float]:
        times = []
        for _ in range(4):
            await device.send(bytes(4992))  # 5,000 with the header: 40 ms
            times.append(now())
        return times

    assert virtual(test, link) == pytest.approx([0.0, 0.0, 0.04, 0.08], abs=EXACT)


def test_senders_who_wait_keep_their_order() -> None:
    link = parse_link("up=1Mbit,queue=100")

    async def test(device: LinkedTransport, cloud: LinkedTransport) -> list[bytes]:
        async with asyncio.TaskGroup() as senders:
            for number in range(20):
                senders.create_task(device.send(bytes([number]) * 500))
        return [(await cloud.receive())[:1] for _ in range(20)]

    assert virtual(test, link) == [bytes([number]) for number in range(20)]


def test_what_was_sent_arrives_though_the_sender_closed() -> None:
    async def test(device: LinkedTransport, cloud: LinkedTransport) -> None:
        await device.send(b"last words")
        closing = asyncio.create_task(device.close("done"))
        assert await cloud.receive() == b"last words"
        with pytest.raises(LinkError, match="the other end closed the link"):
            await cloud.receive()
        size = 10 + 6 + CLOSE_BYTES + 4 + 6
        assert now() == pytest.approx(0.05 + 8 * size / 1e6, abs=EXACT)  # the notice took its way behind them
        await closing
        await device.close()
        with pytest.raises(LinkError, match="the link is closed"):
            await device.send(b"more")

    virtual(test)


class Breaking:
    """A transport that breaks at the second frame."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed = ""

    async def send(self, frame: bytes) -> None:
        if self.sent:
            raise LinkError("the cable is cut")
        self.sent.append(frame)

    async def receive(self) -> bytes:
        return b"received"

    async def close(self, reason: str = "") -> None:
        self.closed = reason


def test_an_error_of_the_wrapped_transport_comes_out_at_the_next_call() -> None:
    async def test() -> None:
        wrapped = Breaking()
        end = LinkedTransport(wrapped, Channel(LINK.up, 1), from_device=True)
        for frame in (b"one", b"two", b"three"):
            await end.send(frame)
        assert await end.receive() == b"received"
        await asyncio.sleep(1)
        for call in (end.send(b"four"), end.receive()):
            with pytest.raises(LinkError, match="the cable is cut"):
                await call
        await end.close("bye")
        assert (wrapped.sent, wrapped.closed) == ([b"one"], "bye")
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(test())


@pytest.mark.parametrize("queue", [0, 1000])
def test_a_close_that_is_cancelled_leaves_nothing_running(queue: int) -> None:
    """Whether it waits for the queue or for what is on its way."""

    async def test() -> None:
        wrapped = Breaking()
        end = LinkedTransport(wrapped, Channel(replace(LINK.up, queue=queue, rate=1000.0), 1), from_device=True)
        sending = asyncio.create_task(end.send(b"one"))
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await end.close("bye")
        assert (wrapped.sent, wrapped.closed) == ([], "bye")
        await sending
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(test())


class Slow(Breaking):
    """A transport whose receiver takes a second for each frame."""

    async def send(self, frame: bytes) -> None:
        await asyncio.sleep(1)
        self.sent.append(frame)


def test_a_receiver_that_is_slow_slows_the_sender() -> None:
    async def test() -> list[float]:
        wrapped, times = Slow(), []
        end = LinkedTransport(wrapped, Channel(replace(LINK.up, delay=0.0), 1), from_device=True)
        for number in range(5):
            await end.send(bytes([number]))
            times.append(round(now(), 3))
            await asyncio.sleep(0.1)
        await end.close()
        assert wrapped.sent == [bytes([number]) for number in range(5)]
        return times

    assert run_virtual(test()) == [0.0, 1.0, 2.0, 3.0, 4.0]


def real(test: Callable[[LinkedTransport, LinkedTransport], Awaitable[Result]], link: Link) -> Result:
    """Run `test` in real time, with fine timers."""

    async def run() -> Result:
        device, cloud = emulate(*memory_pair(), link, seed=1)
        result = await test(device, cloud)
        await asyncio.gather(device.close(), cloud.close())
        return result

    with asyncio.Runner(loop_factory=precise_loop) as runner:
        return runner.run(run())


async def bulk(device: LinkedTransport, cloud: LinkedTransport) -> float:
    """Bit/s of frames that come one after the other, in order, for a second or so at up to 100 Mbit/s."""
    sending = asyncio.create_task(send_all(device, [number.to_bytes(4) + bytes(27_996) for number in range(40)]))
    times = []
    for number in range(40):
        assert int.from_bytes((await cloud.receive())[:4]) == number
        times.append(now())
    await sending
    return 8 * 28_000 * 39 / (times[-1] - times[0])


def later(link: Link) -> float:
    """By how much real round trips are longer than the model's with the same jitter: the median, in seconds."""
    found = real(lambda device, cloud: trips(device, cloud, 60, 25), link)
    exact = virtual(lambda device, cloud: trips(device, cloud, 60, 25), link)
    return statistics.median(one - other for one, other in zip(found, exact, strict=True))


def lateness() -> float:
    """How late bare timers of this machine are just now, in seconds: of forty the one that only four exceed."""

    async def run() -> list[float]:
        late = []
        for _ in range(40):
            due = now() + 0.01
            await asyncio.sleep(0.01)
            late.append(now() - due)
        return sorted(late)

    with asyncio.Runner(loop_factory=precise_loop) as runner:
        return runner.run(run())[35]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["concord,up=50Mbit", "4g", "wifi"])
def test_the_link_in_real_time(name: str) -> None:
    """Beside the model's own times: round trips within 2 % or 1 ms, goodput within 3 %, and what bare timers are late here.

    A trip has a timer each way. One of three: a machine can become busy between the timers' turn and the link's.
    """
    link = parse_link(name)
    assert any(-1e-4 < later(link) < max(1e-3, 0.02 * link.round_trip()) + 4 * lateness() for _ in range(3))
    exact = virtual(bulk, link)
    seconds = 8 * 28_000 * 39 / exact
    assert any(
        8 * 28_000 * 39 / real(bulk, link) == pytest.approx(seconds, abs=0.03 * seconds + 4 * lateness()) for _ in range(3)
    )

"""One thread in which a model computes: calls in order, faults to whoever asked, nothing held that nobody waits for."""

import asyncio
import logging
import threading

import pytest

from antiphon.engine.worker import Worker


class Opened:
    def __init__(self) -> None:
        self.closed_in: list[str] = []

    def close(self) -> None:
        self.closed_in.append(threading.current_thread().name)


async def gated(worker: Worker) -> threading.Event:
    """The thread under way in a call that ends when the event is set."""
    began, gate = threading.Event(), threading.Event()

    def wait() -> None:
        began.set()
        assert gate.wait(30)

    worker.post(wait)
    await asyncio.to_thread(began.wait, 30)
    return gate


def test_calls_run_in_the_order_in_which_they_came_in_one_thread() -> None:
    worker, seen = Worker(), []

    async def all_of_them() -> list[int]:
        def call(number: int) -> int:
            seen.append((number, threading.get_ident()))
            return number

        return await asyncio.gather(*(worker.run(lambda number=number: call(number)) for number in range(20)))

    assert asyncio.run(all_of_them()) == list(range(20))
    worker.close()
    assert [number for number, _ in seen] == list(range(20))
    assert len({thread for _, thread in seen} | {threading.get_ident()}) == 2


def test_a_fault_goes_to_whoever_asked_and_the_next_call_runs() -> None:
    worker = Worker()

    async def two() -> int:
        with pytest.raises(ZeroDivisionError):
            await worker.run(lambda: 1 // 0)
        return await worker.run(lambda: 7)

    assert asyncio.run(two()) == 7
    worker.close()


def test_a_fault_that_nobody_asked_for_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker()
    with caplog.at_level(logging.ERROR):
        worker.post(lambda: 1 // 0)
        worker.close()
    assert "a call in the model's thread failed" in caplog.text


def test_whoever_is_cancelled_while_it_waits_for_its_turn_keeps_nothing() -> None:
    worker, opened = Worker(), Opened()

    async def cancelled() -> None:
        gate = await gated(worker)

        async def hold() -> None:
            async with worker.holding(lambda: opened):
                raise AssertionError("it was never held")

        holding = asyncio.create_task(hold())
        await asyncio.sleep(0)
        holding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await holding
        gate.set()

    asyncio.run(cancelled())
    worker.close()
    assert len(opened.closed_in) <= 1  # its call was dropped, or came to its turn and was closed behind it


def test_what_is_held_is_closed_in_the_models_thread_whatever_happens_to_whom_holds_it() -> None:
    worker, opened = Worker(), Opened()

    async def failing() -> None:
        async with worker.holding(lambda: opened) as held:
            assert held is opened
            assert not opened.closed_in
            raise ConnectionError

    with pytest.raises(ConnectionError):
        asyncio.run(failing())
    worker.close()
    (thread,) = opened.closed_in
    assert thread.startswith("model")


def test_closing_waits_for_the_call_under_way_and_drops_the_rest() -> None:
    worker, ran = Worker(), []

    async def closed() -> None:
        gate = await gated(worker)
        waiting = asyncio.create_task(worker.run(lambda: ran.append("dropped")))
        await asyncio.sleep(0)
        closing = asyncio.create_task(asyncio.to_thread(worker.close))
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not closing.done()
        gate.set()
        await closing

    asyncio.run(closed())
    assert ran == []
    worker.post(lambda: ran.append("late"))  # quietly nothing: the thread has ended
    assert ran == []

"""When a link counts as lost, in virtual time: 45 s without a sign, or in which nothing is taken; never because of us."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from antiphon.transport.liveness import Liveness, unsent
from antiphon_lab.links.virtual_time import run_virtual


@dataclass
class Wire:
    """A transport: what waits to be sent, whether it listens, and what happened when."""

    waiting: int = 0
    reading: bool = True
    pings: list[float] = field(default_factory=list)
    lost: list[tuple[float, str]] = field(default_factory=list)

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def get_extra_info(self, name: str) -> None:
        return None

    def is_reading(self) -> bool:
        return self.reading


def now() -> float:
    return asyncio.get_running_loop().time()


def watched(act: Callable[[Wire, Liveness], object], seconds: float = 45.0, until: float = 400.0) -> Wire:
    """A wire that was watched for a while; `act` arranges what happens."""

    async def run() -> Wire:
        wire = Wire()
        pulse = Liveness(wire, seconds, lambda: wire.pings.append(now()), lambda why: wire.lost.append((now(), why)))  # type: ignore[arg-type]
        act(wire, pulse)
        await asyncio.sleep(until)
        pulse.stop()
        return wire

    return run_virtual(run())


def every(seconds: float, call: Callable[[], object], times: int = 10**4) -> None:
    loop = asyncio.get_running_loop()
    for index in range(1, min(times, 2000) + 1):
        loop.call_later(index * seconds, call)


def test_a_silent_link_is_asked_and_then_lost() -> None:
    wire = watched(lambda wire, pulse: None)
    assert wire.lost == [(45.0, "it gave no sign for 45 s")]
    assert wire.pings == [15.0, 30.0]


def test_any_byte_is_a_sign_so_a_frame_that_is_partly_here_is_one() -> None:
    wire = watched(lambda wire, pulse: every(40.0, pulse.heard))
    assert not wire.lost


@pytest.mark.parametrize("last", [1.0, 7.0, 14.9, 44.0])
def test_a_link_is_lost_45_s_after_its_last_sign_to_the_second(last: float) -> None:
    def act(wire: Wire, pulse: Liveness) -> None:
        asyncio.get_running_loop().call_later(last, pulse.heard)

    assert [when for when, _ in watched(act).lost] == pytest.approx([last + 45.0])


def test_a_link_that_speaks_is_not_asked() -> None:
    assert not watched(lambda wire, pulse: every(1.0, pulse.heard)).pings


def test_an_end_that_does_not_listen_itself_takes_no_silence_for_a_loss() -> None:
    def act(wire: Wire, pulse: Liveness) -> None:
        wire.reading = False

    assert not watched(act).lost


def test_what_is_not_taken_ends_the_link_though_it_speaks() -> None:
    def act(wire: Wire, pulse: Liveness) -> None:
        every(1.0, pulse.heard)
        wire.waiting = 70_000
        pulse.paused()

    wire = watched(act)
    assert wire.lost == [(45.0, "it took nothing for 45 s")]


def test_what_is_taken_slowly_is_taken() -> None:
    def act(wire: Wire, pulse: Liveness) -> None:
        every(1.0, pulse.heard)
        wire.waiting = 70_000
        pulse.paused()

        def one_byte() -> None:
            wire.waiting -= 1

        every(14.0, one_byte)

    assert not watched(act).lost


def test_a_link_that_takes_all_and_is_full_again_is_not_lost() -> None:
    def act(wire: Wire, pulse: Liveness) -> None:
        def full_again() -> None:
            pulse.resumed()
            wire.waiting = 70_000
            pulse.paused()

        every(1.0, pulse.heard)
        every(20.0, full_again)

    assert not watched(act).lost


def test_a_link_that_has_ended_is_watched_no_longer() -> None:
    assert not watched(lambda wire, pulse: pulse.stop()).lost


@pytest.mark.parametrize("seconds", [0.3, 3.0, 300.0])
def test_the_time_is_what_was_asked_for(seconds: float) -> None:
    assert [when for when, _ in watched(lambda wire, pulse: None, seconds).lost] == pytest.approx([seconds])


def test_what_the_system_keeps_counts_as_not_taken() -> None:
    ours, theirs = socket.socketpair()
    with contextlib.closing(ours), contextlib.closing(theirs):
        wire = Wire(waiting=5)
        wire.get_extra_info = lambda name: ours  # type: ignore[assignment, method-assign]
        before = unsent(wire)  # type: ignore[arg-type]
        ours.send(b"x" * 1000)
        assert before == 5
        assert unsent(wire) >= 5  # type: ignore[arg-type]

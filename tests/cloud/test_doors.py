"""Who comes in: so many at once, those that ask before those that are silent, and no page of another origin."""

import asyncio
import contextlib
import json
import logging
import resource
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.client import connect as dial_raw
from websockets.exceptions import InvalidStatus

from antiphon.cloud.doors import BEGUN_BYTES, KEPT_DESCRIPTORS, Doors, foreign_page
from antiphon.cloud.server import serving
from antiphon.cloud.service import Cloud
from antiphon.config import ServeConfig, Timeouts
from antiphon.core.stream import LOCKSTEP
from antiphon.errors import CapacityError, ModelError
from antiphon.models.toy import ToyModel, named_toy, toy_pieces
from support.links import request, toy_cloud, toy_device


class Guest:
    """A connection by name."""

    def __init__(self, at_work: bool = False) -> None:
        self.at_work, self.dismissed = at_work, False

    def dismiss(self) -> None:
        self.dismissed = True


def test_the_first_that_is_not_at_work_makes_room() -> None:
    doors = Doors(ServeConfig(connections=3))
    guests = [Guest(at_work=True), Guest(), Guest()]
    assert all(map(doors.admit, guests))
    assert doors.admit(Guest(at_work=True))
    assert [guest.dismissed for guest in guests] == [False, True, False]
    assert len(doors) == 3


def test_nobody_at_work_is_sent_away() -> None:
    doors = Doors(ServeConfig(connections=2))
    guests = [Guest(at_work=True), Guest(at_work=True)]
    assert all(map(doors.admit, guests))
    assert not doors.admit(Guest())
    doors.leave(guests[0])
    assert doors.admit(Guest())
    assert not any(guest.dismissed for guest in guests)


@given(st.lists(st.tuples(st.sampled_from(["come", "go", "work", "rest"]), st.integers(0, 5)), max_size=60))
def test_there_are_never_more_than_fit_and_no_one_is_forgotten(acts: Sequence[tuple[str, int]]) -> None:
    doors, inside = Doors(ServeConfig(connections=3)), list[Guest]()
    for act, index in acts:
        if act == "come":
            guest = Guest()
            if doors.admit(guest):
                inside.append(guest)
        elif inside:
            guest = inside[index % len(inside)]
            if act == "go":
                doors.leave(guest)
                inside.remove(guest)
            else:
                guest.at_work = act == "work"
        inside = [guest for guest in inside if not guest.dismissed]
        assert len(doors) == len(inside) <= 3


def test_frames_that_are_partly_here_take_so_much_and_no_more() -> None:
    doors = Doors(ServeConfig())
    guests = [Guest(at_work=True) for _ in range(5)]
    assert all(map(doors.admit, guests))
    for guest in guests[:3]:
        doors.begun(guest, BEGUN_BYTES // 3)
    doors.begun(guests[1], 0)
    doors.begun(guests[3], BEGUN_BYTES // 4)
    assert not any(guest.dismissed for guest in guests)
    doors.begun(guests[4], BEGUN_BYTES // 2)
    assert [guest.dismissed for guest in guests] == [False, False, False, False, True]
    assert doors._begun_bytes == 2 * (BEGUN_BYTES // 3) + BEGUN_BYTES // 4
    for guest in guests:
        doors.leave(guest)
    assert doors._begun_bytes == 0


def test_there_is_a_descriptor_for_every_connection() -> None:
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert Doors(ServeConfig(connections=2**30))._most <= max(8, soft - KEPT_DESCRIPTORS)


ORIGINS = [
    ([], ["anything.example"], True),  # no browser
    (["https://evil.example"], ["127.0.0.1:8765"], False),
    (["http://127.0.0.1:3000"], ["127.0.0.1:8765"], False),
    (["http://127.0.0.1:8765"], ["127.0.0.1:8765"], True),
    (["http://localhost:8765"], ["localhost:8765"], True),
    (["http://[::1]:8765"], ["[::1]:8765"], True),
    (["http://cloud.lab:8765"], ["cloud.lab:8765"], True),
    (["http://rebound.example:8765"], ["rebound.example:8765"], False),  # a name that its owner made to lead here
    (["null"], ["127.0.0.1:8765"], False),
    (["file://"], ["127.0.0.1:8765"], False),
    (["http://127.0.0.1:8765", "https://evil.example"], ["127.0.0.1:8765"], False),
    (["http://127.0.0.1:8765"], ["127.0.0.1:8765", "evil.example"], False),
    (["http://127.0.0.1:8765"], [], False),
    (["http://[::1"], ["[::1"], False),
    (["http://h:99999"], ["h:99999"], False),
    ([""], [""], False),
    (["chrome-extension://abcdef"], ["abcdef"], False),
]


@pytest.mark.parametrize(("origins", "hosts", "let_in"), ORIGINS)
def test_which_pages_are_foreign(origins: list[str], hosts: list[str], let_in: bool) -> None:
    assert (foreign_page(origins, hosts, "cloud.lab") is None) == let_in


@given(st.lists(st.text(), min_size=1, max_size=2), st.lists(st.text(), max_size=2))
def test_whatever_a_browser_says_there_is_an_answer(origins: list[str], hosts: list[str]) -> None:
    foreign_page(origins, hosts, "127.0.0.1")


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:1", "null"])
def test_a_page_of_another_origin_is_refused_and_a_device_served(origin: str) -> None:
    async def run() -> None:
        async with toy_cloud() as url:
            with pytest.raises(InvalidStatus) as caught:
                await dial_raw(url, origin=origin, compression=None, proxy=None)  # type: ignore[arg-type]
            assert caught.value.response.status_code == 403
            assert b"serves devices, and no page of another origin" in caught.value.response.body
            async with toy_device(url) as (device, connection):
                assert (await device.generate(request(), connection)).tokens > 0

    asyncio.run(asyncio.wait_for(run(), 60))


def silent(url: str) -> socket.socket:
    host, port = url.removeprefix("ws://").split(":")
    return socket.create_connection((host, int(port)))


def test_silent_connections_keep_no_device_out() -> None:
    async def run() -> None:
        cloud = Cloud(named_toy("toy-cloud"))
        async with serving(cloud, ServeConfig(port=0, connections=16)) as url:
            held = [await asyncio.to_thread(silent, url) for _ in range(80)]
            async with toy_device(url) as (device, connection):
                assert (await device.generate(request(), connection)).tokens > 0
            for one in held:
                one.close()
        cloud.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_connection_that_never_asks_is_ended() -> None:
    async def run() -> None:
        cloud = Cloud(named_toy("toy-cloud"))
        async with serving(cloud, ServeConfig(port=0, timeouts=Timeouts(arrive=0.4))) as url:
            for request_so_far in (b"", b"GET / HTT"):
                one = await asyncio.to_thread(silent, url)
                one.sendall(request_so_far)
                one.settimeout(20)
                with contextlib.suppress(ConnectionResetError):
                    assert await asyncio.to_thread(one.recv, 10) == b""
                one.close()
        cloud.close()

    asyncio.run(asyncio.wait_for(run(), 60))


UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
ENDLESS = {
    "questions one behind the other": b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 1000,
    "a request with a body": UPGRADE + b"Content-Length: 1000000\r\n\r\n",
    "a request of many headers": UPGRADE + b"X: y\r\n" * 1000 + b"\r\n",
    "a request of a long header": UPGRADE + b"X: " + b"y" * 20_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("asked", ENDLESS.values(), ids=ENDLESS)
def test_whoever_asks_without_end_is_at_work_for_one_answer(asked: bytes) -> None:
    async def run() -> None:
        cloud = Cloud(named_toy("toy-cloud"))
        async with serving(cloud, ServeConfig(port=0, connections=4)) as url:
            held = [await asyncio.to_thread(silent, url) for _ in range(4)]
            for one in held:
                one.settimeout(20)
                one.sendall(asked)
            assert await asyncio.to_thread(held[0].recv, 9) == b"HTTP/1.1 "
            async with toy_device(url) as (device, connection):
                assert (await device.generate(request(), connection)).tokens > 0
            for one in held:
                with contextlib.suppress(ConnectionError):
                    while await asyncio.to_thread(one.recv, 10_000):
                        pass
                one.close()
        cloud.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_text_that_is_none_is_refused_as_another_is(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> bytes:
        async with toy_cloud() as url, dial_raw(url, compression=None, proxy=None) as socket:
            await socket.send(b"\xff\xff", text=True)
            return await socket.recv(decode=False)

    assert b"frames are binary, this one is text" in asyncio.run(asyncio.wait_for(run(), 60))
    assert not caplog.records


def test_a_cloud_whose_devices_are_all_at_work_says_that_it_is_full() -> None:
    async def run() -> None:
        from antiphon.errors import LinkError
        from support.links import raw_session

        cloud = Cloud(named_toy("toy-cloud"))
        async with serving(cloud, ServeConfig(port=0, connections=1)) as url:
            async with toy_device(url) as (_, connection):
                await raw_session(connection, method="coupled", options={"patience": LOCKSTEP})
                while not cloud._answering:
                    await asyncio.sleep(0.01)
                with pytest.raises(LinkError, match="this cloud has no room for another connection"):
                    async with toy_device(url):
                        pass
            async with toy_device(url) as (device, connection):
                assert (await device.generate(request(), connection)).tokens > 0
        cloud.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_process_without_descriptors_writes_no_flood(caplog: pytest.LogCaptureFixture) -> None:
    """What the listener takes in one go is bounded, for asyncio writes a traceback for each that it cannot take."""

    async def run() -> None:
        cloud = Cloud(named_toy("toy-cloud"))
        async with serving(cloud, ServeConfig(port=0, timeouts=Timeouts(arrive=0.5))) as url:
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            held = [await asyncio.to_thread(silent, url) for _ in range(40)]
            resource.setrlimit(resource.RLIMIT_NOFILE, (len(held) + 40, hard))
            try:
                await asyncio.sleep(1.5)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for one in held:
                one.close()
            async with toy_device(url) as (device, connection):
                assert (await device.generate(request(), connection)).tokens > 0
        cloud.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(asyncio.wait_for(run(), 60))
    assert len(caplog.text) < 10**6


def ask_health(url: str) -> tuple[int, dict]:
    try:
        with urllib.request.urlopen(url.replace("ws://", "http://") + "/health") as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


class Full(ToyModel):
    def open(self) -> None:  # type: ignore[override]
        raise CapacityError("all contexts are in use")


class Broken(ToyModel):
    def open(self) -> None:  # type: ignore[override]
        raise ModelError("the model is broken")


@pytest.mark.parametrize(("kind", "told"), [(Full, (200, "full")), (Broken, (503, "failing")), (ToyModel, (200, "ok"))])
def test_a_full_cloud_is_not_a_failing_one(kind: type[ToyModel], told: tuple[int, str]) -> None:
    async def run() -> tuple[int, dict]:
        async with serving(Cloud(kind(toy_pieces(), name="toy")), ServeConfig(port=0)) as url:
            return await asyncio.to_thread(ask_health, url)

    status, body = asyncio.run(asyncio.wait_for(run(), 30))
    assert (status, body["status"]) == told


def test_asking_for_health_costs_the_others_one_pass_however_many_ask() -> None:
    class Counting(ToyModel):
        passes = 0

        def open(self):
            Counting.passes += 1
            return super().open()

    async def run() -> None:
        cloud = Cloud(Counting(toy_pieces(), name="toy"))
        async with serving(cloud, ServeConfig(port=0)) as url:
            answers = await asyncio.gather(*[asyncio.to_thread(ask_health, url) for _ in range(20)])
            assert {status for status, _ in answers} == {200}
        cloud.close()

    asyncio.run(asyncio.wait_for(run(), 30))
    assert Counting.passes == 1


def test_a_model_that_hangs_is_asked_once_and_told_of_in_time() -> None:
    from antiphon.cloud.health import Health, State

    async def run() -> None:
        cloud, free = Cloud(named_toy("toy-cloud")), threading.Event()
        cloud.worker.post(free.wait)
        health = Health(cloud, seconds=0.2)
        began = time.monotonic()
        found = await asyncio.gather(*[health.state() for _ in range(10)])
        assert {state for state, _ in found} == {State.FAILING}
        assert time.monotonic() - began < 15.0
        assert len(cloud.worker._asked) == 1
        free.set()
        while (await health.state())[0] is not State.OK:
            await asyncio.sleep(0.01)
        cloud.close()

    asyncio.run(asyncio.wait_for(run(), 30))

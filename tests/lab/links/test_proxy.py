"""The proxy between real sockets, in real time: what comes out is what went in, at the link's pace; and the command line's."""

import asyncio
import json
import logging
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from random import Random

import pytest

from antiphon.cli import main as product
from antiphon.errors import UsageError
from antiphon_lab.cli import main
from antiphon_lab.links.emulated import precise_loop
from antiphon_lab.links.notation import parse_link
from antiphon_lab.links.proxy import Address, Proxy, proxying, reset

PYTHON = [sys.executable, "-m"]
HERE = Address("127.0.0.1", 0)
BLOB = Random(1).randbytes(200_000)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send back what comes; after its end, `done`."""
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write(b"done")
    writer.close()


@asynccontextmanager
async def proxied(link: str, serve: Serve = echo) -> AsyncIterator[tuple[Proxy, Callable[[], Awaitable[Streams]]]]:
    """A server behind a proxy, and how to connect to it."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    target = Address(*server.sockets[0].getsockname()[:2])
    async with proxying(parse_link(link), HERE, target) as (proxy, address):
        yield proxy, lambda: asyncio.open_connection(address.host, address.port)
    server.close()


def run(test: Callable[[], Awaitable[None]]) -> None:
    with asyncio.Runner(loop_factory=precise_loop) as runner:
        runner.run(asyncio.wait_for(test(), 60))


def now() -> float:
    return asyncio.get_running_loop().time()


async def tried(least: float, most: float, act: Callable[[], Awaitable[None]]) -> int:
    """Act until it takes less than `most` seconds, and never less than `least`: how often.

    Whatever else runs on the machine only adds to real time, so the fastest of many times is what counts.
    """
    for count in range(1, 21):
        started = now()
        await act()
        took = now() - started
        assert took >= least
        if took < most:
            return count
    raise AssertionError(f"it never took less than {most} s")


async def trip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"x")
    assert await reader.readexactly(1) == b"x"


def test_bytes_come_back_as_they_were_after_their_time() -> None:
    async def test() -> None:
        async with proxied("rtt=40ms") as (proxy, connect):

            async def first() -> None:
                reader, writer = await connect()
                await trip(reader, writer)
                writer.close()

            greeted = await tried(0.08, 0.13, first)  # TCP's handshake, then there and back
            reader, writer = await connect()
            await trip(reader, writer)
            trips = greeted + 1 + await tried(0.04, 0.06, lambda: trip(reader, writer))
            writer.write(BLOB)
            writer.write_eof()
            assert await reader.read() == BLOB + b"done"  # the end of one direction does not end the other
            writer.close()
            await emptied(proxy)
            assert proxy.up.payload_bytes == trips + len(BLOB)
            assert proxy.down.payload_bytes == trips + len(BLOB) + 4 * (greeted + 1)
            assert (proxy.connections, proxy.total) == (0, greeted + 1)

    run(test)


async def emptied(proxy: Proxy) -> None:
    """Wait until the proxy has noticed that all connections are over."""
    while proxy.connections:
        await asyncio.sleep(0.005)


def test_connections_share_the_rate() -> None:
    async def send(connect: Callable[[], Awaitable[Streams]]) -> None:
        reader, writer = await connect()
        writer.write(BLOB[:50_000])
        writer.write_eof()
        assert await reader.read() == BLOB[:50_000] + b"done"
        writer.close()

    async def test() -> None:
        async with proxied("up=1Mbit,overhead=0") as (_, connect):

            async def both() -> None:
                await asyncio.gather(send(connect), send(connect))

            await tried(0.8, 1.0, both)  # 100,000 bytes at 1 Mbit/s

    run(test)


def test_a_receiver_that_does_not_read_stops_the_sender() -> None:
    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(10)

    async def test() -> None:
        async with proxied("lan", deaf) as (proxy, connect):
            _, writer = await connect()
            writer.write(bytes(100 * 2**20))
            seen = -1
            while proxy.up.payload_bytes != seen or seen == 0:
                seen = proxy.up.payload_bytes
                await asyncio.sleep(0.2)
            assert seen < 20 * 2**20  # what sockets hold
            writer.transport.abort()

    run(test)


def test_where_nobody_answers_the_connection_ends(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with proxying(parse_link("lan"), HERE, Address("127.0.0.1", 1)) as (proxy, address):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            assert await reader.read() == b""
            writer.close()
            await emptied(proxy)

    with caplog.at_level(logging.WARNING):
        run(test)
    assert [record.getMessage() for record in caplog.records] == ["antiphon: cannot reach 127.0.0.1:1 (Connection refused)"]


async def until_broken(reader: asyncio.StreamReader) -> bool:
    try:
        await reader.read()
    except ConnectionError:
        return True
    return False


def test_a_broken_connection_breaks_on_both_sides() -> None:
    broken, arrived = [], asyncio.Event()

    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        reset(writer)

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        broken.append(await until_broken(reader))
        writer.close()

    async def test() -> None:
        async with proxied("rtt=20ms", break_off) as (proxy, connect):
            reader, writer = await connect()
            writer.write(b"x")
            assert await until_broken(reader)
            await emptied(proxy)
        async with proxied("rtt=20ms", listen) as (proxy, connect):
            _, writer = await connect()
            await arrived.wait()
            reset(writer)
            await emptied(proxy)
            while not broken:
                await asyncio.sleep(0.005)
        assert broken == [True]

    run(test)


def test_a_proxy_that_stops_breaks_what_is_open() -> None:
    async def test() -> None:
        async with proxied("satellite") as (_, connect):
            reader, writer = await connect()
            writer.write(b"x")
            await asyncio.sleep(0.02)
        running = {task.get_coro().__qualname__ for task in asyncio.all_tasks()}
        assert not running & {"Proxy._connect", "_stream", "Delivery._run"}
        assert await until_broken(reader)

    run(test)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("127.0.0.1:9000", "127.0.0.1:9000"),
        ("ws://example.org:80/", "example.org:80"),
        ("[::1]:9000", "[::1]:9000"),
        ("ws://[::1]:9000", "[::1]:9000"),
    ],
)
def test_addresses(text: str, shown: str) -> None:
    assert str(Address.parse(text)) == shown


@pytest.mark.parametrize(
    "text", ["", "9000", "localhost", "ws://localhost", "http://h:80", "h:port", "h:99999", "ws://h:80/path"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no address: it must look like ws://127\.0\.0\.1:8765 or 127\.0\.0\.1:8765"):
        Address.parse(text)


def started(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """A command that listens, and its address."""
    process = subprocess.Popen([*PYTHON, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    line = process.stdout.readline()
    found = re.search(r"ws://\S+", line)
    assert found, line + process.stderr.read()
    return process, found.group()


def stopped(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    return process.returncode, complaint


@pytest.fixture(scope="module")
def cloud() -> Iterator[str]:
    """A served toy, in a process of its own."""
    process, url = started("antiphon", "serve", "--model", "toy-cloud", "--port", "0")
    yield url
    assert stopped(process) == (0, "antiphon: stopped\n")


@pytest.mark.medium
def test_generating_over_the_command_line_s_link(
    cloud: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer is that of a direct connection; each round takes at least one round trip of the link."""
    process, url = started("antiphon_lab", "link", "--profile", "concord,jitter=1ms", "--listen", "127.0.0.1:0", "--to", cloud)
    figures = []
    for address in (cloud, url):
        arguments = ["--cloud", address, "--model", "toy-device", "--method", "dssd", "--max-tokens", "12", "--seed", "1"]
        monkeypatch.setattr(sys, "argv", ["antiphon", "generate", *arguments, "--json", "the "])
        with pytest.raises(SystemExit) as ended:
            product()
        assert (ended.value.code or 0) == 0
        figures.append(json.loads(capsys.readouterr().out.splitlines()[-1]))
    direct, linked = figures
    assert linked["text"] == direct["text"]
    assert linked["ttft_s"] >= 0.05  # how fast it is without a link hangs on what else runs here
    assert linked["tokens"] / linked["tokens_per_s"] > 0.05 * (linked["rounds"] - 1)
    assert stopped(process) == (0, "antiphon: stopped\n")


def main_ends(code: int) -> None:
    try:
        main()
    except SystemExit as end:
        assert int(end.code or 0) == code  # noqa: PT017 - the code differs by how the command line ends
    else:
        assert code == 0


def test_the_list_names_every_profile_and_source(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["antiphon-lab", "link", "--list"])
    main_ends(0)
    shown = capsys.readouterr().out
    assert re.search(r"^4g +6\.3 Mbit/s +21\.3 Mbit/s +55 ms +10 ms", shown, re.MULTILINE)
    assert re.search(r"^satellite-leo +low orbit: Ookla", shown, re.MULTILINE)


@pytest.mark.core(2)
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "link needs the cloud that it leads to: give --to ws://HOST:PORT, or --list to see the profiles"),
        (("--to", "http://x:1"), "'http://x:1' is no address"),
        (("--to", "x:1", "--listen", "x"), "'x' is no address"),
        (("--to", "x:1", "--profile", "6g"), "there is no link profile '6g': use one of lan, wifi, "),
        (("--to", "x:1", "--seed", "-1"), "seed must be 0 to 2^64 - 1, not -1"),
        (
            ("--to", "x:1", "--listen", "203.0.113.1:9"),
            "cannot listen on 203.0.113.1:9 (Cannot assign requested address): choose another address or port",
        ),
    ],
)
def test_what_a_person_can_mend(
    arguments: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["antiphon-lab", "link", *arguments])
    main_ends(2)
    assert sentence in capsys.readouterr().err

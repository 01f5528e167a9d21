"""A cloud as an ASGI application under a server of others: uvicorn as it comes."""

import asyncio
import json
import logging
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import uvicorn
from websockets.asyncio.client import connect as websocket
from websockets.exceptions import ConnectionClosed, InvalidStatus

from antiphon.cloud.server import address, listen
from antiphon.cloud.service import Cloud
from antiphon.config import ModelConfig, SamplingParams, ServeConfig
from antiphon.device.connection import connect
from antiphon.device.runner import opening
from antiphon.device.session import DeviceSession
from antiphon.errors import LinkError, ModelError, UsageError
from antiphon.models.toy import named_toy
from antiphon.retrieval.sqlite.index import SqliteIndex
from antiphon.wire.messages import Failure, decode
from support.links import linked, request, toy_device


@asynccontextmanager
async def plain(cloud: Cloud, **options: object) -> AsyncIterator[str]:
    """The address of a cloud under plain uvicorn."""
    server = uvicorn.Server(
        uvicorn.Config(cloud.app, log_config=None, log_level="critical", timeout_graceful_shutdown=5, **options)
    )
    with listen(ServeConfig(port=0)) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            while not server.started:
                await asyncio.sleep(0.005)
            yield address(listener)
        finally:
            server.should_exit = True
            await serving


def under(test: object, **options: object) -> object:
    async def run() -> object:
        with Cloud("toy-cloud") as cloud:
            async with plain(cloud, **options) as url:
                return await test(url)

    return asyncio.run(asyncio.wait_for(run(), 60))


@pytest.mark.parametrize("protocol", ["websockets-sansio", "auto"])
def test_answers_are_those_of_the_own_server(protocol: str) -> None:
    async def test(url: str) -> list:
        async with toy_device(url) as (device, connection):
            return [(await device.generate(request(name), connection)).token_ids for name in ("dssd", "cloud")]

    async def own(device: object, connection: object) -> list:
        return [(await device.generate(request(name), connection)).token_ids for name in ("dssd", "cloud")]

    assert under(test, ws=protocol) == linked(own)


def test_it_says_whether_it_generates() -> None:
    async def test(url: str) -> dict:
        def ask() -> dict:
            with urllib.request.urlopen(url.replace("ws:", "http:") + "/health") as reply:
                return json.load(reply)

        async with toy_device(url):
            return await asyncio.to_thread(ask)

    assert under(test) == {"status": "ok", "model": "toy-cloud", "connections": 1}


@pytest.mark.parametrize(("origin", "enters"), [("http://evil.example", False), (None, True), ("http://{host}", True)])
def test_pages_of_other_origins_stay_out(origin: str | None, enters: bool) -> None:
    async def test(url: str) -> None:
        own = None if origin is None else origin.format(host=url.removeprefix("ws://"))
        if enters:
            async with websocket(url, origin=own, compression=None):
                return
        with pytest.raises(InvalidStatus) as refused:
            await websocket(url, origin=own, compression=None)
        assert refused.value.response.status_code == 403
        assert b"no page of another origin" in refused.value.response.body

    under(test)


def test_text_is_a_fault_of_the_device() -> None:
    async def test(url: str) -> object:
        async with websocket(url, compression=None) as socket:
            await socket.send("text")
            told = decode(await socket.recv()).message
            with pytest.raises(ConnectionClosed):
                await socket.recv()
            return told

    told = under(test)
    assert isinstance(told, Failure)
    assert told.sentence == "frames are binary, this one is text"


def test_a_server_that_stops_loses_its_devices_at_once() -> None:
    async def run() -> None:
        with Cloud("toy-cloud") as cloud:
            async with plain(cloud) as url:
                connection = await connect(url, None, cloud.worker)
                ends = tuple((token, -100.0) for token in cloud.model.vocabulary.ends)
                endless = replace(request("cloud", tokens=4000), sampling=SamplingParams(temperature=1.0, logit_bias=ends))
                session = await connection.open(opening(endless, 1))
            with pytest.raises(LinkError, match=r"the cloud at ws://.* closed the connection"):
                await told_all(session)
            await connection.close()

    asyncio.run(asyncio.wait_for(run(), 60))


async def told_all(session: DeviceSession) -> None:
    while True:
        await session.receive()


def test_an_answer_that_is_broken_off_leaves_nothing() -> None:
    async def run() -> None:
        with Cloud("toy-cloud") as cloud:
            async with plain(cloud) as url, toy_device(url) as (device, connection):
                answering = asyncio.create_task(device.generate(request("cloud", tokens=4000), connection))
                while not cloud.model.in_use.contexts:
                    await asyncio.sleep(0.001)
                answering.cancel()
                await asyncio.wait([answering])
                while cloud.model.in_use.contexts:
                    await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(run(), 60))


@pytest.mark.slow
def test_uvicorn_runs_it_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "served.py").write_text('from antiphon import Cloud\n\napp = Cloud("toy-cloud").app\n')
    with listen(ServeConfig(port=0)) as listener:
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "served:app", "--port", str(port), "--app-dir", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            while "running" not in (line := process.stderr.readline()):
                assert line, "it ended"

            async def run() -> str:
                async with toy_device(f"ws://127.0.0.1:{port}") as (device, connection):
                    return (await device.generate(request(), connection)).finish_reason

            assert asyncio.run(asyncio.wait_for(run(), 60)) in ("end", "length")
        finally:
            process.terminate()


def test_a_cloud_takes_a_name_a_configuration_or_a_model() -> None:
    for model in ("toy-cloud", ModelConfig("toy-cloud"), Path("toy-cloud"), named_toy("toy-cloud")):
        with Cloud(model) as cloud:
            assert cloud.model.name == "toy-cloud"
    with pytest.raises(ModelError, match=r"there is no file nowhere\.gguf"):
        Cloud("nowhere.gguf")


def test_a_library_that_it_opens_it_closes(tmp_path: Path) -> None:
    path = tmp_path / "documents.db"
    with SqliteIndex(path, create=True) as index, Cloud("toy-reader", library=index) as cloud:
        assert "concord" in cloud.methods
    with Cloud("toy-reader", library=path) as cloud:
        library = cloud.library
        assert library is not None
        assert library.stats().sources == 0
    with pytest.raises(Exception, match=r"closed|Cannot operate"):
        library.stats()
    with pytest.raises(UsageError, match="there is no library"):
        Cloud("toy-reader", library=tmp_path / "none.db")


def test_it_serves_itself() -> None:
    async def run() -> None:
        with Cloud("toy-cloud") as cloud:
            async with cloud.serving() as url, toy_device(url) as (device, connection):
                assert (await device.generate(request(), connection)).tokens

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_cloud_leaves_the_logging_of_its_program_alone() -> None:
    """uvicorn's own configuration closes all handlers that there are; some close their streams with them."""

    class Closing(logging.Handler):
        closed = False

        def emit(self, record: logging.LogRecord) -> None:
            """Nothing is kept."""

        def close(self) -> None:
            self.closed = True
            super().close()

    handler = Closing()

    async def run() -> None:
        with Cloud("toy-cloud") as cloud:
            async with cloud.serving():
                pass

    asyncio.run(run())
    assert not handler.closed

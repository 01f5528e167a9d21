"""The HTTP side of a cloud: its health is whether it generates."""

import asyncio
import json
import socket
import urllib.error
import urllib.request

import pytest

from antiphon.cloud.server import address, listen, serving
from antiphon.cloud.service import Cloud
from antiphon.config import ServeConfig
from antiphon.errors import ModelError, UsageError
from antiphon.models.toy import ToyModel, named_toy


def health(model: ToyModel) -> tuple[int, dict]:
    def ask(url: str) -> tuple[int, dict]:
        try:
            with urllib.request.urlopen(url.replace("ws://", "http://") + "/health") as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    async def run() -> tuple[int, dict]:
        async with serving(Cloud(model), ServeConfig(port=0)) as url:
            return await asyncio.to_thread(ask, url)

    return asyncio.run(asyncio.wait_for(run(), 30))


def test_a_cloud_that_generates_is_healthy() -> None:
    assert health(named_toy("toy-cloud")) == (200, {"status": "ok", "model": "toy-cloud", "connections": 0})


def test_a_cloud_that_cannot_generate_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: ToyModel, tokens: object) -> None:
        raise ModelError("the model is broken")

    monkeypatch.setattr(ToyModel, "logits", broken)
    status, body = health(named_toy("toy-cloud"))
    assert (status, body["status"], body["why"]) == (503, "failing", "the model is broken")


def test_the_address_of_an_ipv6_listener() -> None:
    try:
        listener = listen(ServeConfig("::1", 0))
    except UsageError:
        pytest.skip("this machine has no IPv6 loopback")
    with listener:
        assert address(listener).startswith("ws://[::1]:")


def test_small_frames_do_not_wait_for_each_other() -> None:
    """Nagle's algorithm is off on accepted connections: a stream of tokens would wait 40 ms for every ACK."""

    async def run() -> int:
        accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            end = writer.get_extra_info("socket")
            accepted.set_result(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listener = listen(ServeConfig(port=0))
        async with await asyncio.start_server(connected, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname()[:2])
            flag = await accepted
            writer.close()
            return flag

    assert asyncio.run(asyncio.wait_for(run(), 30)) != 0

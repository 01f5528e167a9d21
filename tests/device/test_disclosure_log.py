"""The log is complete, to the byte, and says truly what the frames say; where it cannot be written, nothing leaves."""

import asyncio
import json
import socket
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect as dial
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as listen

from antiphon.cloud.server import serving
from antiphon.cloud.service import Cloud
from antiphon.config import ModelConfig, Request, SamplingParams, ServeConfig
from antiphon.device.answer import Result
from antiphon.device.disclosure_log import DisclosureLog, Shown, disclosure_log
from antiphon.device.generate import Device
from antiphon.errors import UsageError
from antiphon.methods import ALL_METHODS, find
from antiphon.methods.mixture.options import MixtureOptions
from antiphon.retrieval.opening import open_library
from antiphon.transport.websocket import header_bytes
from antiphon.vocabulary import identity
from antiphon.wire import messages as m
from antiphon.wire.session import Side
from support.frames import Passing
from support.libraries import CANARY, OTHER, PRIVATE, PUBLIC, QUESTION, make_library, toy

MODEL = ModelConfig("toy-cloud")
ASKING = {"bound": "global", "first": 1, "gate": float("inf")}
"""Evidence that seldom settles a token, so that much is asked for."""


@asynccontextmanager
async def relayed(seed: int, library: Path, heard: list[bytes]) -> AsyncIterator[str]:
    """A served toy behind a relay that keeps every frame of the device."""
    with open_library(str(library)) as index:
        cloud = Cloud(toy(seed), methods=ALL_METHODS, library=index)
        try:
            async with serving(cloud, ServeConfig(port=0)) as url:

                async def relay(device: ServerConnection) -> None:
                    async with dial(url, compression=None) as upstream:

                        async def back() -> None:
                            async for frame in upstream:
                                await device.send(frame)

                        returning = asyncio.create_task(back())
                        async for frame in device:
                            assert isinstance(frame, bytes)
                            heard.append(frame)
                            await upstream.send(frame)
                        returning.cancel()

                async with listen(relay, "127.0.0.1", 0, compression=None) as server:
                    yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            cloud.close()


def answered(
    folder: Path, log: Path, method: str, clouds: int = 1, temperature: float = 0.0, **options: Any
) -> tuple[Result, list[dict[str, Any]], list[list[bytes]]]:
    """An answer over real sockets: the result, the log's lines, and what each cloud's relay heard."""
    private = make_library(folder / "private.db", PRIVATE)
    public = [make_library(folder / f"public{end}.db", documents) for end, documents in enumerate((PUBLIC, OTHER))]
    heard: list[list[bytes]] = [[] for _ in range(clouds)]
    made = MixtureOptions(**options)
    request = Request(QUESTION, method, made, SamplingParams(temperature=temperature), max_tokens=40, seed=3)

    async def run() -> Result:
        async with relayed(2, public[0], heard[0]) as first, relayed(5, public[1], heard[-1]) as second:
            urls = (first, second)[:clouds]
            asked = () if find(method).cloud is None else urls
            async with Device(MODEL, cloud=asked, library=private, disclosure_log=log) as device:
                return await device.generate(request)

    result = asyncio.run(asyncio.wait_for(run(), 60))
    return result, [json.loads(line) for line in log.read_text().splitlines()], heard


def sessions_bytes(result: Result, sessions: int) -> int:
    """What the result counted upward: rounds, and `Open`, which its `setup` counts together with the cloud's `Opened`."""
    assert result.prompt_tokens is not None
    opened = 0
    if sessions == 1:
        frame = len(m.encode(m.Envelope(1, m.Opened(result.prompt_tokens))))
        opened = frame + header_bytes(frame, from_device=False)
    return (result.traffic.up.bits + result.traffic.setup.bits) // 8 - opened


@pytest.mark.core(2)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("method", ["concord", "concord-nosystem", "dragon", "drdg-tw", "drcg"])
def test_every_byte_that_left_is_in_it(tmp_path: Path, method: str, temperature: float) -> None:
    result, lines, (heard,) = answered(tmp_path, tmp_path / "log", method, temperature=temperature, **ASKING)
    frames = [line for line in lines if "frame" in line]
    assert [bytes.fromhex(line["frame"]) for line in frames] == heard
    passing = Passing()
    read = [passing.read(bytes.fromhex(line["frame"])) for line in frames]
    assert [(one.session, type(one.message).__name__) for one in read] == [
        (one["session"], one["message"]["type"]) for one in frames
    ]
    assert sum(line["bytes"] for line in frames if line["session"]) == sessions_bytes(result, 1)
    assert all(line["bytes"] == len(line["frame"]) // 2 + header_bytes(len(line["frame"]) // 2, True) for line in frames)
    sums = lines[-1]["summary"]
    assert sums["frames"] == len(frames)
    assert sums["bytes"] == sum(line["bytes"] for line in frames) == sum(sums["bytes_by_type"].values())
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)


def test_two_clouds(tmp_path: Path) -> None:
    _, lines, heard = answered(tmp_path, tmp_path / "log", "concord", clouds=2, **ASKING)
    urls = lines[0]["clouds"]
    assert len(urls) == 2
    for url, frames in zip(urls, heard, strict=True):
        assert [bytes.fromhex(line["frame"]) for line in lines if line.get("cloud") == url] == frames
        assert lines[-1]["summary"]["bytes_by_cloud"][url] == sum(line["bytes"] for line in lines if line.get("cloud") == url)


def test_it_says_what_the_frames_say(tmp_path: Path) -> None:
    """The question, the tokens of the answer and those asked for, by text; and nothing of the documents."""
    result, lines, (heard,) = answered(tmp_path, tmp_path / "log", "concord-nosystem", **ASKING)
    said = [line["message"] for line in lines if "frame" in line]
    (opening,) = [message for message in said if message["type"] == "Open"]
    assert opening["prompt"] == QUESTION
    assert opening["options"]["gate"] == "inf"
    pieces = toy(1).vocabulary.pieces
    realigned = [message for message in said if message["type"] == "Realign"]
    assert realigned
    for message in realigned:
        ids = [token["id"] for token in message["tokens"]]
        assert ids == list(result.token_ids[message["step"] : message["step"] + message["count"]])
    asked = [token for message in said if message["type"] == "Ask" for token in message.get("tokens", ())]
    assert asked
    assert all(token["text"] == pieces[token["id"]].decode(errors="backslashreplace") for token in asked)
    sums = lines[-1]["summary"]
    assert (sums["ids_asked"], sums["tokens_told"]) == (len(asked), sum(len(message["tokens"]) for message in realigned))
    secret = CANARY.encode()
    assert not any(secret in frame or secret[:9] in frame for frame in heard)
    assert CANARY not in json.dumps(lines)
    kinds = {message["type"] for message in said}
    assert kinds == {"Hello", "Common", "Open", "Ask", "Realign", "Progress", "Cancel", "Goodbye"} | (kinds & {"Pong"})


def test_without_questions_by_id_the_answer_is_the_same(tmp_path: Path) -> None:
    for folder in ("ids", "push"):
        (tmp_path / folder).mkdir()
    with_ids, asked, _ = answered(tmp_path / "ids", tmp_path / "a", "concord-nosystem", **ASKING)
    without, pushed, _ = answered(tmp_path / "push", tmp_path / "b", "concord-nosystem", **ASKING, questions=0)
    assert asked[-1]["summary"]["ids_asked"] > 0
    assert pushed[-1]["summary"]["ids_asked"] == 0
    wanted = [line["message"] for line in pushed if line.get("message", {}).get("type") == "Ask"]
    assert {message["wanted"] for message in wanted} <= {"the next", "all"}
    assert wanted
    assert with_ids.token_ids == without.token_ids


def test_a_second_answer_is_added(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        answered(tmp_path / folder, log, "concord")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert sum("summary" in line for line in lines) == sum("clouds" in line for line in lines) == 2
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Somebody who would notice the least that is sent."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        yield server


@pytest.mark.parametrize("place", ["/dev/full", "folder", "folder/missing/log"])
def test_a_disclosure_log_that_cannot_be_written(tmp_path: Path, listener: socket.socket, place: str) -> None:
    (tmp_path / "folder").mkdir()
    private = make_library(tmp_path / "private.db", PRIVATE)
    url = f"ws://127.0.0.1:{listener.getsockname()[1]}"

    async def run() -> None:
        async with Device(MODEL, cloud=url, library=private, disclosure_log=tmp_path / place) as device:
            await device.connect()

    with pytest.raises(UsageError, match=r"cannot be written \(.*\); without it nothing is sent"):
        asyncio.run(run())
    with pytest.raises(TimeoutError):
        listener.accept()


def test_a_frame_that_cannot_be_recorded_stays_here(tmp_path: Path) -> None:
    """A disk that fills up in the middle: what was heard is what was written."""
    private = make_library(tmp_path / "private.db", PRIVATE)
    public = make_library(tmp_path / "public.db", PUBLIC)
    heard: list[bytes] = []
    written: list[str] = []

    def write(line: str) -> None:
        if len(written) == 6:
            raise UsageError("full")
        written.append(line)

    async def run() -> None:
        async with relayed(2, public, heard) as url, Device(MODEL, cloud=url, library=private) as device:
            log, (connection,) = DisclosureLog(write, [url]), await device.connect()
            connection._watch = log.watch(url, connection.common)
            await device.generate(Request(QUESTION, "concord", max_tokens=40, seed=3))

    with pytest.raises(UsageError, match="full"):
        asyncio.run(asyncio.wait_for(run(), 60))
    recorded = [json.loads(line)["frame"] for line in written[1:]]
    assert recorded == [frame.hex() for frame in heard[2 : 2 + len(recorded)]]
    assert len(heard) == 2 + len(recorded)  # what the handshake took went before the log began here


def test_lines_are_json_whatever_they_hold(tmp_path: Path) -> None:
    shown = Shown(identity(toy(1).vocabulary))
    message = m.Open("concord", {"gate": float("inf")}, SamplingParams(), "wh\u2028at \N{SNOWMAN}", False, 1, 2**63, ())
    with disclosure_log(tmp_path / "log", ["a"]) as log:
        assert log is not None
        log.watch("a", identity(toy(1).vocabulary))(Side.DEVICE, m.Envelope(1, message), b"\xff")
    lines = (tmp_path / "log").read_text().split("\n")
    assert json.loads(lines[1])["message"] == shown.message(message)
    assert shown.message(message)["seed"] == 2**63

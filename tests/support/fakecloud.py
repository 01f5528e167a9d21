"""A cloud that is none: it greets, opens a session, and then does as it likes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as serve_raw

from antiphon.config import Limits
from antiphon.models.toy import named_toy
from antiphon.wire import messages as m


def frame(session: int, message: m.Message) -> bytes:
    return m.encode(m.Envelope(session, message))


Script = Callable[[ServerConnection], Awaitable[None]]


@asynccontextmanager
async def fake_cloud(script: Script, send_vocabulary: Script | None = None) -> AsyncIterator[str]:
    """The address of such a cloud."""
    known = named_toy("toy-cloud").vocabulary

    async def serve(socket: ServerConnection) -> None:
        with suppress(Exception):
            await socket.recv()
            welcome = m.Welcome(m.VERSION, "x", "fake", known.fingerprint, 4096, ("cloud",), Limits(), "")
            await socket.send(frame(0, welcome))
            if isinstance(m.decode(await socket.recv()).message, m.VocabularyRequest):
                if send_vocabulary is not None:
                    await send_vocabulary(socket)
                else:
                    await socket.send(frame(0, m.VocabularyPart(0, 1, known.pack())))
                await socket.recv()
            await socket.send(frame(0, m.CommonReady()))
            await socket.recv()
            await socket.send(frame(1, m.Opened(3)))
            await _while_open(socket, script)

    async with serve_raw(serve, "127.0.0.1", 0, compression=None, ping_interval=None, close_timeout=0.1) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def _while_open(socket: ServerConnection, script: Script) -> None:
    """Nobody waits for a script whose device has gone."""
    played, gone = asyncio.ensure_future(script(socket)), asyncio.ensure_future(socket.wait_closed())
    try:
        await asyncio.wait({played, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        played.cancel()
        gone.cancel()

"""The device's end of the handshake: who is there, and which tokens both have (docs/protocol.md)."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from antiphon import __version__
from antiphon.cache import read_cached, write_cached
from antiphon.engine.worker import Worker
from antiphon.errors import LinkError, ProtocolError, RemoteError
from antiphon.models.base import Model, public_name
from antiphon.vocabulary import MAX_BYTES, CommonVocabulary, Vocabulary, common_vocabulary, identity
from antiphon.wire import messages as m
from antiphon.wire.session import Received, WireSession

Expected = TypeVar("Expected", bound=m.Message)


class Handshake:
    """Greets a cloud over a new link. send, arrived: how messages leave, and the next ones that come."""

    def __init__(
        self,
        wire: WireSession,
        send: Callable[[m.Message], Awaitable[None]],
        arrived: Callable[[], Awaitable[list[Received]]],
        model: Model | None,
        worker: Worker,
    ) -> None:
        self._wire, self._send, self._arrived = wire, send, arrived
        self._model, self._worker = model, worker

    async def run(self) -> tuple[m.Welcome, CommonVocabulary]:
        """What the cloud said of itself, and the tokens of both. Raises RemoteError, LinkError, ProtocolError or CacheError."""
        model = self._model
        own = b"" if model is None else model.vocabulary.fingerprint
        name = "" if model is None else public_name(model)
        await self._send(m.Hello(m.VERSION, f"antiphon/{__version__}", name, own))
        welcome = await self._welcomed()
        # From here on: until now the default limits held, on both ends.
        self._wire.limits = welcome.limits
        cloud = await self._vocabulary(welcome.vocabulary)
        # In the worker's thread: to match two vocabularies takes part of a second.
        common = await self._worker.run(lambda: _common(model, cloud))
        await self._agree(common)
        return welcome, common

    async def _welcomed(self) -> m.Welcome:
        try:
            return await self._expect(m.Welcome)
        except RemoteError as refusal:
            if refusal.code != "version":
                raise
            sentence = f"{refusal} (this device speaks version {m.VERSION}: both ends must be of one version of Antiphon)"
            raise RemoteError(sentence, refusal.code) from refusal

    async def _vocabulary(self, fingerprint: bytes) -> Vocabulary:
        model = self._model
        if model is not None and model.vocabulary.fingerprint == fingerprint:
            return model.vocabulary
        key = f"vocabulary-{fingerprint.hex()}"
        packed = read_cached(key)
        vocabulary = _unpacked(packed, fingerprint) if packed is not None else None
        if vocabulary is None:
            packed = await self._fetch()
            vocabulary = _unpacked(packed, fingerprint)
            # What the promised fingerprint does not fit is not kept: else every later answer would be about other tokens.
            if vocabulary is None:
                raise ProtocolError("the cloud sent another vocabulary than it promised", "bad-vocabulary")
            write_cached(key, packed)
        return vocabulary

    async def _fetch(self) -> bytes:
        await self._send(m.VocabularyRequest())
        parts: list[bytes] = []
        total = 1
        while len(parts) < total:
            part = await self._expect(m.VocabularyPart)
            if part.index != len(parts):
                raise ProtocolError("the parts of the cloud's vocabulary came out of order", "bad-vocabulary")
            parts.append(part.data)
            total = part.total
            if sum(map(len, parts)) > MAX_BYTES:
                raise ProtocolError(f"the cloud's vocabulary has more than {MAX_BYTES >> 20} MiB", "bad-vocabulary")
        return b"".join(parts)

    async def _agree(self, common: CommonVocabulary) -> None:
        await self._send(m.Common(common.digest, common.size))
        if isinstance(await self._expect(m.CommonWanted, m.CommonReady), m.CommonWanted):
            await self._send(m.CommonMap(common.members()))
            await self._expect(m.CommonReady)

    async def _expect(self, *kinds: type[Expected]) -> Expected:
        """The next message of it."""
        while True:
            for received in await self._arrived():
                message = received.message
                if isinstance(message, m.Failure):
                    raise RemoteError(message.sentence, message.code)
                if isinstance(message, m.Goodbye):
                    raise LinkError(f"the cloud left: {message.reason}")
                if not isinstance(message, kinds):
                    raise ProtocolError(f"{type(message).__name__} came in the handshake", "out-of-turn")
                return message


def _common(model: Model | None, cloud: Vocabulary) -> CommonVocabulary:
    return identity(cloud) if model is None else common_vocabulary(model.vocabulary, cloud)


def _unpacked(packed: bytes, fingerprint: bytes) -> Vocabulary | None:
    """The vocabulary, if it is the one of this fingerprint."""
    try:
        vocabulary = Vocabulary.unpack(packed)
    except ProtocolError:
        return None
    return vocabulary if vocabulary.fingerprint == fingerprint else None

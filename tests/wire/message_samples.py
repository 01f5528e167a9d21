"""Messages of every kind: one of each, and any."""

from typing import Any

import msgspec
import pytest
from msgspec import inspect

from antiphon.config import Limits, SamplingParams
from antiphon.errors import ProtocolError
from antiphon.wire import messages as m

TAGS = {
    1: m.Hello,
    2: m.Welcome,
    3: m.VocabularyRequest,
    4: m.VocabularyPart,
    5: m.Common,
    6: m.CommonWanted,
    7: m.CommonMap,
    8: m.CommonReady,
    9: m.Open,
    10: m.Opened,
    11: m.Draft,
    12: m.Verdict,
    13: m.Tokens,
    14: m.Probe,
    15: m.Probed,
    16: m.Cancel,
    17: m.Closed,
    18: m.Failure,
    19: m.Goodbye,
    20: m.Ping,
    21: m.Pong,
    22: m.Retry,
    23: m.Resampling,
    24: m.Retrieved,
    25: m.Passages,
    26: m.Evidence,
    27: m.Ask,
    28: m.Supplement,
    29: m.Realign,
    30: m.Progress,
}
"""Never to be changed: an old peer reads them."""


KINDS = list(TAGS.values())


def fields_of(kind: type) -> tuple[inspect.Field, ...]:
    found = inspect.type_info(kind)
    assert isinstance(found, inspect.StructType)
    return found.fields


def sample(kind: type) -> m.Message:
    """One message of a kind, with lengths in the middle of their bounds."""
    made: dict[type, m.Message] = {
        m.Hello: m.Hello(1, "agent", "model", bytes(16)),
        m.Welcome: m.Welcome(1, "agent", "model", bytes(16), 4096, ("dsd", "dssd"), Limits(), "bm25; temperature=8"),
        m.VocabularyPart: m.VocabularyPart(0, 2, b"part"),
        m.Common: m.Common(bytes(16), 265),
        m.CommonMap: m.CommonMap(b"map"),
        m.Open: m.Open(
            "dssd", {"draft_length": 3}, SamplingParams(logit_bias=((1, 2.5),)), "hello", True, 64, 2**64 - 1, (3, 1, 264)
        ),
        m.Opened: m.Opened(7),
        m.Draft: m.Draft(1, 2, b"drafts"),
        m.Verdict: m.Verdict(1, 2, b"token"),
        m.Tokens: m.Tokens(b"token"),
        m.Probe: m.Probe(4, 0, 0, 3, 2, b"tokens"),
        m.Probed: m.Probed((0.5, 0.25), (1, 2), (0.5, 0.25), (0.25, 0.5), True, True, 0.125, 0.5, 0.5),
        m.Closed: m.Closed("end", 5, 12.5, True, 0.0),
        m.Failure: m.Failure("busy", "the cloud is full"),
        m.Goodbye: m.Goodbye("done"),
        m.Ping: m.Ping(b"1234"),
        m.Pong: m.Pong(b"1234"),
        m.Retry: m.Retry(1),
        m.Resampling: m.Resampling(1, b"more"),
        m.Retrieved: m.Retrieved(2, 1.25, 0),
        m.Passages: m.Passages(("a passage", "another")),
        m.Evidence: m.Evidence(1, 4, b"scores"),
        m.Ask: m.Ask(1, 4, b"tokens"),
        m.Supplement: m.Supplement(1, 4, b"scores"),
        m.Realign: m.Realign(2, 4, 3, b"tokens"),
        m.Progress: m.Progress(5),
    }
    return made[kind] if kind in made else kind()


def plain(message: m.Message) -> list[Any]:
    """A message as MessagePack without types: [tag, fields...]."""
    return msgspec.msgpack.decode(m.encode(m.Envelope(3, message)))[1]


def frame_of(body: object, session: object = 3) -> bytes:
    return msgspec.msgpack.encode([session, body])


def refused(frame: bytes) -> str:
    with pytest.raises(ProtocolError) as caught:
        m.decode(frame)
    assert caught.value.code == "bad-frame"
    return str(caught.value)

"""Every message that crosses the link: a closed, tagged union with one typed decoder (docs/protocol.md).

A frame is one `Envelope` in MessagePack: the session's number (0 is the connection itself) and a message; four kinds have a
shorter form (`antiphon.wire.lean`). Payloads hold what a method sends, packed to the bit (`antiphon.wire.packing`); everything
else of a frame counts as framing.
"""

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from antiphon.config import Limits, SamplingParams
from antiphon.errors import ProtocolError, UsageError

VERSION = 6
"""The protocol's version; both ends must name the same one."""

PART_BYTES = 2**18
"""Size of a piece of a vocabulary, so that one frame never blocks the link for long."""

WIDEST = 64
"""Tokens of a pass that a device asks for by its width, at most."""

Name = Annotated[str, Meta(max_length=256)]
Sentence = Annotated[str, Meta(max_length=4096)]
Digest = Annotated[bytes, Meta(min_length=16, max_length=16)]
Count = Annotated[int, Meta(ge=0, le=2**31)]
Milliseconds = Annotated[float, Meta(ge=0, le=2**40)]
Share = Annotated[float, Meta(ge=0, le=1)]
Shift = Annotated[float, Meta(ge=0)]
"""Of logits; infinite is one too, not a number is none."""
Option = int | float | str | bool


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=1, forbid_unknown_fields=True):
    """Device: who I am, and the fingerprint of my vocabulary (empty without a model)."""

    version: Count
    agent: Name
    model: Name
    vocabulary: Annotated[bytes, Meta(max_length=16)]


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag=2, forbid_unknown_fields=True):
    """Cloud: who I am, what I can do, and what I accept."""

    version: Count
    agent: Name
    model: Name
    vocabulary: Digest
    context: Count
    methods: Annotated[tuple[Name, ...], Meta(max_length=256)]
    limits: Limits
    scorer: Name


class VocabularyRequest(msgspec.Struct, frozen=True, array_like=True, tag=3, forbid_unknown_fields=True):
    """Device: I do not have your vocabulary; send it."""


class VocabularyPart(msgspec.Struct, frozen=True, array_like=True, tag=4, forbid_unknown_fields=True):
    """Cloud: part `index` of `total` of the packed vocabulary."""

    index: Count
    total: Annotated[int, Meta(ge=1, le=512)]
    data: Annotated[bytes, Meta(max_length=PART_BYTES)]


class Common(msgspec.Struct, frozen=True, array_like=True, tag=5, forbid_unknown_fields=True):
    """Device: the digest and the size of the common vocabulary as I computed it."""

    digest: Digest
    size: Count


class CommonWanted(msgspec.Struct, frozen=True, array_like=True, tag=6, forbid_unknown_fields=True):
    """Cloud: I do not know that digest; send the map."""


class CommonMap(msgspec.Struct, frozen=True, array_like=True, tag=7, forbid_unknown_fields=True):
    """Device: which of your ids are common, as a compressed bitmap."""

    members: Annotated[bytes, Meta(max_length=2**20)]


class CommonReady(msgspec.Struct, frozen=True, array_like=True, tag=8, forbid_unknown_fields=True):
    """Cloud: both ends have the same numbers; sessions may be opened."""


class Open(msgspec.Struct, frozen=True, array_like=True, tag=9, forbid_unknown_fields=True):
    """Device: write an answer to this prompt, by this method; go on after what is committed already (wire numbers)."""

    method: Name
    options: Annotated[dict[Name, Option], Meta(max_length=32)]
    sampling: SamplingParams
    prompt: str
    chat: bool
    max_tokens: Count
    seed: Annotated[int, Meta(ge=0)]
    committed: Annotated[tuple[Count, ...], Meta(max_length=2**20)]


class Opened(msgspec.Struct, frozen=True, array_like=True, tag=10, forbid_unknown_fields=True):
    """Cloud: the session runs; the prompt has this many of my tokens."""

    prompt_tokens: Count


class Draft(msgspec.Struct, frozen=True, array_like=True, tag=11, forbid_unknown_fields=True):
    """Device: `count` drafted tokens of a round, and what the method sends with them."""

    round: Count
    count: Count
    payload: bytes


class Verdict(msgspec.Struct, frozen=True, array_like=True, tag=12, forbid_unknown_fields=True):
    """Cloud: how many drafts of the round stand, and what the method sends with that."""

    round: Count
    accepted: Count
    payload: bytes


class Tokens(msgspec.Struct, frozen=True, array_like=True, tag=13, forbid_unknown_fields=True):
    """Cloud: tokens of its own, streamed without being asked."""

    payload: bytes


class Probe(msgspec.Struct, frozen=True, array_like=True, tag=14, forbid_unknown_fields=True):
    """Device: score this continuation of the prompt by several readings, and tell which of two candidates wins after it.

    session: the one whose passes are made again, 0 for none.
    """

    width: Annotated[int, Meta(ge=1, le=WIDEST)]
    reread: Annotated[int, Meta(ge=0, le=WIDEST)]
    silent: Annotated[int, Meta(ge=0, le=WIDEST)]
    session: Count
    count: Count
    payload: bytes


class Probed(msgspec.Struct, frozen=True, array_like=True, tag=15, forbid_unknown_fields=True):
    """Cloud: the share of each position's probability on C; who wins, by which probs, and how far readings move logits."""

    shares: tuple[Share, ...]
    winners: tuple[Count, Count]
    plain: tuple[Share, Share]
    again: tuple[Share, Share]
    recorded: bool
    made: bool
    shift: Shift
    moved: Shift
    noise: Shift


class Cancel(msgspec.Struct, frozen=True, array_like=True, tag=16, forbid_unknown_fields=True):
    """Device: stop; I have what I need."""


class Closed(msgspec.Struct, frozen=True, array_like=True, tag=17, forbid_unknown_fields=True):
    """Cloud: the session is over (`end`, `length` or `cancelled`); it took these forward passes and milliseconds.

    `shared` says whether others were served at the same time: what they give back lies before our cells, which can
    move logits. `rounding` is the largest total variation between a target distribution that was used and the model's own.
    """

    reason: Name
    passes: Count
    compute_ms: Milliseconds
    shared: bool
    rounding: Share


class Failure(msgspec.Struct, frozen=True, array_like=True, tag=18, forbid_unknown_fields=True):
    """Either: something is wrong; the session, or on session 0 the connection, is over."""

    code: Name
    sentence: Sentence


class Goodbye(msgspec.Struct, frozen=True, array_like=True, tag=19, forbid_unknown_fields=True):
    """Either: I am leaving, and why; open sessions are over."""

    reason: Sentence


class Ping(msgspec.Struct, frozen=True, array_like=True, tag=20, forbid_unknown_fields=True):
    """Either: answer with a `Pong` of the same data; measures the round trip."""

    data: Annotated[bytes, Meta(max_length=65536)]


class Pong(msgspec.Struct, frozen=True, array_like=True, tag=21, forbid_unknown_fields=True):
    """Either: the answer to a `Ping`."""

    data: Annotated[bytes, Meta(max_length=65536)]


class Retry(msgspec.Struct, frozen=True, array_like=True, tag=22, forbid_unknown_fields=True):
    """Device: none of the candidates of this round passes; send more."""

    round: Count


class Resampling(msgspec.Struct, frozen=True, array_like=True, tag=23, forbid_unknown_fields=True):
    """Cloud: more for the device to draw the token after the round's rejection."""

    round: Count
    payload: bytes


class Retrieved(msgspec.Struct, frozen=True, array_like=True, tag=24, forbid_unknown_fields=True):
    """Cloud: I found so many passages for the prompt, and this is the logarithm of what they weigh together.

    left_out: how many more I found, for which the model that reads them has no room.
    """

    passages: Count
    log_mass: float
    left_out: Count


class Passages(msgspec.Struct, frozen=True, array_like=True, tag=25, forbid_unknown_fields=True):
    """Cloud: the passages themselves, for a method that reads them on the device."""

    texts: Annotated[tuple[str, ...], Meta(max_length=256)]


class Evidence(msgspec.Struct, frozen=True, array_like=True, tag=26, forbid_unknown_fields=True):
    """Cloud: my scores of a step, in the line of tokens that the device began with this epoch."""

    epoch: Count
    step: Count
    payload: bytes


class Ask(msgspec.Struct, frozen=True, array_like=True, tag=27, forbid_unknown_fields=True):
    """Device: more scores of a step."""

    epoch: Count
    step: Count
    payload: bytes


class Supplement(msgspec.Struct, frozen=True, array_like=True, tag=28, forbid_unknown_fields=True):
    """Cloud: the scores that were asked for."""

    epoch: Count
    step: Count
    payload: bytes


class Realign(msgspec.Struct, frozen=True, array_like=True, tag=29, forbid_unknown_fields=True):
    """Device: at this step and on the answer has these tokens, not yours; go on behind them, in a new epoch."""

    epoch: Count
    step: Count
    count: Count
    payload: bytes


class Progress(msgspec.Struct, frozen=True, array_like=True, tag=30, forbid_unknown_fields=True):
    """Device: the answer has so many tokens, those of yours that came before are among them.

    Cloud, to a device that drafts: up to here drafts were of no use, and they will not be for a while.
    """

    step: Count


Message: TypeAlias = (
    Hello
    | Welcome
    | VocabularyRequest
    | VocabularyPart
    | Common
    | CommonWanted
    | CommonMap
    | CommonReady
    | Open
    | Opened
    | Draft
    | Verdict
    | Tokens
    | Probe
    | Probed
    | Cancel
    | Closed
    | Failure
    | Goodbye
    | Ping
    | Pong
    | Retry
    | Resampling
    | Retrieved
    | Passages
    | Evidence
    | Ask
    | Supplement
    | Realign
    | Progress
)


class Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A message and the session that it belongs to: one frame."""

    session: Annotated[int, Meta(ge=0, lt=2**31)]
    message: Message


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Envelope)


def encode(envelope: Envelope) -> bytes:
    """The frame of an envelope, in full."""
    return _encoder.encode(envelope)


def decode(frame: bytes) -> Envelope:
    """The envelope in a frame in full. Raises ProtocolError if it is not one, whatever the bytes."""
    try:
        return _decoder.decode(frame)
    # UsageError: dataclasses of the configuration check themselves while they are decoded. RecursionError: nested arrays of a
    # peer.
    except (msgspec.MsgspecError, UsageError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"the frame is not a valid message: {error}") from error


def payload_bits(message: Message) -> int:
    """Bits of a message that are a method's own; the rest of its frame is framing."""
    match message:
        case Draft() | Verdict() | Tokens() | Resampling() | Evidence() | Ask() | Supplement() | Realign():
            return 8 * len(message.payload)
        case _:
            return 0

"""Lean frames: the messages that cross all the time in two or three bytes and their payload (docs/protocol.md, Lean frames).

    byte 0   0, kind in 2 bits, count in 4 bits, whether byte 2 is there
    byte 1   the low 8 bits of the round
    byte 2   of a session that is not the newest one: its low 8 bits

No `Envelope` begins with a byte below 0x80. What is left out of the session and of the round both ends know from the frames
that crossed before in this direction: an answer is mostly of the newest session, and rounds only rise. What does not fit
goes in an `Envelope`, and so may everything else: a reader takes both.
"""

from antiphon.errors import ProtocolError
from antiphon.wire.messages import Draft, Envelope, Message, Progress, Tokens, Verdict, decode, encode

HEAD_BYTES = 2
"""Framing of a lean frame of the newest session, before what the transport adds; of an older one it is a byte more."""

MAX_COUNT = 15
"""Drafts of a `Draft`, and accepted ones of a `Verdict`, at most."""

ROUNDS, SESSIONS = 256, 256
"""Rounds, and sessions, that a lean frame can tell apart."""

MAX_ROUND = 2**31
"""The bound of a round in any frame."""

KINDS = (Draft, Verdict, Tokens, Progress)
"""What can be lean, by the two bits of its kind."""


class Frames:
    """The frames of one direction of a connection, in their order. Both ends keep one for each direction, and so agree."""

    def __init__(self) -> None:
        self._newest = 0  # session of which anything crossed
        self._rounds: dict[int, dict[type, int]] = {}  # the last one, by session and kind

    def pack(self, envelope: Envelope) -> bytes:
        """The frame of a message that comes next: a lean one where it fits."""
        session, message = envelope.session, envelope.message
        parts = _parts(message)
        if parts is None or not 0 < session <= self._newest < session + SESSIONS:
            return encode(envelope)
        count, round_, payload = parts
        last = self._last(session, type(message))
        if count > MAX_COUNT or not last <= round_ < last + ROUNDS:
            return encode(envelope)
        older = session < self._newest
        first = KINDS.index(type(message)) << 5 | count << 1 | older
        return bytes([first, round_ % ROUNDS, session % SESSIONS])[: HEAD_BYTES + older] + payload

    def unpack(self, frame: bytes) -> Envelope:
        """The message in the frame that comes next, lean or not. Raises ProtocolError if it is none, whatever the bytes."""
        if not frame or frame[0] >= 0x80:
            return decode(frame)
        first, older = frame[0], frame[0] % 2
        head, payload = frame[: HEAD_BYTES + older], frame[HEAD_BYTES + older :]
        if len(head) < HEAD_BYTES + older:
            raise ProtocolError(f"a lean frame ends in its head of {HEAD_BYTES + older} bytes")
        kind, session = KINDS[first >> 5], self._session(head[HEAD_BYTES:])
        last = self._last(session, kind)
        round_ = last + (head[1] - last) % ROUNDS
        if round_ > MAX_ROUND:
            raise ProtocolError(f"a lean frame is of a round above {MAX_ROUND}")
        return Envelope(session, _message(kind, first >> 1 & MAX_COUNT, round_, payload))

    def crossed(self, envelope: Envelope) -> None:
        """Take note of a message that crossed, however its frame was written."""
        session, message = envelope.session, envelope.message
        self._newest = max(self._newest, session)
        parts = _parts(message)
        if parts is not None:
            last = self._last(session, type(message))
            self._rounds.setdefault(session, {})[type(message)] = max(last, parts[1])

    def forget(self, session: int) -> None:
        """Of this session nothing more crosses that anyone acts on."""
        self._rounds.pop(session, None)

    def _session(self, spelled: bytes) -> int:
        """The session of a lean frame: the newest one, or the last one whose low bits are spelled out."""
        # Which may be the newest one too: a writer may have opened a later session in a frame that never left it.
        session = self._newest - sum((self._newest - low) % SESSIONS for low in spelled)
        if session <= 0:
            raise ProtocolError("a lean frame is out of turn: it is of no session that was opened", "out-of-turn")
        return session

    def _last(self, session: int, kind: type) -> int:
        return self._rounds.get(session, {}).get(kind, 0)


def _parts(message: Message) -> tuple[int, int, bytes] | None:
    """Count, round and payload of a message that has a lean form."""
    match message:
        case Draft(round_, count, payload) | Verdict(round_, count, payload):
            return count, round_, payload
        case Tokens(payload):
            return 0, 0, payload
        case Progress(step):
            return 0, step, b""
        case _:
            return None


def _message(kind: type, count: int, round_: int, payload: bytes) -> Message:
    """What a lean frame holds. Raises ProtocolError for what its kind has no place for."""
    if kind is Draft:
        return Draft(round_, count, payload)
    if kind is Verdict:
        return Verdict(round_, count, payload)
    if count or (round_ if kind is Tokens else payload):
        raise ProtocolError("a lean frame has something where its kind has nothing")
    return Tokens(payload) if kind is Tokens else Progress(round_)

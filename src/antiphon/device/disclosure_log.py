"""What leaves the device, byte for byte: JSON lines for the documents' owner (METHODS 4, what leaves the device).

A line is written before its frame leaves, so the file never lacks what was sent; where it cannot be written, nothing is sent.
The lines of an answer stand between one that names its clouds and one with the sums.
"""

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any

import msgspec

from antiphon.core.mixture.consult import AskChunk, AskScores
from antiphon.device.connection import Watch
from antiphon.errors import UsageError
from antiphon.transport.websocket import header_bytes
from antiphon.vocabulary import CommonVocabulary
from antiphon.wire import messages as m
from antiphon.wire.scores import ScoreCodec
from antiphon.wire.session import Side


def utc() -> str:
    """The time, as the lines have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class DisclosureLog:
    """A disclosure log. write: takes a line, and raises to keep its frame on the device. clock: gives the time of a line."""

    def __init__(self, write: Callable[[str], None], clouds: Sequence[str], clock: Callable[[], str] = utc) -> None:
        self._write, self._clock = write, clock
        self._frames = self._asked = self._told = 0
        self._bytes: Counter[str] = Counter(dict.fromkeys(clouds, 0))
        self._bytes_by_type: Counter[str] = Counter()
        self._line({"clouds": list(clouds)})

    def watch(self, cloud: str, common: CommonVocabulary) -> Watch:
        """Records what is sent to a cloud; tokens are shown in `common`."""
        shown = Shown(common)

        def see(sender: Side, envelope: m.Envelope, frame: bytes) -> None:
            if sender is Side.DEVICE:
                self._record(cloud, envelope.session, frame, shown.message(envelope.message))

        return see

    def end(self) -> None:
        """Write the sums."""
        sums: dict[str, Any] = {"frames": self._frames, "bytes": self._bytes.total(), "bytes_by_cloud": dict(self._bytes)}
        sums |= {"bytes_by_type": dict(self._bytes_by_type), "ids_asked": self._asked, "tokens_told": self._told}
        self._line({"summary": sums})

    def _record(self, cloud: str, session: int, frame: bytes, message: dict[str, Any]) -> None:
        size = len(frame) + header_bytes(len(frame), from_device=True)
        self._line({"cloud": cloud, "session": session, "bytes": size, "frame": frame.hex(), "message": message})
        self._frames += 1
        self._bytes[cloud] += size
        self._bytes_by_type[message["type"]] += size
        tokens = len(message.get("tokens", ()))
        self._asked += tokens if message["type"] == "Ask" else 0
        self._told += tokens if message["type"] == "Realign" else 0

    def _line(self, fields: dict[str, Any]) -> None:
        self._write(json.dumps({"time": self._clock(), **fields}, ensure_ascii=False, allow_nan=False) + "\n")


class Shown:
    """Messages as a person reads them: fields by name, bytes in hexadecimal, tokens by id and text."""

    def __init__(self, common: CommonVocabulary) -> None:
        self._common = common
        self._codec = ScoreCodec(common.target_size, common.target_bits)

    def message(self, message: m.Message) -> dict[str, Any]:
        """The type and the fields of a message."""
        fields = {name: _plain(getattr(message, name)) for name in message.__struct_fields__}
        match message:
            case m.Ask():
                fields |= self._question(message.payload)
            case m.Realign():
                fields["tokens"] = self._tokens(self._codec.read_tokens(message.payload, message.count))
        return {"type": type(message).__name__, **fields}

    def _question(self, payload: bytes) -> dict[str, Any]:
        match self._codec.read_question(payload):
            case AskScores(tokens):
                return {"wanted": "these", "tokens": self._tokens(tokens)}
            case AskChunk(count):
                return {"wanted": "the next", "scores": count}
            case _:
                return {"wanted": "all"}

    def _tokens(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        pieces, ids = self._common.pieces, self._common.cloud_ids
        return [{"id": int(ids[number]), "text": pieces[number].decode(errors="backslashreplace")} for number in numbers]


def _plain(value: Any) -> Any:
    match msgspec.to_builtins(value, builtin_types=(bytes,)):
        case bytes(data):
            return data.hex()
        case float(number) if not math.isfinite(number):
            return str(number)
        case dict(items):
            return {name: _plain(item) for name, item in items.items()}
        case list(items) | tuple(items):
            return [_plain(item) for item in items]
        case other:
            return other


@contextmanager
def disclosure_log(path: Path | None, clouds: Sequence[str]) -> Iterator[DisclosureLog | None]:
    """A disclosure log at the end of a file that only its owner may read; None without a path. Raises UsageError."""
    if path is None:
        yield None
        return
    with _opened(path) as file:
        log = DisclosureLog(partial(_append, file, path), clouds)
        try:
            yield log
        finally:
            log.end()


def _opened(path: Path) -> FileIO:
    try:
        # Unbuffered and appending: a line is with the system before its frame leaves, and two devices can share a file.
        number = os.open(path.expanduser(), os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        return FileIO(number, "ab")
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from error


def _append(file: FileIO, path: Path, line: str) -> None:
    data = line.encode(errors="backslashreplace")
    try:
        while data:
            # A disk that is nearly full takes part of a line.
            data = data[file.write(data) or 0 :]
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: Exception) -> UsageError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UsageError(
        f"the disclosure log {path} cannot be written ({reason.lower()}); without it nothing is sent: name another file"
    )

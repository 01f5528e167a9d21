"""Bytes to text: UTF-8, or what a byte order mark or a page itself says. Never a guess."""

import codecs
from pathlib import Path

from antiphon.retrieval.documents import DocumentError

MAX_BYTES = 256 * 2**20
"""A file that is read whole, at most; JSON lines may be larger."""

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def read_whole(path: Path) -> bytes:
    """The bytes of a file. Raises DocumentError if it is too large, OSError."""
    require_size(path)
    return path.read_bytes()


def require_size(path: Path) -> None:
    """Raises DocumentError if the file is too large to be read whole, OSError."""
    if path.stat().st_size > MAX_BYTES:
        raise DocumentError(f"it is larger than {MAX_BYTES >> 20} MiB: split it, or make it JSON lines")


def decoded(data: bytes, encoding: str = "utf-8") -> str:
    """The text, with every line ended by a newline alone. A byte order mark wins over `encoding`. Raises DocumentError."""
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), encoding)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise DocumentError(f"it is not {encoding.upper()} (byte {error.start}): convert it first") from error
    except LookupError as error:
        raise DocumentError(f"it names an unknown encoding, {encoding!r}: convert it to UTF-8 first") from error
    if "\x00" in text:
        raise DocumentError("it holds NUL characters and is no text")
    return text.replace("\r\n", "\n").replace("\r", "\n")

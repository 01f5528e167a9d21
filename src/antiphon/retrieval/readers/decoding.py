"""Bytes to text.

Plain text is UTF-8, or what a byte order mark or the person says, never a guess; a page of HTML says its encoding itself, and
is read as browsers read it.
"""

import codecs
from pathlib import Path

from antiphon.retrieval.documents import DocumentError

MAX_BYTES = 256 * 2**20
"""A file that is read whole, at most; JSON lines may be larger."""

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_LARGER = {"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "euc-kr": "cp949", "big5": "cp950"}
"""Encodings that hold another one, under whose name they are used: browsers read these."""
_DETECTED = 64 * 2**10
_WRONG = 0.02


def read_whole(path: Path) -> bytes:
    """The bytes of a file. Raises DocumentError if it is too large, OSError."""
    require_size(path)
    return path.read_bytes()


def require_size(path: Path) -> None:
    """Raises DocumentError if the file is too large to be read whole, OSError."""
    if path.stat().st_size > MAX_BYTES:
        raise DocumentError(f"it is larger than {MAX_BYTES >> 20} MiB: split it, or make it JSON lines")


def text_of(path: Path, encoding: str | None) -> str:
    """The text of a file that is read whole, with every line ended by a newline alone. Raises DocumentError, OSError."""
    return decoded(read_whole(path), encoding)


def decoded(data: bytes, encoding: str | None = None) -> str:
    """The text, with every line ended by a newline alone. A byte order mark wins over `encoding`. Raises DocumentError."""
    name = _marked(data) or encoding or "utf-8"
    try:
        text = data.decode(_LARGER.get(name.lower(), name))
    except UnicodeDecodeError as error:
        advice = "name its own by --encoding" if encoding is None else "name another one by --encoding"
        raise DocumentError(f"it is not {name.upper()} (byte {error.start}): {advice}, or convert it first") from error
    except LookupError as error:
        raise DocumentError(f"there is no encoding {name!r}: name one that Python knows by --encoding") from error
    # Any bytes can be text of some encoding; NUL characters are the sign of those that are not.
    if "\x00" in text:
        raise DocumentError("it holds NUL characters and is no text")
    return lines_ended(text)


def page_decoded(data: bytes, declared: str | None, given: str | None) -> str:
    """The text of a page: by its byte order mark, what the person says, as UTF-8, by what it says itself, by how it looks.

    declared: the page's own label, as of WHATWG's Encoding Standard; a label that is unknown or plainly wrong says nothing.
    """
    if name := _marked(data) or given:
        return decoded(data, name)
    name = _labelled(declared)
    for candidate in ("utf-8", name):  # what is UTF-8 is hardly anything else
        if candidate is not None and (text := _strictly(data, candidate)) is not None:
            return lines_ended(text)
    # A few broken bytes are a sloppy page; many are a label that is wrong, as where a server put its own on every file.
    guess = _detected(data) if name is None or _share_lost(data, name) > _WRONG else name
    return lines_ended(data.decode(guess, errors="replace"))


def lines_ended(text: str) -> str:
    """Every line is ended by a newline alone."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _marked(data: bytes) -> str | None:
    return next((name for mark, name in _MARKS if data.startswith(mark)), None)


def _labelled(label: str | None) -> str | None:
    """Python's name for a label, None for an unknown one. UTF-16 in a page that could be read so far is none."""
    import webencodings

    found = None if label is None else webencodings.lookup(label)
    if found is None or found.name == "x-user-defined":
        return None
    return "utf-8" if found.name.startswith("utf-16") else _LARGER.get(found.name, found.codec_info.name)


def _strictly(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _share_lost(data: bytes, encoding: str) -> float:
    text = data[:_DETECTED].decode(encoding, errors="replace")
    other = sum(not character.isascii() for character in text)
    return text.count("\ufffd") / max(other, 1)


def _detected(data: bytes) -> str:
    """What most likely it is; the encoding that can read all bytes where nothing can be said."""
    import charset_normalizer

    best = charset_normalizer.from_bytes(data[:_DETECTED]).best()
    return "cp1252" if best is None or best.encoding == "ascii" else best.encoding

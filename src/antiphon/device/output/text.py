"""Bytes to text at complete characters, stop strings wherever they fall, and how many bytes a text took."""

import codecs
from collections.abc import Iterator, Sequence


class TextStream:
    """Bytes in, text out at complete UTF-8 characters, held back while it could be the start of a stop string."""

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stop = stop
        self._held = ""
        self.stopped = False

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """The text that can be shown now. With `final`, what was held back too, broken characters replaced."""
        if self.stopped:
            return ""
        text = self._held + self._decoder.decode(data, final)
        found = [index for stop in self._stop if (index := text.find(stop)) >= 0]
        if found:
            self.stopped, self._held = True, ""
            return text[: min(found)]
        # Only as much as could begin a stop string: everything else is shown as soon as it is there.
        keep = 0 if final else self._held_back(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def glimpse(self, data: bytes) -> tuple[str, bool]:
        """What `feed` would show of this, and whether a stop string would have come; nothing is fed."""
        ahead = TextStream(self._stop)
        ahead._decoder.setstate(self._decoder.getstate())
        ahead._held, ahead.stopped = self._held, self.stopped
        return ahead.feed(data), ahead.stopped

    def _held_back(self, text: str) -> int:
        sizes = (size for stop in self._stop for size in range(len(stop) - 1, 0, -1) if text.endswith(stop[:size]))
        return max(sizes, default=0)


def bytes_of(text: str, data: bytes) -> int:
    """How many of the first bytes of `data`, of which `text` is the beginning, have become `text`."""
    ends = [0, *_character_ends(data)]
    return ends[len(text)]


def _character_ends(data: bytes) -> Iterator[int]:
    """Where each character of a text ends in its bytes; a stretch that was replaced is one character."""
    place = 0
    while place < len(data):
        try:
            text, after = data[place:].decode(), len(data)
        except UnicodeDecodeError as broken:
            text, after = data[place : place + broken.start].decode(), place + broken.end
        for character in text:
            place += len(character.encode())
            yield place
        if place < after:
            place = after
            yield place

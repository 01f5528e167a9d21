"""A long text in pieces that are tokenised one by one, for a tokenizer may take a time that grows with the square of its text.

Between two characters that stand beside each other in no token, no merge of a tokenizer reaches across; and where a letter
is followed by a space, a mark or a sign, every rule that splits text before merging ends a match. A text that is cut only
there gives the tokens of the whole. Prose and programs have such a place every few words. A stretch without any (thousands of
blanks, or one endless word) is cut where it is too long: its tokens still spell it, but may be others than those of the whole.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from itertools import pairwise

MOST = 512
"""Characters of a piece at most."""


class Cuts:
    """Where texts may be cut for one vocabulary.

    pieces: the bytes of its tokens. control: how its control tokens are written, which are not to be cut in any case.
    """

    def __init__(self, pieces: Iterable[bytes], control: Iterable[str] = ()) -> None:
        self._written = {pair for text in control for pair in pairwise(text)}
        self._joined = set(self._written)
        self._joined_bytes: set[tuple[int, int]] = set()  # of tokens that are no whole characters
        for piece in pieces:
            try:
                text = piece.decode()
            except UnicodeDecodeError:
                self._joined_bytes.update(pairwise(piece))
            else:
                if not text[1:].isalpha():  # as of most words: it has no border within
                    self._joined.update(pair for pair in pairwise(text) if _is_border(*pair))

    def cut(self, text: str) -> Iterator[str]:
        """The text in pieces; one that is short is one piece."""
        start = 0
        while len(text) - start > MOST:
            stop = self._last(text, start) or self._anywhere(text, start)
            yield text[start:stop]
            start = stop
        yield text[start:]

    def _last(self, text: str, start: int) -> int | None:
        """The last place in reach that changes nothing."""
        return next((place for place in range(start + MOST, start, -1) if self._is_free(text[place - 1], text[place])), None)

    def _anywhere(self, text: str, start: int) -> int:
        """The last place in reach, if it can be outside of what a control token is written with."""
        places = range(start + MOST, start, -1)
        return next((place for place in places if (text[place - 1], text[place]) not in self._written), start + MOST)

    def _is_free(self, before: str, after: str) -> bool:
        if not _is_border(before, after) or (before, after) in self._joined:
            return False
        return (before.encode()[-1], after.encode()[0]) not in self._joined_bytes


def _is_border(before: str, after: str) -> bool:
    return before.isalpha() and (after.isspace() or (after not in "'\u2019_" and unicodedata.category(after)[0] in "PS"))

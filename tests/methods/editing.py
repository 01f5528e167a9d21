"""A toy that edits: given a page and what is to be renamed in it, it writes the page again with that renamed."""

import re
import zlib
from collections.abc import Sequence
from pathlib import Path

from antiphon.core.distributions import Logits
from antiphon.models.toy import MERGES, ToyModel, toy_pieces

ASKED = re.compile(rb"(?s)(.*)\n\nThe same with (\S+) renamed to (\S+):\n(.*)$")
SURE = 20.0
"""What the next token of the edited page has over what a toy gives any token, in nats."""
WORDS = (
    *MERGES,
    b"    ",
    b"self",
    b"def ",
    b"return ",
    b"import ",
    b"from ",
    b" = ",
    b"():\n",
    b"\n\n",
    b"or",
    b"es",
    b"is",
    b"to",
)
ROOT = Path(__file__).parents[2]
CODE = ROOT / "examples" / "one_process.py"
TEXT = ROOT / "docs" / "benchmarks.md"


def edit(page: str, old: str, new: str) -> str:
    """What is asked."""
    return f"{page}\n\nThe same with {old} renamed to {new}:\n"


def page_of(path: Path, characters: int) -> str:
    """The beginning of a file, to the end of a line."""
    return path.read_text(encoding="utf-8")[:characters].rpartition("\n")[0]


class EditingModel(ToyModel):
    """Writes the edited page; without a page it is a toy like any other.

    knows: the share of places where it knows how the page goes on; at others it is a toy. So it can stand for a drafter too.
    """

    def __init__(self, *, order: int = 1, seed: int = 1, knows: float = 1.0, name: str = "editor") -> None:
        super().__init__(toy_pieces(merges=WORDS, order=order), seed=seed, sharpness=1.0, name=name)
        self._knows = knows

    def logits(self, tokens: Sequence[int]) -> Logits:
        """The scores of the token after `tokens`: float32, shape (vocabulary,)."""
        scores, token = super().logits(tokens), self._next(self.vocabulary.join(tokens))
        if token is None:
            return scores
        sure = scores.copy()
        sure[token] += SURE
        return sure

    def _next(self, text: bytes) -> int | None:
        asked = ASKED.fullmatch(text)
        if asked is None or zlib.crc32(text) >= self._knows * 2**32:
            return None
        page, old, new, written = asked.groups()
        edited = page.replace(old, new)
        if not edited.startswith(written):
            return None
        rest = edited[len(written) :].decode(errors="ignore")
        return self.tokenize(rest[: self._longest])[0] if rest else self.vocabulary.end

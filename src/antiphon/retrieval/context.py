"""What an end found for a prompt, and the text that its model then reads (METHODS 4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from antiphon.retrieval.index import Found, Index
from antiphon.retrieval.weights import Scorer

Form = Literal["question", "text"]
"""A prompt that is a question to be answered, or a text to be continued."""


@dataclass(frozen=True, slots=True)
class Looked:
    """Passages as text, best first, and the logarithm of what they weigh together (log h; -inf for none).

    found: what of the library they are; scorer: how they are weighed. left_out: how many more were found, for which the model
    that reads them has no room.
    """

    passages: tuple[str, ...]
    log_mass: float
    found: tuple[Found, ...] = ()
    scorer: Scorer | None = None
    left_out: int = 0

    def first(self, count: int) -> "Looked":
        """The first `count` of the passages alone, and what they weigh."""
        if count == len(self.passages) or self.scorer is None:
            return self
        found = self.found[:count]
        mass = self.scorer.log_weight([one.score for one in found])
        return Looked(self.passages[:count], mass, found, self.scorer, self.left_out + len(self.passages) - count)


def look(library: Index, prompt: str, kept: int) -> Looked:
    """The `kept` best passages for a prompt."""
    found = library.search(prompt, kept)
    mass = library.scorer.log_weight([one.score for one in found])
    return Looked(tuple(map(_text, found)), mass, tuple(found), library.scorer)


def context(passages: Sequence[str], prompt: str, form: Form) -> str:
    """The passages in front of the prompt, the same on both ends."""
    asked = f"Question: {prompt}\nAnswer:" if form == "question" else prompt
    return "\n\n".join([*passages, asked])


def _text(found: Found) -> str:
    # A model reads a title better than none, but not the same words twice.
    title, text = found.passage.title, found.passage.text
    return f"{title}\n{text}" if title and not text.startswith(title) else text

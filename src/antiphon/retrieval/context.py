"""What an end found for a prompt, and the text that its model then reads (METHODS 4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from antiphon.retrieval.index import Found, Index

Form = Literal["question", "text"]
"""A prompt that is a question to be answered, or a text to be continued."""


@dataclass(frozen=True, slots=True)
class Looked:
    """Passages as text, best first, and the logarithm of what they weigh together (log h; -inf for none).

    found: what of the library they are.
    """

    passages: tuple[str, ...]
    log_mass: float
    found: tuple[Found, ...] = ()


def look(library: Index, prompt: str, kept: int) -> Looked:
    """The `kept` best passages for a prompt."""
    found = library.search(prompt, kept)
    return Looked(tuple(map(_text, found)), library.scorer.log_weight([one.score for one in found]), tuple(found))


def context(passages: Sequence[str], prompt: str, form: Form) -> str:
    """The passages in front of the prompt, the same on both ends."""
    asked = f"Question: {prompt}\nAnswer:" if form == "question" else prompt
    return "\n\n".join([*passages, asked])


def _text(found: Found) -> str:
    title, text = found.passage.title, found.passage.text
    return f"{title}\n{text}" if title and not text.startswith(title) else text

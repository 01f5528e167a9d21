"""Passages that fit: what an end found is measured in tokens of the model that reads it, and the last ones are left out."""

from collections.abc import Sequence

from antiphon.models.base import Model
from antiphon.models.chat import prompt_ids
from antiphon.retrieval.context import Form, Looked, context


def fitted(model: Model, looked: Looked, prompt: str, form: Form, chat: bool, room: int) -> tuple[Looked, list[int]]:
    """What of the passages fits before the prompt in a context with `room` for so many tokens, and the ids of it all.

    A prompt that does not fit by itself is given back as it is: whoever asked is told so.
    """
    count = len(looked.passages)
    while True:
        ids = prompt_ids(model, context(looked.passages[:count], prompt, form), chat=chat)
        if not count or len(ids) <= room:
            return looked.first(count), ids
        # One at a time, from the worst: a template or a tokenizer can make the sum of parts longer or shorter than the whole.
        count -= 1


def together(
    model: Model, others: Sequence[str], own: Sequence[str], prompt: str, form: Form, chat: bool, room: int
) -> list[int]:
    """The ids of the passages of several ends in one context; of what does not fit the last of each go first."""
    kept = [len(others), len(own)]
    while True:
        ids = prompt_ids(model, context([*others[: kept[0]], *own[: kept[1]]], prompt, form), chat=chat)
        if not any(kept) or len(ids) <= room:
            return ids
        kept[0 if kept[0] >= kept[1] else 1] -= 1

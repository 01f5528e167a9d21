"""From a prompt to the ids that a model reads: bare, or in the model's chat template."""

import json
import secrets
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from antiphon.errors import ModelError, UsageError
from antiphon.models.base import Model, spell

# A template is a program: besides Jinja's own errors it can fail as any expression can.
_FAILURES = (TemplateError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def prompt_ids(model: Model, prompt: str, *, chat: bool) -> list[int]:
    """The ids of a prompt, the beginning-of-sequence token first if the model wants one, and never twice.

    Raises UsageError for an empty prompt, ModelError if `chat` is asked of a model without a (working) template.
    """
    if not prompt:
        raise UsageError("the prompt is empty: give at least one character")
    if not chat:
        return [*model.begin, *spell(model, prompt.encode())]
    ids = _spelled(model, prompt)
    return ids if ids[: len(model.begin)] == list(model.begin) else [*model.begin, *ids]


def _spelled(model: Model, prompt: str) -> list[int]:
    """The ids of the rendered template. Control tokens are recognised in the template alone: in a prompt they are text.

    A mark shows where the template puts the prompt, which it may strip or escape on the way.
    """
    # Random, so that no prompt can hold it: what stands between marks is text, whatever it looks like.
    mark = secrets.token_hex(16)
    first, *others = render(model, mark).split(mark)
    whole = render(model, prompt)
    written = prompt
    if len(others) == 1 and whole.startswith(first) and whole.endswith(others[0]):
        written = whole[len(first) : len(whole) - len(others[0])]
    ids = model.tokenize(first, special=True) if first else []
    for part in others:
        ids += spell(model, written.encode(errors="replace"))
        ids += _behind(model, part) if part else []
    return ids


def _behind(model: Model, part: str) -> list[int]:
    """The ids of a part of the template that follows text: without the space that some tokenizers put before all they get."""
    ids = model.tokenize(part, special=True)
    plain = list(takewhile(lambda token: model.vocabulary.pieces[token], ids))
    text = model.vocabulary.join(plain)
    if text.startswith(b" ") and not part.startswith(" "):
        return [*spell(model, text[1:]), *ids[len(plain) :]]
    return ids


def render(model: Model, prompt: str) -> str:
    """The prompt as the one message of a conversation, in the model's chat template, with the model's turn begun."""
    if model.chat_template is None:
        raise ModelError(f"{model.name} has no chat template: leave out --chat")
    # A template comes with a model file from anywhere, and is a program.
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    environment.filters["tojson"] = _json
    environment.globals.update(raise_exception=_raise, strftime_now=lambda form: datetime.now(UTC).strftime(form))
    pieces = {"bos_token": _text(model, model.begin[:1]), "eos_token": _text(model, (model.vocabulary.end,))}
    try:
        template = environment.from_string(model.chat_template)
        return template.render(messages=[{"role": "user", "content": prompt}], add_generation_prompt=True, **pieces)
    except _FAILURES as error:
        raise ModelError(f"the chat template of {model.name} fails ({error}): leave out --chat") from error


def _text(model: Model, ids: tuple[int, ...]) -> str:
    return "".join(model.token_text(token) for token in ids)


def _json(value: Any, indent: int | None = None) -> str:
    """Plain JSON, as templates are written for; Jinja's own filter escapes it for HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)

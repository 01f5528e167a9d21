"""Options of methods: how a dataclass declares one, and how a person's `name=value` becomes one.

Each method has one dataclass, beside it; a field made by `option` holds the default and the help that a command line shows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from typing import Any, Literal, Protocol, get_args, get_origin, get_type_hints

from antiphon.errors import UsageError

_NO_WORDS: Mapping[str, object] = {}
_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def require(condition: bool, sentence: str) -> None:
    """Raise UsageError with this sentence unless the condition holds."""
    if not condition:
        raise UsageError(sentence)


def option(default: Any, help: str, words: Mapping[str, object] = _NO_WORDS) -> Any:
    """A field of a method's options. words: what may be written for some of its values, such as `auto` for 0."""
    return field(default=default, metadata={"help": help, "words": words})


def option_of(kind: type, name: str) -> Any:
    """The same field as `kind` has, for a dataclass that cannot inherit it."""
    found = next(one for one in fields(kind) if one.name == name)
    return field(default=found.default, metadata=found.metadata)


class MethodOptions(Protocol):
    """What the options of every method have."""

    @property
    def max_drafts(self) -> int:
        """Drafts or nodes of a tree that a round has at most; 0 where nothing is drafted for the cloud to test."""
        ...


@dataclass(frozen=True, slots=True)
class NoOptions:
    """The options of a method that has none."""

    @property
    def max_drafts(self) -> int:
        """It drafts nothing."""
        return 0


@dataclass(frozen=True, slots=True)
class Option:
    """One option, as a person sees it. kind: int, float, bool or str. choices: all of its values, if they are few."""

    name: str
    kind: type
    default: object
    help: str
    words: Mapping[str, object]
    choices: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The default, as a person would write it."""
        word = next((word for word, value in self.words.items() if value == self.default), None)
        return word or (str(self.default).lower() if self.kind is bool else str(self.default))

    def value(self, text: str) -> object:
        """What `text` stands for. Raises UsageError."""
        if text in self.words:
            return self.words[text]
        if self.kind is bool and text.lower() in _TRUTH:
            return _TRUTH[text.lower()]
        if self.choices and text not in self.choices:
            raise UsageError(f"{self.name} must be {_listed(self.choices)}, not {text!r}")
        try:
            return self._made(text)
        except ValueError as error:
            raise UsageError(f"{self.name} must be {self._wanted()}, not {text!r}") from error

    def _made(self, text: str) -> object:
        if self.kind is bool:
            raise ValueError(text)
        made = self.kind(text)
        if isinstance(made, float) and math.isnan(made):
            raise ValueError(text)
        return made

    def _wanted(self) -> str:
        kinds = {int: "a whole number", float: "a number", bool: "true or false"}
        return _listed((kinds[self.kind], *self.words))


def options_of(kind: type) -> tuple[Option, ...]:
    """The options that a dataclass declares, in its order."""
    hints = get_type_hints(kind)
    return tuple(_described(one, hints[one.name]) for one in fields(kind))


def read_options(kind: type, texts: Sequence[str], method: str) -> dict[str, object]:
    """The values of `name=value` texts, for `kind`, the options of `method`; `-` in a name is `_`. Raises UsageError."""
    known = {one.name: one for one in options_of(kind)}
    values: dict[str, object] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        name = name.replace("-", "_")
        if not equals:
            raise UsageError(f"an option is written name=value, not {text!r}")
        if name not in known:
            raise UsageError(_unknown(name, tuple(known), method))
        values[name] = known[name].value(value)
    return values


def _described(one: "Field[Any]", hint: Any) -> Option:
    default = None if one.default is MISSING else one.default
    choices = tuple(map(str, get_args(hint))) if get_origin(hint) is Literal else ()
    kind = str if choices else hint
    return Option(one.name, kind, default, one.metadata.get("help", ""), one.metadata.get("words", _NO_WORDS), choices)


def _unknown(name: str, known: Sequence[str], method: str) -> str:
    if not known:
        return f"the method {method} has no option {name!r}, nor any other"
    close = get_close_matches(name, known, 1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    return f"the method {method} has no option {name!r}{meant}: it has {', '.join(known)}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"

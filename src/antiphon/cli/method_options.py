"""The options of a method on the command line: `-o name=value`, or a flag that stands for one of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from antiphon.options import read_options

if TYPE_CHECKING:
    from antiphon.methods.base import Method

OptionTexts = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="NAME=VALUE",
        help="See `antiphon methods NAME`; repeatable.",
        rich_help_panel="Method",
    ),
]


def method_options(method: "Method", given: Sequence[str] | None, **flags: str | None) -> Any:
    """The method's options, as they were given; a flag that was not is None. Raises UsageError."""
    texts = [f"{name}={value}" for name, value in flags.items() if value is not None]
    return method.options(**read_options(method.options, [*texts, *(given or ())], method.name))

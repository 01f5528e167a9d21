"""Commands that are the laboratory's now: one sentence that names the new one."""

from collections.abc import Callable

import typer

from antiphon.errors import UsageError

MOVED = ("bench", "reproduce", "link", "profile")
"""What `antiphon-lab` does."""

ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": list[str]()}


def refuse_moved(app: typer.Typer) -> None:
    """Let `app` answer the names of before."""
    for name in MOVED:
        app.command(name, hidden=True, context_settings=ANYTHING)(_refusing(name))


def _refusing(name: str) -> Callable[[], None]:
    def refuse() -> None:
        raise UsageError(f"`antiphon {name}` is `antiphon-lab {name}` now: same options")

    return refuse

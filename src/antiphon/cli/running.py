"""One run of a command line: errors that a person can mend are one sentence and exit code 2, Ctrl-C is a line of its own."""

import sys
from collections.abc import Callable
from contextlib import suppress

from antiphon import shown
from antiphon.errors import AntiphonError

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""


def run(app: Callable[[], object]) -> None:
    """Run a command line; exit code 2 for whatever a person can mend."""
    try:
        app()
    except AntiphonError as error:
        sys.exit(_complain(error))
    except KeyboardInterrupt:
        _say_stopped()
        sys.exit(INTERRUPTED)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # typer's word for a Ctrl-C within a command
            _say_stopped()
        raise
    except BrokenPipeError:
        # Or Python would complain of the broken pipe once more when it flushes at its end.
        sys.stderr.close()
        sys.exit(141)


def _say_stopped() -> None:
    """On a line of its own, for text may have ended within one."""
    with suppress(OSError):
        sys.stdout.flush()
        print("\nantiphon: stopped", file=sys.stderr)  # noqa: T201


def _complain(error: AntiphonError) -> int:
    print(f"antiphon: {shown.line(shown.address(str(error)))}", file=sys.stderr)  # noqa: T201
    return 2

"""What comes in by stdin, and where an answer goes: a terminal gets pictures for control characters, a pipe the very bytes."""

import sys

from antiphon import shown
from antiphon.errors import UsageError


def write(text: str) -> None:
    """Add text of a model to stdout, at once."""
    if sys.stdout.isatty():
        sys.stdout.write(shown.block(text))
    else:
        sys.stdout.flush()
        # The bytes as they are: whoever reads a pipe wants what the model wrote, and no terminal is there to be steered.
        sys.stdout.buffer.write(text.encode(errors="replace"))
    sys.stdout.flush()


def from_stdin(what: str) -> str:
    """What is piped in, without the end of its last line, which an editor or `echo` put there. Raises UsageError."""
    try:
        text = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"the {what} on stdin is not UTF-8 (byte {error.start}): convert it first") from error
    return text.removesuffix("\n").removesuffix("\r")

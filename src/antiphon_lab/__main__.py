"""`antiphon-lab`, and `python -m antiphon_lab`: the laboratory."""

import os

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""


def main() -> None:
    """Load the command line and run it. A Ctrl-C ends the process at once, before it is there too."""
    try:
        from antiphon_lab import cli

        cli.main()
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            os._exit(INTERRUPTED)  # a thread may be in a long pass of its model: nobody waits for that
        raise


if __name__ == "__main__":
    main()

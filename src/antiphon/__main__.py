"""`antiphon`, and `python -m antiphon`: the command line."""

import os


def main() -> None:
    """Load the command line and run it. A Ctrl-C before it is there ends the process as one after it does."""
    try:
        from antiphon import cli
    except KeyboardInterrupt:
        os._exit(130)
    cli.main()


if __name__ == "__main__":
    main()

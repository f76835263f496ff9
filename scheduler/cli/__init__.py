"""The command ``tilewright``."""

from __future__ import annotations


def main() -> None:
    """Run the command line of this process and exit."""
    import sys

    from scheduler.cli.app import run

    sys.exit(run(sys.argv[1:]))

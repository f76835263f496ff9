"""The command ``tilewright``."""

from __future__ import annotations

import os
import sys

from scheduler.tuning.interrupt import Ended, exit_code, listen


def main() -> None:
    """Run the command line of this process and exit."""
    listen()
    try:
        _open_standard_streams()
        from scheduler.cli.app import run  # takes a while

        code = run(sys.argv[1:])
    except Ended:
        print("tilewright: interrupted", file=sys.stderr)
        code = exit_code()
    sys.exit(code)


def _open_standard_streams() -> None:
    """Give a process that was started without standard streams empty ones.

    Else the next file it opens, a database for example, would take their place and get what is
    printed by it and its children.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest that is free
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdout = sys.stdout or open(1, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w")  # noqa: SIM115

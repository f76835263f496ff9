"""The command ``tilewright``."""

from __future__ import annotations

import gc
import os
import sys
import time
from io import TextIOWrapper

from tilewright.scheduler.cli.exit_codes import BAD_INPUT
from tilewright.scheduler.tuning.interrupt import Ended, exit_code, listen
from tilewright.spaces.linux import complaint
from tilewright.spaces.version import VERSION

BEGAN = time.monotonic()
"""The time at which this process began, but for the start of Python."""
LEAST_MIB = 640
"""Memory that the libraries of a command take up. With less, some end the process by themselves."""
GARBAGE = 50_000
"""New objects after which Python looks for cycles that nothing uses. After as few as it does
otherwise, it would search modules again and again while they load, and find nothing."""


def main() -> None:
    """Run the command line of this process and exit."""
    gc.set_threshold(GARBAGE)
    if words := complaint():
        print(f"tilewright: {words}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    listen()
    try:
        _open_standard_streams()
        code = _run()
    except Ended:
        print("tilewright: interrupted", file=sys.stderr)
        code = exit_code()
    gc.freeze()  # Python would look for garbage several times while it ends
    sys.exit(code)


def _run() -> int:
    import resource  # of POSIX alone

    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        if most < LEAST_MIB << 20:
            allowed = f"this process may use {most >> 20} MiB of memory (ulimit -v)"
            print(f"tilewright: {allowed}; at least {LEAST_MIB} are needed", file=sys.stderr)
            return BAD_INPUT
        _load_blas()
    if sys.argv[1:] == ["--version"]:  # without the libraries that read command lines
        print(f"tilewright {VERSION}")
        return 0
    from tilewright.scheduler.cli.app import run  # takes a while

    return run(sys.argv[1:], BEGAN)


def _load_blas() -> None:
    """Have the libraries of linear algebra take their memory while there is enough of it, and for
    one thread alone.

    Those of NumPy and SciPy take 40 MiB for each of as many threads as there are cores, the last
    of it when they first multiply, and end the process where there is none.
    """
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    import numpy as np
    from scipy.linalg import blas

    factor = np.ones((128, 128))  # large enough to be multiplied in blocks, which are copied
    blas.dgemm(1.0, factor, factor @ factor)


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
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        # What an encoding lacks, as the name of a file, is spelled out: no result is lost for it.
        sys.stdout.reconfigure(errors="backslashreplace")

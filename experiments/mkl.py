"""Opens MKL's fast path, which it takes on Intel's processors alone, for the rivals that use it.

MKL asks a function of its own whether the processor is Intel's, though others have the same
instructions. A library that is loaded first answers in its place; this process alone has it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tilewright.spaces.cpu.compiler import find_compiler

ANSWER = "int mkl_serv_intel_cpu_true(void) { return 1; }\n"
OPENED = "EXPERIMENTS_MKL_OPENED"
"""Set in the environment of a process that has the library."""


def open_fast_path(module: str) -> None:
    """Run this process anew as ``python -m module`` with the same arguments and the library, unless
    it has that; its children have not."""
    if os.environ.pop(OPENED, ""):
        os.environ.pop("LD_PRELOAD", None)
        return
    library = os.memfd_create("mkl", 0)
    os.write(library, _built())
    environment = {**os.environ, OPENED: "1", "LD_PRELOAD": f"/proc/self/fd/{library}"}
    os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], environment)


def _built() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "mkl.c", Path(folder) / "mkl.so"
        source.write_text(ANSWER)
        command = [find_compiler().path, "-shared", "-fPIC", str(source), "-o", str(library)]
        subprocess.run(command, check=True)
        return library.read_bytes()

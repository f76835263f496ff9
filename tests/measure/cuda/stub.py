"""Runs Python in a process whose NVIDIA driver is ``stub_driver.c``, on a machine without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("stub_driver.c")


def build_stub(folder: Path) -> Path:
    """The folder that holds the driver's library."""
    library = folder / "libcuda.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", library, SOURCE], check=True)
    return folder


def run_with_stub(folder: Path, script: str, **environment: str) -> tuple[Any, list[str]]:
    """What ``script`` prints last, as JSON, and the driver's log."""
    log = folder / "log"
    log.unlink(missing_ok=True)
    variables = {"LD_LIBRARY_PATH": str(folder), "STUB_LOG": str(log), **environment}
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | variables,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = log.read_text().splitlines() if log.exists() else []
    return json.loads(done.stdout.splitlines()[-1]), lines

"""The message on systems where Tilewright cannot run."""

from __future__ import annotations

import sys
from importlib import import_module


def complaint() -> str:
    """Say why Tilewright does not run on this system, in one line; empty on Linux."""
    if sys.platform == "linux" and _has_locks():
        return ""
    return f"Tilewright needs Linux, and this is {sys.platform}; on Windows use WSL, or a container"


def _has_locks() -> bool:
    try:
        import_module("fcntl")
    except ImportError:
        return False
    return True

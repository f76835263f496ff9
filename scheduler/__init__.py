"""Decides what to try next, and is what users touch: ``tune`` and ``best``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scheduler.best_kernel import best
    from scheduler.tuner import tune

__all__ = ["best", "tune"]

# No module may bear the name of a function here: importing it would hide the function.
_HOME = {"best": "scheduler.best_kernel", "tune": "scheduler.tuner"}


def __getattr__(name: str) -> Any:
    """Load a public function when it is first used: its dependencies are heavy."""
    if name not in _HOME:
        raise AttributeError(f"module 'scheduler' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)

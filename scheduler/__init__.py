"""Decides what to try next, and is what users touch: ``tune`` and ``best``.

What is imported here is light; heavy dependencies load when they are used.
"""

from scheduler.best import best
from scheduler.tuner import tune

__all__ = ["best", "tune"]

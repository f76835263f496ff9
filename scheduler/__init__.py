"""Decides what to try next, and is what users touch: ``tune``, ``query`` and ``best``.

What is imported here is light; heavy dependencies load when they are used.
"""

from scheduler.best import best
from scheduler.query import query
from scheduler.tuner import tune

__all__ = ["best", "query", "tune"]

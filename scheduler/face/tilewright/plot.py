"""Figures of what a database knows: ``from tilewright import plot``, then ``plot.history(...)``."""

from tilewright.scheduler.report.plot import (
    course,
    decisions,
    figure,
    history,
    mapping,
    parallel,
    pareto,
    roofline,
)

__all__ = [
    "course",
    "decisions",
    "figure",
    "history",
    "mapping",
    "parallel",
    "pareto",
    "roofline",
]

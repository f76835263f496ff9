"""Figures of what a database knows: ``from tilewright import plot``, then ``plot.history(...)``."""

from tilewright.scheduler.report.plot import decisions, figure, history, mapping, parallel, roofline

__all__ = ["decisions", "figure", "history", "mapping", "parallel", "roofline"]

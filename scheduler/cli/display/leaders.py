"""The best few schedules of a run, each with its latency and its share of the best one's speed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from tilewright.scheduler.cli.output import percent, seconds
from tilewright.scheduler.cli.text import plain
from tilewright.scheduler.tuning.states import Leader


def leaders_table(leaders: Sequence[Leader]) -> Table:
    """Return the best few, a line each: decisions come last, since they take the most room."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    made.add_column("latency", justify="right", no_wrap=True)
    made.add_column("of best", justify="right", no_wrap=True)
    made.add_column("schedule", overflow="fold")
    for leader in leaders:
        figures = (seconds(leader.latency), percent(leader.share))
        made.add_row(*figures, Text(plain(str(leader.schedule))))
    return made

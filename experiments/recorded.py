"""Reads schedules from committed results, whichever version of the program wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.spaces.earlier_names import present_schedule
from tilewright.spaces.schedule import Schedule


def recorded_schedule(data: Mapping[str, Any]) -> Schedule:
    """Return the schedule in ``data``, its decisions under today's names."""
    return Schedule.from_json(present_schedule(data))

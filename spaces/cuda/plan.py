"""Plans of kernels: the numbers that follow from the decisions of one schedule."""

from __future__ import annotations

from typing import Any

from tilewright.spaces.decided import Decided


class Plan:
    """A base for plans, which hold the decisions ``values`` of one schedule."""

    values: Any

    def number(self, name: str) -> int:
        """Return an integer decision."""
        return int(self.values[name])


class Size:
    """A descriptor that reads an integer of a plan from its ``sizes`` of populations of schedules.

    The integer is the result, for the plan's decisions, of the method of the attribute's name, or
    of another ``method``. ``of`` is the name of the plan's attribute that has the sizes.
    """

    def __init__(self, method: str = "", of: str = "sizes") -> None:
        self.method, self.of = method, of

    def __set_name__(self, owner: type, name: str) -> None:
        self.method = self.method or name

    def __get__(self, plan: Any, owner: type) -> int:
        return int(getattr(getattr(plan, self.of), self.method)(plan.values))


class Number(Decided):
    """A descriptor that reads an integer decision of a plan."""

    def __get__(self, plan: Any, owner: type) -> int:
        return int(plan.values[self.name])

"""Decisions as attributes of what follows from them."""

from __future__ import annotations

from typing import Any


class Decided:
    """Reads a decision from the ``values`` of an object, those of one schedule or columns of many.

    The decision has the attribute's name, or another ``name``. A space may lack the decision if
    there is a ``default``.
    """

    def __init__(self, name: str = "", default: Any = None) -> None:
        self.name, self.default = name, default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name

    def __get__(self, sizes: Any, owner: type) -> Any:
        if self.default is None:
            return sizes.values[self.name]
        return sizes.values.get(self.name, self.default)

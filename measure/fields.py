"""Reads a JSON object field by field, and says in words what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from spaces.errors import InputError


class Fields:
    """The fields of one JSON object that came from outside; each can be taken once.

    Every method raises :class:`InputError` that names the field, its value and what is allowed.
    """

    def __init__(self, data: object) -> None:
        if not isinstance(data, Mapping):
            raise InputError(f"expected a JSON object, got {data!r:.80}")
        self._left = dict(data)

    def take(self, name: str) -> Any:
        """The value of ``name``, whatever it is."""
        if name not in self._left:
            raise InputError(f"field {name!r} is missing")
        return self._left.pop(name)

    def text(self, name: str) -> str:
        """A string."""
        value = self.take(name)
        return value if isinstance(value, str) else self._refuse(name, value, "text")

    def choice(self, name: str, allowed: Iterable[str]) -> str:
        """One of the strings ``allowed``."""
        value, words = self.take(name), [str(word) for word in allowed]
        return value if value in words else self._refuse(name, value, ", ".join(words))

    def number(self, name: str) -> float:
        """A finite number; zero has no sign, since not every database keeps it."""
        value = self.take(name)
        return float(value) + 0.0 if _finite(value) else self._refuse(name, value, "a number")

    def numbers(self, name: str) -> tuple[float, ...]:
        """A list of finite numbers."""
        value = self.take(name)
        if isinstance(value, list | tuple) and all(_finite(x) for x in value):
            return tuple(float(x) for x in value)
        return self._refuse(name, value, "a list of numbers")

    def mapping(self, name: str) -> dict[str, Any]:
        """A JSON object."""
        value = self.take(name)
        return dict(value) if isinstance(value, Mapping) else self._refuse(name, value, "an object")

    def finish(self) -> None:
        """Refuse fields that nobody took."""
        for name in self._left:
            raise InputError(f"field {name!r} is unknown")

    def _refuse(self, name: str, value: object, allowed: str) -> Any:
        raise InputError(f"{name}={value!r:.80} is not allowed; allowed: {allowed}")


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

"""Reads a JSON object field by field, and says in words what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any

from tilewright.spaces.errors import InputError
from tilewright.spaces.schedule import LARGEST
from tilewright.spaces.validation.text import is_plain, spelled_out

MOST_PROSE = 20_000
"""Characters that are kept of an error's text."""

_LISTS = (list, tuple)


class Fields:
    """The fields of one JSON object that came from outside; each can be taken once.

    Every method raises :class:`InputError` that names the field, its value and what is allowed.
    """

    def __init__(self, data: object) -> None:
        if not (type(data) is dict or isinstance(data, Mapping)):
            raise InputError(f"expected a JSON object, got {data!r:.80}")
        self._left = dict(data)

    def take(self, name: str) -> Any:
        """The value of ``name``, whatever it is."""
        try:
            return self._left.pop(name)
        except KeyError:
            raise InputError(f"field {name!r} is missing") from None

    def text(self, name: str) -> str:
        """Return a string that can be printed, of a reasonable length."""
        value = self.take(name)
        return str(value) if is_plain(value) else self._refuse(name, value, "printable text")

    def prose(self, name: str) -> str:
        """Return a string that others wrote for people: spelled out, and cut off where it goes on
        and on, instead of refused."""
        value = self.take(name)
        return prose(value) if isinstance(value, str) else self._refuse(name, value, "text")

    def choice(self, name: str, allowed: Collection[str]) -> str:
        """Return one of the strings ``allowed``."""
        value = self.take(name)
        known = isinstance(value, str) and value in allowed
        return value if known else self._refuse(name, value, ", ".join(allowed))

    def flag(self, name: str) -> bool:
        """Return True or false."""
        value = self.take(name)
        return value if isinstance(value, bool) else self._refuse(name, value, "true, false")

    def integer(self, name: str) -> int:
        """Return a whole number of 64 bits."""
        value = self.take(name)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST:
            return value
        return self._refuse(name, value, "a whole number of 64 bits")

    def number(self, name: str, least: float = -math.inf) -> float:
        """Return a finite number that is not below ``least``; zero has no sign, since not every
        database keeps it."""
        value = self.take(name)
        if _finite(value) and value >= least:
            return float(value) + 0.0
        return self._refuse(name, value, f"a number{_from(least)}")

    def optional(self, name: str, least: float = -math.inf) -> float | None:
        """Return a finite number above ``least``, or null."""
        value = self.take(name)
        if value is None or (_finite(value) and value > least):
            return None if value is None else float(value) + 0.0
        above = "" if least == -math.inf else f" above {least:g}"
        return self._refuse(name, value, f"a number{above}, or null")

    def numbers(self, name: str, least: float = -math.inf) -> tuple[float, ...]:
        """Return a list of finite numbers, none of them below ``least``."""
        value = self.take(name)
        if isinstance(value, _LISTS) and all(_finite(v) and v >= least for v in value):
            return tuple(map(float, value))
        return self._refuse(name, value, f"a list of numbers{_from(least)}")

    def mapping(self, name: str) -> dict[str, Any]:
        """Return a JSON object."""
        value = self.take(name)
        if type(value) is dict or isinstance(value, Mapping):
            return dict(value)
        return self._refuse(name, value, "an object")

    def description(self, name: str) -> dict[str, Any]:
        """Return a JSON object whose texts can be printed and whose numbers are of 64 bits."""
        value = self.mapping(name)
        self._check_parts(name, (value,))
        return value

    def finish(self) -> None:
        """Refuse fields that nobody took."""
        for name in self._left:
            raise InputError(f"field {name!r} is unknown")

    def _check_parts(self, name: str, parts: Iterable[object]) -> None:
        """Refuse JSON values that are not as in :meth:`description`, at whatever depth."""
        for part in parts:
            fits = True
            if isinstance(part, str):
                fits = is_plain(part)
            elif isinstance(part, (int, float)):
                fits = _fits(part)
            elif isinstance(part, _LISTS):
                self._check_parts(name, part)
            elif isinstance(part, Mapping):
                self._check_parts(name, chain(part, part.values()))
            if not fits:
                self._refuse(name, part, "printable text and numbers of 64 bits in it")

    def _refuse(self, name: str, value: object, allowed: str) -> Any:
        raise InputError(f"{name}={value!r:.80} is not allowed; allowed: {allowed}")


def prose(text: str) -> str:
    """Text for people, as it is kept: spelled out, and cut off where it goes on and on."""
    if len(text) <= MOST_PROSE and text.isprintable():
        return text
    spelled = spelled_out(text[: MOST_PROSE + 1])
    return spelled if len(spelled) <= MOST_PROSE else spelled[:MOST_PROSE] + " ..."


def _from(least: float) -> str:
    return "" if least == -math.inf else f" from {least:g}"


def _finite(value: object) -> bool:
    if type(value) is float:
        return math.isfinite(value)
    return isinstance(value, int | float) and not isinstance(value, bool) and _fits(value)


def _fits(value: object) -> bool:
    """Tell whether a number is finite and a float can hold it; values of other types fit."""
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or abs(value) <= LARGEST

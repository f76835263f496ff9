"""Times as other tuners write them, in the units that they name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilewright.spaces.errors import InputError, shown

LEAST, FAILED = 1e-12, 1e20
"""Times are longer than the first, in seconds. Numbers from the second on stand for failures where
a number must."""

MILLISECONDS = 1e-3

_NAMES = {
    1.0: "s sec secs second seconds",
    MILLISECONDS: "ms msec msecs milli millis millisecond milliseconds milisecond miliseconds",
    1e-6: "us µs μs usec usecs micro micros microsecond microseconds",
    1e-9: "ns nsec nsecs nano nanos nanosecond nanoseconds",
}
"""The names of each unit by its seconds. Files of Kernel Tuner have "miliseconds"."""

_UNITS = {name: seconds for seconds, names in _NAMES.items() for name in names.split()}


def unit_seconds(name: Any, where: str) -> float:
    """Return the seconds of a unit that a file names; :class:`InputError` if it is none of time.
    ``where`` names the field that it stands in."""
    seconds = _UNITS.get(name.strip().lower()) if isinstance(name, str) else None
    if seconds is None:
        raise InputError(
            f"{where}={shown(name)} is no unit of time; allowed: seconds, milliseconds, "
            "microseconds, nanoseconds, s, ms, us, ns"
        )
    return seconds


def as_seconds(time: Any, unit: float) -> float | None:
    """Return the seconds of a time in units of so many seconds; None for what is none, such as an
    error's name."""
    if isinstance(time, bool) or not isinstance(time, int | float):
        return None
    return time * unit if 0 < time < FAILED and time * unit > LEAST else None


def total_seconds(times: Iterable[Any], unit: float) -> float | None:
    """Return the sum of those that are known, in seconds; None if none is."""
    known = [time for time in (as_seconds(time, unit) for time in times) if time is not None]
    return sum(known) if known else None

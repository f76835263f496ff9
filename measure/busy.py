"""Tell in words whether other processes kept a machine busy while kernels were timed.

Measurements keep three signs of that: the share of time that processes waited for a processor
(runners read it in final comparisons), the load average where the system does not report waiting,
and the time of the reference kernel, which also follows the clock of the core.
"""

from __future__ import annotations

from math import isfinite
from statistics import quantiles
from typing import Any

from tilewright.measure.records.measurement import Measurement

BUSY, WAITED, LOAD, CORES = "busy", "waited", "load", "cores"
"""Keys of a measurement's info: the reason in words; the share of its time in which some process
waited for a processor; the load average; and the cores that it is for."""

MOST_WAITING = 0.25
"""Share of the time from which others count: a run's own threads and display take turns as well."""
LEAST_REFERENCES = 5
VARIES, VARIES_ON_GPU = 0.1, 0.5
"""Says how much longer than at best the reference kernel may take. The clock of a GPU follows what
is measured on it (``measure.cluster.driver.drift``)."""


def why_busy(measurement: Measurement) -> str:
    """Say by what signs the machine was busy; empty if there are none."""
    waited, signs = waiting(measurement), []
    if waits(measurement):
        signs.append(
            _loaded(measurement)
            if waited is None
            else f"processes waited for a processor {100 * waited:.0f} % of the time"
        )
    longer = _variation(measurement)
    if longer > (VARIES_ON_GPU if measurement.clock == "device" else VARIES):
        signs.append(f"the reference kernel took up to {100 * longer:.0f} % longer than at best")
    return "; ".join(signs)


def waiting(measurement: Measurement) -> float | None:
    """Return the share of its time in which some process waited for a processor, if a runner
    looked."""
    return _number(measurement.info.get(WAITED))


def waits(measurement: Measurement) -> bool:
    """Tell whether processes waited for much of the time; decided by the load if only that is
    known.
    """
    waited = waiting(measurement)
    return waited >= MOST_WAITING if waited is not None else bool(_loaded(measurement))


def noted(measurement: Measurement) -> dict[str, Any]:
    """Return the entries for a measurement's info: why the machine was busy, nothing if it was
    not.
    """
    words = why_busy(measurement)
    return {BUSY: words} if words else {}


def _loaded(measurement: Measurement) -> str:
    """Return the load in words, if more was running than a run by itself does; else empty."""
    load, cores = (_number(measurement.info.get(name)) for name in (LOAD, CORES))
    if load is None or cores is None or load <= cores + 1:
        return ""
    return f"a load of {load:.1f} on {cores:.0f} core{'' if cores == 1 else 's'}"


def _variation(measurement: Measurement) -> float:
    """Say how much longer than at best the reference kernel took, but for the extremes, as a
    share."""
    samples = measurement.reference_samples
    if len(samples) < LEAST_REFERENCES:
        return 0.0
    least, *_, most = quantiles(samples, n=10, method="inclusive")
    return most / least - 1 if least > 0 else 0.0


def _number(value: object) -> float | None:
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
    return float(value) if known and isinstance(value, (int, float)) else None

"""Hosts of so many simulated devices each, for workers of a cluster to be dressed up as.

Workers get this file, and that of the simulated device, as modules of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from simulated import Simulated, SimulatedRunner

SLEEP = 0.05  # seconds that a candidate takes where it takes any


class Devices(Simulated):
    """``count`` groups of two cores that share a cache each."""

    count, seconds = 1, 0.0

    def domains(self) -> Sequence[tuple[tuple[int, ...], ...]]:
        return tuple(((2 * i,), (2 * i + 1,)) for i in range(self.count))

    def runner(self, target) -> SimulatedRunner:
        return SimulatedRunner(self.seconds)


class Two(Devices):
    count = 2


class Four(Devices):
    count = 4


class Eight(Devices):
    count = 8


class SleepingOne(Devices):
    seconds = SLEEP


class SleepingTwo(Two):
    seconds = SLEEP

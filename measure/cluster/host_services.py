"""The builders, runners and devices that a host of a cluster has.

Workers load them by the name of a class, so that tests can simulate other hosts.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module, metadata
from typing import Protocol, cast

from tilewright.measure.cluster.topology import Domain, domains
from tilewright.measure.interfaces import Builder, Runner
from tilewright.measure.registry import builder_for, runner_for
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.target import Target, detect_target

HOST = "tilewright.measure.cluster.host_services:Host"
"""The services of real hosts."""


class HostServices(Protocol):
    """Targets of a host, and what serves them."""

    def device(self, kind: str) -> Target:
        """Return the device of a kind that this process was given, a CPU as for one thread.

        :class:`InputError` if there is none.
        """
        ...

    def domains(self) -> Sequence[Domain]:
        """Return the cores of this host, by the last-level cache that they share."""
        ...

    def nvrtc(self) -> str:
        """Return the version of NVRTC here, empty if there is none."""
        ...

    def confine(self, cpus: Sequence[int]) -> None:
        """Keep this process, and all that it starts from now on, on ``cpus``."""
        ...

    def builder(self, target: Target, jobs: int) -> Builder:
        """Return a builder that runs ``jobs`` compilers at a time."""
        ...

    def runner(self, target: Target) -> Runner:
        """Return a runner on the device that this process was given."""
        ...


class Host:
    """The services of the host that this process runs on."""

    def device(self, kind: str) -> Target:
        """See :class:`HostServices`."""
        return detect_target(kind)

    def domains(self) -> Sequence[Domain]:
        """See :class:`HostServices`."""
        return domains()

    def nvrtc(self) -> str:
        """See :class:`HostServices`."""
        try:
            return metadata.version("nvidia-cuda-nvrtc")
        except metadata.PackageNotFoundError:
            return ""

    def confine(self, cpus: Sequence[int]) -> None:
        """See :class:`HostServices`."""
        if cpus:
            os.sched_setaffinity(0, cpus)

    def builder(self, target: Target, jobs: int) -> Builder:
        """See :class:`HostServices`."""
        return builder_for(target, jobs)

    def runner(self, target: Target) -> Runner:
        """See :class:`HostServices`."""
        return runner_for(target)


def load_host_services(name: str) -> HostServices:
    """Load the services of the class called ``module:class``."""
    module, _, kind = name.partition(":")
    return cast("HostServices", getattr(import_module(module), kind)())


def fits(offered: Target, target: Target) -> bool:
    """Tell whether measurements on the device ``offered`` count as measurements of ``target``.

    A CPU is offered for one thread. It serves targets of any number of threads up to its cores.
    """
    if isinstance(offered, CpuTarget) and isinstance(target, CpuTarget):
        return target.threads <= offered.cores and replace(target, threads=1) == offered
    return offered == target

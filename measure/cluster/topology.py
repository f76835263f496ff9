"""The hardware that CPUs of a host share: a core's hardware threads, a last-level cache's cores.

Kernels that are timed at once disturb each other least where they share no cache. Kernels on one
core slow each other down.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from tilewright.spaces.cpu.machine import CPU_ROOT

Core = tuple[int, ...]
"""Numbers of the CPUs that are one core's hardware threads, in order."""

Domain = tuple[Core, ...]
"""The cores that share a last-level cache."""

_SIBLINGS, _CACHE = "topology/thread_siblings_list", "cache/index3/shared_cpu_list"


def domains(
    cpus: Iterable[int] | None = None, read: Callable[[str], str] | None = None
) -> tuple[Domain, ...]:
    """The domains of ``cpus``, those this process may use if None.

    ``read`` gives the text of a file below ``/sys/devices/system/cpu``, empty if there is none:
    then each CPU is a core, and all share a cache.
    """
    read = read or _read
    allowed = sorted(os.sched_getaffinity(0) if cpus is None else cpus)
    found: dict[str, dict[str, list[int]]] = {}
    for cpu in allowed:
        core = read(f"cpu{cpu}/{_SIBLINGS}") or str(cpu)
        cache = read(f"cpu{cpu}/{_CACHE}")
        found.setdefault(cache, {}).setdefault(core, []).append(cpu)
    return tuple(tuple(map(tuple, cores.values())) for cores in found.values())


def slots(found: Iterable[Domain], threads: int) -> tuple[Domain, ...]:
    """Group cores so that each group can time one kernel of ``threads`` threads at a time.

    Each domain is a group; the whole host is one where no domain has enough cores. The list is
    empty if the host has too few.
    """
    known = tuple(found)
    large = tuple(domain for domain in known if len(domain) >= threads)
    whole = tuple(core for domain in known for core in domain)
    return large or ((whole,) if len(whole) >= threads else ())


def cpus_of(cores: Iterable[Core]) -> tuple[int, ...]:
    """Return all CPUs of ``cores``."""
    return tuple(sorted(cpu for core in cores for cpu in core))


def _read(name: str) -> str:
    try:
        return (CPU_ROOT / Path(name)).read_text().strip()
    except OSError:
        return ""

"""The assignment of a timed kernel's threads to CPUs.

On a busy machine the operating system may leave two threads of a kernel on one core for seconds,
which doubles its time. Each timed thread therefore gets a core of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def usable_cpus() -> int:
    """Count the CPUs that this process may use; it may be confined to some of the machine's."""
    return len(os.sched_getaffinity(0))


def one_cpu_per_core() -> tuple[int, ...]:
    """Numbers of the CPUs this process may use, the first of each core that has several."""
    cores: dict[str, int] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        try:
            core = Path(SIBLINGS.format(cpu)).read_text()
        except OSError:
            core = str(cpu)
        cores.setdefault(core, cpu)
    return tuple(cores.values())


@contextmanager
def pinned_to(cpu: int) -> Iterator[None]:
    """Keeps the calling thread on one CPU."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)

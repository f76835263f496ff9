"""Report the memory of the machine, or of the container that this process runs in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


def memory_limit(cgroups: Path = CGROUPS, own: Path = Path("/proc/self/cgroup")) -> int:
    """Return the bytes that this process and its children may use at most: the physical memory, or
    the least limit of its control groups, of version 1 or 2, and of those around them."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_limits(cgroups, own)])


def _limits(cgroups: Path, own: Path) -> Iterator[int]:
    """Yield the limits that are set. What ``own`` (see cgroups(7)) says may be a path of the
    host's, which a container does not see; its own group stands at the top then."""
    with suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                yield from _up(cgroups, path, "memory.max")
                yield from _up(cgroups / "unified", path, "memory.max")
            elif "memory" in controllers.split(","):
                yield from _up(cgroups / "memory", path, "memory.limit_in_bytes")


def _up(top: Path, path: str, name: str) -> Iterator[int]:
    group = top / path.strip("/")
    while True:
        with suppress(OSError, ValueError):  # "max" is no number
            yield int((group / name).read_text())
        if group == top:
            return
        group = group.parent

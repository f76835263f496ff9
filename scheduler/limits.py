"""Check that a workload can be tuned on this machine at all."""

from __future__ import annotations

from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload


def check_memory(workload: Workload, target: Target, limit: int | None = None) -> None:
    """Raise :class:`InputError` if measuring kernels of ``workload`` takes more memory than there
    is, or than ``limit`` bytes.

    On a GPU nothing large is kept on the host; the device says itself what it has no room for.
    """
    if target.kind != "cpu":
        return
    from tilewright.measure.cpu.memory import needed_bytes
    from tilewright.measure.memory import memory_limit

    there_is = memory_limit() if limit is None else limit
    if (needed := needed_bytes(workload)) > there_is:
        raise InputError(
            f"{workload} needs {_gib(needed)} GiB of memory to be tuned; "
            f"allowed: {_gib(there_is)} GiB, all that this machine or container has"
        )


def _gib(size: int) -> str:
    return f"{size / 2**30:.3g}"

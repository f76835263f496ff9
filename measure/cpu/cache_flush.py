"""Flush caches between two timed calls of a kernel, as its caller's other work does.

The caller does something else before the next call. If arrays are large, the caches then
hold little of them, and lines of other data that have to be written back first. If such calls
followed each other directly, some kernels would now and then find data that they wrote the last
time, and would win by that.
"""

from __future__ import annotations

from tilewright.spaces.workloads.workload import Workload

LARGE = 8 << 20  # bytes of all arrays: more than what a core has to itself
MOST = 128 << 20
FLUSH_RATIO = 2  # for each byte of the workload: with less, outputs stay in a large cache


def flush_bytes(workload: Workload) -> int:
    """Return the bytes that are written before a timed call to flush caches: a multiple of what the
    workload moves, up to a limit.

    Zero where its arrays are small, for a caller may have just written them, and where arithmetic
    decides how long a call takes.
    """
    size = workload.least_bytes
    return 0 if workload.intense or size < LARGE else min(FLUSH_RATIO * size, MOST)

"""Other work between two timed calls of a kernel.

A kernel's caller does something else before the next call. If arrays are large, the caches then
hold little of them, and lines of other data that have to be written back first. If such calls
followed each other directly, some kernels would now and then find data that they wrote the last
time, and would win by that.
"""

from __future__ import annotations

from tilewright.spaces.workloads.workload import Workload

LARGE = 8 << 20  # bytes of all arrays: more than what a core has to itself
MOST = 128 << 20
BYTES_ELSEWHERE = 2  # for each byte of the workload: with less, outputs stay in a large cache


def bytes_elsewhere(workload: Workload) -> int:
    """Bytes that are written elsewhere before a timed call: a multiple of what the workload moves,
    up to a limit.

    Zero where its arrays are small, for a caller may have just written them, and where arithmetic
    decides how long a call takes.
    """
    size = workload.least_bytes
    return 0 if workload.intense or size < LARGE else min(BYTES_ELSEWHERE * size, MOST)

"""How much other work there is between two timed calls of a kernel.

Who calls a kernel does something else before the next call. Of large arrays the caches hold little
then, and lines of others that have to be written back first. Were such calls to follow each other,
some kernels would now and then find what they wrote the last time, and rank first by that.
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

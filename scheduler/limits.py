"""Whether a workload can be tuned on this machine at all."""

from __future__ import annotations

import os

from spaces.errors import InputError
from spaces.workload import Workload

COPIES = 4  # of all arrays: the kernel's, and inputs and result in double precision to check them


def check_memory(workload: Workload) -> None:
    """Raise :class:`InputError` if verifying ``workload`` takes more memory than there is."""
    needed = COPIES * workload.least_bytes
    there_is = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there_is:
        raise InputError(
            f"{workload} needs {needed / 2**30:.3g} GiB of memory to be tuned; "
            f"this machine has {there_is / 2**30:.3g}"
        )

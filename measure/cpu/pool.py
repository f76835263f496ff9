"""The thread pool for kernels that run in this process."""

from __future__ import annotations

import ctypes
from functools import cache

from measure.cpu.binaries import pool_binary


@cache
def load_pool(threads: int) -> int:
    """Address of a ``tw_runtime`` over ``threads`` threads, the caller's included.

    One pool per number of threads and process. It starts its threads at the first launch, and
    again in a forked child; between launches they sleep.
    """
    library = ctypes.CDLL(str(pool_binary()))
    library.tw_runtime_create.restype = ctypes.c_void_p
    address = library.tw_runtime_create(ctypes.c_int(threads))
    if not address:
        raise MemoryError("no memory for the thread pool")
    return int(address)

"""The thread pool for kernels that run in this process."""

from __future__ import annotations

import ctypes
from functools import cache

from tilewright.measure.cpu.binaries import pool_library


@cache
def load_pool(threads: int, cpus: tuple[int, ...] = ()) -> int:
    """Return the address of a ``tw_runtime`` over ``threads`` threads, the caller's included.

    One pool per number of threads and process. It starts its threads at the first launch, and
    again in a forked child; between launches they sleep. With ``cpus``, one for each thread, they
    stay on them; the caller itself, who has the first, is not moved.
    """
    return pool_of(pool_library(), threads, cpus)


@cache
def pool_of(library: ctypes.CDLL, threads: int, cpus: tuple[int, ...] = ()) -> int:
    """Return the same of a library of thread pools that is loaded already."""
    library.tw_runtime_create.restype = ctypes.c_void_p
    places = (ctypes.c_int * len(cpus))(*cpus) if cpus else None
    address = library.tw_runtime_create(ctypes.c_int(threads), places)
    if not address:
        raise MemoryError("no memory for the thread pool")
    return int(address)

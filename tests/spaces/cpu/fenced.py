"""Kernels called in a process of their own, on arrays with a long way without memory around them:
an access outside of an array ends the process."""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import signal
import weakref
from typing import Any

import numpy as np

from tests.spaces.cpu.native import CANARY, Guarded

FENCE = 1 << 40
"""Bytes on each side: farther than 32 bits of rows of a few hundred bytes lead."""
NORESERVE, FIXED = 0x4000, 0x10
SECONDS = 20

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
)  # fmt: skip
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)


class Fenced(Guarded):
    """Memory that ends where a line of the cache and the last page end; children write to it."""

    def __init__(self, size: int, off: int, poison: int = 0xFF) -> None:
        lines = -(-max(size, 1) // 64) * 64
        pages = -(-lines // mmap.PAGESIZE) * mmap.PAGESIZE
        start = _mapped(None, pages + 2 * FENCE, 0, mmap.MAP_PRIVATE | NORESERVE)
        weakref.finalize(self, _libc.munmap, start, pages + 2 * FENCE)
        open_ = _mapped(
            start + FENCE, pages, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | FIXED
        )
        self.memory = np.ctypeslib.as_array((ctypes.c_uint8 * pages).from_address(open_))
        self.memory[:] = CANARY
        self.start = pages - lines
        self.size = size
        self.bytes[:] = poison


class Ending(Guarded):
    """Memory between two pages without access: it ends with the last byte before the second, or at
    the least place behind it where ``off`` divides its address."""

    ends = True

    def __init__(self, size: int, off: int, poison: int = 0xFF) -> None:
        whole = -(-size // max(off, 1)) * max(off, 1)
        pages = -(-max(whole, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        start = _mapped(None, pages + 2 * mmap.PAGESIZE, 0, mmap.MAP_PRIVATE | NORESERVE)
        weakref.finalize(self, _libc.munmap, start, pages + 2 * mmap.PAGESIZE)
        access = mmap.PROT_READ | mmap.PROT_WRITE
        open_ = _mapped(start + mmap.PAGESIZE, pages, access, mmap.MAP_SHARED | FIXED)
        self.memory = np.ctypeslib.as_array((ctypes.c_uint8 * pages).from_address(open_))
        self.memory[:] = CANARY
        self.start = pages - whole if self.ends else 0
        self.size = size
        self.bytes[:] = poison


class Beginning(Ending):
    """The same with its first byte behind the first page."""

    ends = False


def apart(entry: Any, *arguments: Any) -> str:
    """Call a kernel in a child; what ended it, if it did not return in time."""
    child = os.fork()
    if not child:
        faulthandler.disable()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        entry(*arguments)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        return ""
    return f"ended by {signal.Signals(os.WTERMSIG(status)).name}"


def _mapped(at: int | None, size: int, access: int, flags: int) -> int:
    found = _libc.mmap(at, size, access, flags | mmap.MAP_ANONYMOUS, -1, 0)
    assert found not in (None, ctypes.c_void_p(-1).value), os.strerror(ctypes.get_errno())
    return int(found)

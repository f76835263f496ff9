"""Kernels called on arrays with a long way without memory around them: an access outside of an
array is a signal, which ends the call."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import subprocess
import tempfile
import weakref
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.compiled import c_compiler, keep
from tests.spaces.cpu.native import CANARY, Guarded
from tilewright.spaces.cpu.compiler import find_compiler

FENCE = 1 << 40
"""Bytes on each side: farther than 32 bits of rows of a few hundred bytes lead."""
NORESERVE, FIXED = 0x4000, 0x10
SECONDS = 20
CALLER = """\
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static sigjmp_buf before;
static void leave(int number) { siglongjmp(before, number); }

typedef void function(void *, void *, void *, void *);

int call(int seconds, function *entry, void *a, void *b, void *c, void *d) {
  const int ends[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGABRT, SIGALRM};
  enum { COUNT = sizeof(ends) / sizeof(*ends) };
  struct sigaction usual[COUNT], during = {.sa_handler = leave};
  struct itimerval timer, limit = {.it_value.tv_sec = seconds};
  for (int i = 0; i < COUNT; i++) sigaction(ends[i], &during, &usual[i]);
  setitimer(ITIMER_REAL, &limit, &timer);
  const int number = sigsetjmp(before, 1);
  if (!number) entry(a, b, c, d);
  setitimer(ITIMER_REAL, &timer, 0);
  for (int i = 0; i < COUNT; i++) sigaction(ends[i], &usual[i], 0);
  return number;
}
"""
"""Calls a function of up to four arguments, and returns the signal that ended it, or zero."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
)  # fmt: skip
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)


class Fenced(Guarded):
    """Memory that ends where a line of the cache and the last page end."""

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
    """Call a kernel; what ended it, if it did not return in time."""
    ended = _caller()(SECONDS, entry, *arguments)
    return f"ended by {signal.Signals(ended).name}" if ended else ""


@cache
def _caller() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "caller.c", Path(folder) / "caller.so"
        source.write_text(CALLER)
        flags = ("-D_GNU_SOURCE", "-O1", "-shared", "-fPIC")
        command = [find_compiler().path, *flags, str(source), "-o", str(library)]
        made = keep(library, (c_compiler(), flags, CALLER), lambda: subprocess.check_call(command))
        return ctypes.CDLL(str(made)).call


def _mapped(at: int | None, size: int, access: int, flags: int) -> int:
    found = _libc.mmap(at, size, access, flags | mmap.MAP_ANONYMOUS, -1, 0)
    assert found not in (None, ctypes.c_void_p(-1).value), os.strerror(ctypes.get_errno())
    return int(found)

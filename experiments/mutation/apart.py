"""A fork with process numbers of its own (Linux's namespaces): it sees no process but those that
came of it, and all of them end with it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import traceback
from collections.abc import Callable
from pathlib import Path

NEW_MOUNTS, NEW_USER, NEW_NUMBERS = 0x20000, 0x10000000, 0x20000000  # linux/sched.h
END_WITH_PARENT = 1  # linux/prctl.h

_libc = ctypes.CDLL(None, use_errno=True)


def fork_apart(action: Callable[[], int]) -> int:
    """Do ``action`` in a fork, which exits with what it returns, and give the number of a process
    that ends as the fork does. To kill that process is to kill all that came of the fork."""
    return _fork(lambda: _outermost(action))


def _outermost(action: Callable[[], int]) -> int:
    os.setsid()
    if _libc.unshare(NEW_MOUNTS | NEW_NUMBERS):  # only a system's root may, by itself
        _become_root()
    _libc.prctl(END_WITH_PARENT, signal.SIGKILL)
    return _code_of(_fork(lambda: _first(action)))


def _become_root() -> None:
    """Become root of a namespace of users, which knows no other user: none can be given a file
    there."""
    user, group = os.getuid(), os.getgid()
    if _libc.unshare(NEW_MOUNTS | NEW_USER | NEW_NUMBERS):
        raise OSError(ctypes.get_errno(), "no namespaces for users")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"0 {user} 1"),
        ("gid_map", f"0 {group} 1"),
    ):
        Path("/proc/self", name).write_text(text)


def _first(action: Callable[[], int]) -> int:
    """Run ``action`` as the first process of a system, which reaps orphans."""
    _libc.prctl(END_WITH_PARENT, signal.SIGKILL)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
    return _code_of(_fork(action))


def _fork(action: Callable[[], int]) -> int:
    child = os.fork()
    if child == 0:
        try:
            os._exit(action())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return child


def _code_of(child: int) -> int:
    while True:
        ended, status = os.wait()
        if ended == child:
            return abs(os.waitstatus_to_exitcode(status))

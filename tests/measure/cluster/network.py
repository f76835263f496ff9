"""Two hosts of a network of their own, which nothing else reaches, and the cable between them."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

HERE, THERE = "10.77.0.1", "10.77.0.2"
POSSIBLE = os.geteuid() == 0 and shutil.which("ip") is not None
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_LIBC = ctypes.CDLL(None, use_errno=True)


class Hosts:
    """This thread, and what it starts, is on the host ``HERE``; see :meth:`there`."""

    def __init__(self) -> None:
        self._there = _new_host()
        self._here = _new_host()
        _ip("link add switch type bridge")
        _ip("link add port type veth peer name cable")
        _ip(f"link set cable netns /proc/{os.getpid()}/fd/{self._there}")
        _ip(f"addr add {HERE}/24 dev switch")
        _ip("link set switch up")
        _ip("link set port up")
        with self.there():
            _ip(f"addr add {THERE}/24 dev cable")
            _ip("link set cable up")
        self.mend()

    @contextmanager
    def there(self) -> Iterator[None]:
        """What is started meanwhile is on the host ``THERE``."""
        _enter(self._there)
        try:
            yield
        finally:
            _enter(self._here)

    def cut(self) -> None:
        """From now on all that is sent between the hosts vanishes without a word."""
        _ip("link set port nomaster")

    def mend(self) -> None:
        """From now on it arrives."""
        _ip("link set port master switch")

    def close(self) -> None:
        """Nothing is left of them once their processes end."""
        os.close(self._there)
        os.close(self._here)


@contextmanager
def hosts() -> Iterator[Hosts]:
    """Two hosts, of which this thread is on one."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        made = Hosts()
        yield made
        made.close()
    finally:
        _enter(before)
        os.close(before)


def _new_host() -> int:
    """A network namespace, which this thread enters, as a file descriptor."""
    if _LIBC.unshare(_NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "unshare")
    _ip("link set lo up")
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY)


def _enter(namespace: int) -> None:
    if _LIBC.setns(namespace, _NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "setns")


def _ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True)

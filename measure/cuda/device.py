"""The interface to a GPU that measuring uses; all above it runs without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from tilewright.spaces.kernel import Call, Source

Prepared = Callable[[], None]
"""Puts one call of a kernel on the device's queue."""


class DeviceError(RuntimeError):
    """The device reported an error; after one in a kernel, the process must not use it further."""


class LoadError(DeviceError):
    """The device does not take a kernel, but is none the worse for it."""


class MemoryShortError(LoadError):
    """The device has not so much memory left, but is none the worse for being asked."""


class Device(Protocol):
    """One GPU and its queue, on which work is done in order. Addresses are numbers.

    Every method may raise :class:`DeviceError` of any earlier work.
    """

    name: str
    architecture: str
    multiprocessors: int

    def allocate(self, size: int) -> int:
        """Return the address of ``size`` new bytes, aligned to 256; :class:`MemoryShortError` if
        they are not there."""
        ...

    def free(self, address: int) -> None:
        """Give back what :meth:`allocate` gave."""
        ...

    def fill(self, address: int, byte: int, size: int) -> None:
        """Set ``size`` bytes."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Copy ``data`` to the device."""
        ...

    def read(self, address: int, size: int) -> bytes:
        """Copy from the device, after all earlier work."""
        ...

    def bind(self, call: Call, code: Path | Source, addresses: Mapping[str, int]) -> Prepared:
        """Prepare a ``call`` of the functions in ``code`` (a cubin's file, or text to compile) on
        the buffers at ``addresses``, by the arrays' names and :data:`spaces.kernel.WORKSPACE`.
        Raises :class:`LoadError` if the driver refuses it, now or when it is called; nothing has
        run then.
        """
        ...

    def seconds(self, call: Prepared, calls: int = 1, cold: bool = True) -> float:
        """Device time of one of ``calls`` calls; ``cold`` before each fills L2 with other data,
        none of it modified."""
        ...

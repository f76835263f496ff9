"""Named arrays in a device's memory, each between guards that nobody may touch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

from tilewright.measure.cpu.problem import array_in
from tilewright.measure.cuda.device import Device, DeviceError, Prepared
from tilewright.measure.cuda.trusted import oracle
from tilewright.spaces.kernel import WORKSPACE, Kernel
from tilewright.spaces.workloads.array import Array

GUARD = 4096  # bytes before and after every buffer that no kernel may touch
GUARD_BYTE = 0xA5
POISON = 0xFF  # this byte repeated is NaN in every floating-point type
INTEGER_POISON = 0x7F


class Buffers:
    """Arrays by name, and kernels bound to them. A context manager: the memory lives within it."""

    def __init__(self, device: Device, blocks: int) -> None:
        self.device, self.blocks = device, blocks
        self.addresses: dict[str, int] = {}
        self._held: list[int] = []
        self._report_bytes = oracle.report(blocks).bytes
        self.addresses[oracle.REPORT] = self.guarded(self._report_bytes)

    def __enter__(self) -> Buffers:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(DeviceError):  # of a device that is lost, memory and all
            for address in self._held:
                self.device.free(address)

    def add(self, *arrays: Array) -> None:
        """Make room for arrays, by their names."""
        for array in arrays:
            self.addresses[array.name] = self.guarded(array.span_bytes)

    def guarded(self, size: int) -> int:
        """Return the address of so many new bytes between guards."""
        base = self.device.allocate(size + 2 * GUARD)
        self._held.append(base)
        self.device.fill(base, GUARD_BYTE, size + 2 * GUARD)
        return base + GUARD

    def guard_is_damaged(self, address: int) -> bool:
        """Tell whether a kernel wrote to the guard at ``address``."""
        return self.device.read(address, GUARD) != bytes([GUARD_BYTE]) * GUARD

    def poison(self, array: Array) -> None:
        """Fill an output with what no kernel writes."""
        byte = INTEGER_POISON if array.element.is_integer else POISON
        self.device.fill(self.addresses[array.name], byte, array.bytes)

    def bound(self, kernel: Kernel) -> Prepared:
        """Return a call of one of our own kernels on these arrays."""
        return self.device.bind(kernel.call, kernel.source, self.addresses)

    @contextmanager
    def working(self, kernel: Kernel) -> Iterator[Prepared]:
        """Give a call of one of our own kernels, whose workspace lives within it."""
        address = self.device.allocate(kernel.call.workspace_bytes)
        try:
            addresses = {**self.addresses, WORKSPACE: address}
            yield self.device.bind(kernel.call, kernel.source, addresses)
            self.report()  # waits
        finally:
            with suppress(DeviceError):
                self.device.free(address)

    def write(self, array: Array, values: np.ndarray) -> None:
        """Copy ``values``, of the array's shape, to the device; gaps of a slice are poisoned."""
        memory = np.full(array.span_bytes, POISON, np.uint8)
        array_in(memory, array)[...] = values
        self.device.write(self.addresses[array.name], memory.tobytes())

    def read(self, array: Array) -> np.ndarray:
        """Return a copy of one of the arrays."""
        data = self.device.read(self.addresses[array.name], array.span_bytes)
        return array_in(np.frombuffer(data, np.uint8), array)

    def element(self, array: Array, position: int) -> float:
        """Return the element at a position in memory of a dense array."""
        size = array.element.bytes
        data = self.device.read(self.addresses[array.name] + size * position, size)
        return float(np.frombuffer(data, array.element.numpy)[0])

    def report(self) -> tuple[int, int]:
        """Read the number of elements that the last judging kernel counted, and the position of the
        first.
        """
        address = self.addresses[oracle.REPORT]
        return oracle.count_and_first(self.device.read(address, self._report_bytes))

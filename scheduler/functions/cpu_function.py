"""A kernel of a CPU as a Python function."""

from __future__ import annotations

import ctypes
from typing import Any, Self

import numpy as np

from measure.cpu.binaries import kernel_library
from measure.cpu.pool import load_pool
from scheduler.functions.arrays import (
    Port,
    address_of,
    check_apart,
    in_order,
    is_tensor,
    outputs_of,
    port_of,
)
from scheduler.functions.kernel_function import KernelFunction
from spaces.cpu.target import CpuTarget
from spaces.errors import InputError
from spaces.schedule import Schedule
from spaces.space import Space
from spaces.target import Target, detect_target
from spaces.workloads.workload import Workload

ALIGNMENT = 64


class CpuFunction(KernelFunction):
    """A schedule's kernel, built and loaded, called on NumPy arrays and CPU torch tensors.

    Arrays come by position, in the order of the workload's inputs and then the epilogue's, or by
    name; the result goes to ``out`` or to a new array of the first input's kind. Several outputs
    are a tuple, and ``out`` is a sequence or a mapping by name. Any number of threads may call at
    once: each call has a workspace of its own, kept for the next one.
    """

    def __init__(self, space: Space, schedule: Schedule, provenance: str) -> None:
        super().__init__(space, schedule, provenance)
        call = self._kernel.call
        assert isinstance(self.target, CpuTarget)
        library = kernel_library(self._kernel.source, self.target)
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        self._entry = prototype((call.entry, library))
        self._runtime = load_pool(self.target.threads)
        self._inputs = tuple(map(port_of, self.workload.inputs))
        self._outputs = tuple(Port(output, output=True) for output in self.workload.outputs)
        self._ports = (*self._inputs, *self._outputs)
        self._buffers = ctypes.c_void_p * len(call.arguments)
        self._workspace_bytes = call.workspace_bytes
        self._idle: list[_Frame] = []

    @classmethod
    def remade(
        cls, workload: Workload, target: Target, schedule: Schedule, provenance: str
    ) -> Self:
        """A function like the one of these parts: :class:`InputError` on a machine that is not the
        ``target``."""
        assert isinstance(target, CpuTarget)
        here = detect_target("cpu", threads=target.threads)
        if here != target:
            raise InputError(
                f"this function is for {target.summary}, but here is {here.summary}; "
                "best() makes one that fits"
            )
        return super().remade(workload, target, schedule, provenance)

    def __call__(self, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """The result, in ``out`` if that is given; a tuple of several. :class:`InputError` for
        unfit arrays."""
        if named or len(arrays) != len(self._inputs):
            arrays = in_order(self._inputs, arrays, named)
        if len(self._outputs) > 1:
            out, addresses = self._several(arrays, out)
        else:
            (written,) = self._outputs
            if out is None:
                out = _new(written, arrays)
            target = written.address(out)
            beyond = target + written.bytes
            addresses = []
            for port, array in zip(self._inputs, arrays):  # noqa: B905
                address = port.address(array)
                if address < beyond and target < address + port.bytes:
                    raise InputError(f"out shares memory with {port.name}")
                addresses.append(address)
            addresses.append(target)
        try:
            frame = self._idle.pop()
        except IndexError:
            frame = _Frame(self._buffers(), self._workspace_bytes)
        frame.buffers[:] = addresses
        self._entry(frame.buffers, frame.workspace, self._runtime)
        self._idle.append(frame)
        return out

    def _several(self, arrays: tuple[Any, ...], out: Any) -> tuple[tuple[Any, ...], list[int]]:
        """Arrays for the outputs, and the addresses of all arrays."""
        if out is None:
            outs = tuple(_new(port, arrays) for port in self._outputs)
        else:
            outs = outputs_of(self._outputs, out)
        given = zip(self._ports, (*arrays, *outs), strict=True)
        addresses = [port.address(array) for port, array in given]
        check_apart(self._ports, addresses, len(outs))
        return outs, addresses


def _new(port: Port, arrays: tuple[Any, ...]) -> Any:
    """An output of the first input's kind."""
    return port.empty_tensor() if arrays and is_tensor(arrays[0]) else port.empty_array()


class _Frame:
    """What one call at a time may use: the array of addresses and zeroed, aligned scratch."""

    def __init__(self, buffers: Any, workspace_bytes: int) -> None:
        self.buffers = buffers
        self._memory = np.zeros(workspace_bytes + ALIGNMENT, np.uint8)
        self.workspace = -(-address_of(self._memory) // ALIGNMENT) * ALIGNMENT

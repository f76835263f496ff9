"""Calls of a loaded CPU kernel on arrays of given shapes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.measure.cpu.binaries import kernel_library
from tilewright.measure.cpu.pool import load_pool
from tilewright.scheduler.functions.arrays import (
    IndexPort,
    Port,
    address_of,
    check_apart,
    holds_indices,
    in_order,
    is_tensor,
    outputs_of,
)
from tilewright.scheduler.functions.caller import CallParts, admit_tensors, caller, packed_demands
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.workloads.calling import Calling

ALIGNMENT = 64
_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def loaded(kernel: Kernel, target: CpuTarget) -> tuple[ctypes.CDLL, int]:
    """Return the library of a kernel, and the address of the threads that it runs on."""
    return kernel_library(kernel.source, target), load_pool(target.threads)


class KernelCall:
    """A kernel of a loaded library, called on the arrays that ``calling`` describes.

    ``runtime`` is the address of the threads that it runs on. :attr:`fastest` is a function of
    arrays for the inputs and of ``out``; it hands to :meth:`closely` whatever C code does not take.
    Indices are checked if ``ends`` are given: the last values of pointers, by their arrays' names.
    Those of arrays that are ``held`` are not. ``idle`` keeps workspaces that no call uses.
    ``extent`` is that of the kernel's open axis.
    """

    def __init__(
        self,
        kernel: Kernel,
        library: ctypes.CDLL,
        runtime: int,
        calling: Calling,
        ends: Mapping[str, int] | None = None,
        idle: list[np.ndarray] | None = None,
        extent: int = 0,
        held: Collection[str] = (),
    ) -> None:
        call = kernel.call
        self._workspace_bytes = call.workspace_bytes
        self._library, self._runtime = library, runtime
        self._entry = _PROTOTYPE((call.entry, library))
        self.given = tuple(
            Port(operand)
            if ends is None or operand.name in held or not holds_indices(operand)
            else IndexPort(operand, ends.get(operand.name))
            for operand in calling.inputs
        )
        self._order = calling.order
        self._inputs = tuple(self.given[place] for place in calling.order)
        self.outputs = tuple(Port(output, output=True) for output in calling.outputs)
        self._ports = (*self._inputs, *self.outputs)
        self._buffers = ctypes.c_void_p * (len(self._ports) + 1)
        self._idle = [] if idle is None else idle
        self._extent = ctypes.c_int64(extent)
        self.fastest: Callable[..., Any] = self.closely
        if self._inputs == self.given:
            self.fastest = caller(
                self._address,
                self._runtime,
                self._inputs,
                self.outputs,
                self._new_workspace if self._workspace_bytes else None,
                self._idle,
                self.closely,
                extent,
            )

    @property
    def _address(self) -> int:
        return ctypes.cast(self._entry, ctypes.c_void_p).value or 0

    @property
    def parts(self) -> CallParts | None:
        """All that C code needs to call the kernel; None if it cannot check the arrays."""
        demands = packed_demands((*self.given, *self.outputs))
        if demands is None:
            return None
        return CallParts(
            self._address,
            self._runtime,
            self._workspace_bytes,
            tuple(self._order),
            demands,
            tuple(port.operand.dtype for port in (*self.given, *self.outputs)),
        )

    def closely(self, /, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """Call the kernel on arrays of any kind: each is checked by its port."""
        if named or len(arrays) != len(self.given):
            arrays = in_order(self.given, arrays, named)
        several = len(self.outputs) > 1
        if out is None:
            out = new_outputs(self.outputs, arrays)
        elif several:
            out = outputs_of(self.outputs, out)
        given = (*(arrays[place] for place in self._order), *(out if several else (out,)))
        addresses = [port.address(array) for port, array in zip(self._ports, given, strict=True)]
        check_apart(self._ports, addresses, len(self.outputs))
        if any(map(is_tensor, given)):
            admit_tensors()
        self._run(addresses)
        return out

    def _run(self, addresses: Sequence[int]) -> None:
        try:
            workspace = self._idle.pop()
        except IndexError:
            workspace = self._new_workspace()
        aligned = -(-address_of(workspace) // ALIGNMENT) * ALIGNMENT
        buffers = self._buffers(*addresses, ctypes.addressof(self._extent))
        self._entry(buffers, aligned, self._runtime)
        self._idle.append(workspace)

    def _new_workspace(self) -> np.ndarray:
        """Zeroed scratch memory of one call at a time, from its first aligned byte on."""
        return np.zeros(self._workspace_bytes + ALIGNMENT, np.uint8)


def new_outputs(ports: Sequence[Port], arrays: Sequence[Any]) -> Any:
    """Return outputs of the first input's kind: one, or a tuple of several."""
    tensors = bool(arrays) and is_tensor(arrays[0])
    made = tuple(port.empty_tensor() if tensors else port.empty_array() for port in ports)
    return made if len(made) > 1 else made[0]

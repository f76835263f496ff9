"""Call a CPU kernel as a Python function."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Self

import numpy as np

from tilewright.measure.cpu.binaries import kernel_library
from tilewright.measure.cpu.pool import load_pool
from tilewright.scheduler.functions.arrays import (
    IndexPort,
    Port,
    address_of,
    check_apart,
    ends_of,
    holds_indices,
    in_order,
    is_tensor,
    outputs_of,
)
from tilewright.scheduler.functions.caller import CallParts, admit_tensors, caller, packed_demands
from tilewright.scheduler.functions.kernel_function import KernelFunction
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.workloads.calling import calling_of
from tilewright.spaces.workloads.workload import Workload

ALIGNMENT = 64


class CpuFunction(KernelFunction):
    """A CPU kernel, built and loaded, that is called on NumPy arrays and CPU torch tensors.

    Example::

        c = function(a, b)  # by position: the workload's inputs, then the epilogue's
        function(a=a, b=b, out=c)  # by name, into an array of yours

    The result goes to ``out`` or to a new array of the first input's kind, and is returned. Several
    outputs are a tuple, and ``out`` is a sequence or a mapping by name. Raises :class:`InputError`
    for arrays that do not fit. Any number of threads may call at once: each call has a workspace of
    its own, kept for the next one.
    """

    __slots__ = ("__call__",)
    __call__: Callable[..., Any]
    checks = True

    def _make_ready(self) -> None:
        call = self._kernel.call
        library, self._runtime = self._loaded()
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        self._entry = prototype((call.entry, library))
        calling = calling_of(self.workload)
        ends = ends_of(self.workload)
        self._given = tuple(
            IndexPort(operand, ends.get(operand.name))
            if self.check_indices and holds_indices(operand)
            else Port(operand)
            for operand in calling.inputs
        )
        self._order = calling.order
        self._inputs = tuple(self._given[place] for place in calling.order)
        self._outputs = tuple(Port(output, output=True) for output in calling.outputs)
        self._ports = (*self._inputs, *self._outputs)
        self._buffers = ctypes.c_void_p * len(call.arguments)
        self._idle: list[np.ndarray] = []
        if self._inputs != self._given:
            self.__call__ = self._closely
            return
        self.__call__ = caller(
            ctypes.cast(self._entry, ctypes.c_void_p).value or 0,
            self._runtime,
            self._inputs,
            self._outputs,
            self._new_workspace if call.workspace_bytes else None,
            self._closely,
        )

    def _loaded(self) -> tuple[ctypes.CDLL, int]:
        """Return the library of the kernel, and the address of the threads that it runs on."""
        assert isinstance(self.target, CpuTarget)
        library = kernel_library(self._kernel.source, self.target)
        return library, load_pool(self.target.threads)

    @classmethod
    def remade(cls, workload: Workload, target: Target, *parts: Any) -> Self:
        """Return a function like the one of these parts: :class:`InputError` on a machine that is
        not the ``target``, of which a process may be bound to fewer cores."""
        assert isinstance(target, CpuTarget)
        here = detect_target("cpu", threads=target.threads)
        if differing := _differing(here, target) - {"cores"}:
            raise InputError(
                f"this function is for {target.summary}, but here is {here.summary}, of another "
                f"{' and '.join(sorted(differing))}; best() makes one that fits"
            )
        return super().remade(workload, target, *parts)

    @property
    def parts(self) -> CallParts | None:
        """All that C code needs to call the kernel; None if it cannot check the arrays."""
        demands = packed_demands((*self._given, *self._outputs))
        if demands is None:
            return None
        return CallParts(
            ctypes.cast(self._entry, ctypes.c_void_p).value or 0,
            self._runtime,
            self._kernel.call.workspace_bytes,
            tuple(self._order),
            demands,
            tuple(port.operand.dtype for port in (*self._given, *self._outputs)),
        )

    def _closely(self, /, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """Return a call whose arrays may be of any kind: each is checked by its port."""
        if named or len(arrays) != len(self._given):
            arrays = in_order(self._given, arrays, named)
        several = len(self._outputs) > 1
        if out is None:
            made = tuple(_new(port, arrays) for port in self._outputs)
            out = made if several else made[0]
        elif several:
            out = outputs_of(self._outputs, out)
        given = (*(arrays[place] for place in self._order), *(out if several else (out,)))
        addresses = [port.address(array) for port, array in zip(self._ports, given, strict=True)]
        check_apart(self._ports, addresses, len(self._outputs))
        if any(map(is_tensor, given)):
            admit_tensors()
        self._run(addresses)
        return out

    def _run(self, addresses: list[int]) -> None:
        try:
            workspace = self._idle.pop()
        except IndexError:
            workspace = self._new_workspace()
        aligned = -(-address_of(workspace) // ALIGNMENT) * ALIGNMENT
        self._entry(self._buffers(*addresses), aligned, self._runtime)
        self._idle.append(workspace)

    def _new_workspace(self) -> np.ndarray:
        """Zeroed scratch memory of one call at a time, from its first aligned byte on."""
        return np.zeros(self._kernel.call.workspace_bytes + ALIGNMENT, np.uint8)


def _differing(one: Target, other: Target) -> set[str]:
    """Return the names of what two targets of a kind differ in."""
    names = [field.name for field in fields(one)]
    return {name for name in names if getattr(one, name) != getattr(other, name)}


def _new(port: Port, arrays: tuple[Any, ...]) -> Any:
    """Return an output of the first input's kind."""
    return port.empty_tensor() if arrays and is_tensor(arrays[0]) else port.empty_array()

"""Calls of a kernel on arrays of given shapes on a GPU."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from tilewright.measure.cuda.launching import bindings, checked, entry_point, prepare
from tilewright.scheduler.functions.arrays import (
    check_apart,
    check_indices,
    in_order,
    is_tensor,
    outputs_of,
)
from tilewright.scheduler.functions.cuda_arrays import (
    ALIGNMENT,
    DevicePort,
    TensorGuards,
    check_one_device,
    comparable,
    current_stream,
    device_of,
)
from tilewright.scheduler.functions.device_kernel import DeviceKernel
from tilewright.scheduler.functions.launcher import (
    PreparedCall,
    PreparedCalls,
    compiled_start,
    start,
)
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import WORKSPACE, Call
from tilewright.spaces.workloads.calling import Calling

MOST_GUARDS = 8  # prepared kinds of arrays kept: several GPUs, in and out of autocast


class CudaCall:
    """A ``call`` of a kernel on the arrays that ``calling`` describes, at an ``extent`` of the open
    axis, if it has one.

    For each set of addresses it is prepared once, tensor maps included, and kept. Every array is
    checked at every call: by its port, or by torch, for likeness to one that passed. The inputs at
    the places ``indexed``, in the kernel's order, are indices to be looked at first; ``ends`` are
    the last values of pointers, by their arrays' names.
    """

    def __init__(
        self,
        kernel: DeviceKernel,
        call: Call,
        calling: Calling,
        indexed: Collection[int] = (),
        ends: Mapping[str, int] = MappingProxyType({}),
        extent: int | None = None,
    ) -> None:
        self._kernel, self._call, self._extent = kernel, call, extent
        self._given = tuple(DevicePort(operand) for operand in calling.inputs)
        self._inputs = tuple(self._given[place] for place in calling.order)
        self._order = None if self._inputs == self._given else calling.order
        self._outputs = tuple(DevicePort(o, output=True) for o in calling.outputs)
        self._ports = (*self._inputs, *self._outputs)
        self._count = len(self._given)
        self._several = len(self._outputs) > 1
        self._checked, self._ends = indexed, ends
        self._has_workspace = call.workspace_bytes > 0
        self._known: tuple[TensorGuards, ...] = ()
        self._prepared = PreparedCalls()
        self._captured: list[PreparedCall] = []
        self._start = compiled_start() or start

    def __call__(
        self, /, *arrays: Any, out: Any = None, stream: int | None = None, **named: Any
    ) -> Any:
        """Return ``out``, to be written in the order of the stream. :class:`InputError` for unfit
        arrays, :class:`measure.cuda.device.DeviceError` if the launch fails."""
        if named or len(arrays) != self._count:
            arrays = in_order(self._given, arrays, named)
        if self._order is not None:
            arrays = tuple([arrays[place] for place in self._order])
        for place in self._checked:
            self._check_indices(self._inputs[place], arrays[place], stream)
        if out is None:
            out = self._new_outputs(arrays)
        elif self._several:
            out = outputs_of(self._outputs, out)
        arrays = (*arrays, *out) if self._several else (*arrays, out)
        if self._start(self._known, self._prepared.tree, arrays, stream) != 0:
            # nothing was started: a closer look does, or says why not
            status = self._find(arrays, stream).start()
            if status:
                checked((bindings().CUresult(status),))
        return out

    def _check_indices(self, port: DevicePort, array: Any, stream: int | None) -> None:
        """Copy indices to the host, which waits for the device, and look at them."""
        if not is_tensor(array):
            raise InputError(f"{port.name} holds indices to be checked; allowed: a torch tensor")
        if array.is_cuda:
            ordinal = device_of(array) or 0
            self._kernel.enter(ordinal)
            if self._kernel.capturing(current_stream(ordinal) if stream is None else stream):
                raise InputError(
                    f"{port.name} holds indices, which no capture of a graph can check; "
                    "best(check_indices=False) makes a function that does not"
                )
        check_indices(port.operand, port.on_host(array), self._ends.get(port.name))

    def _new_outputs(self, arrays: tuple[Any, ...]) -> Any:
        if not arrays or not is_tensor(arrays[0]):
            raise InputError("out is needed where the inputs are no torch tensors")
        made = tuple([port.empty_like(arrays[0]) for port in self._outputs])
        return made if self._several else made[0]

    def _find(self, arrays: tuple[Any, ...], stream: int | None) -> PreparedCall:
        """Return the call for arrays of any kind, outputs last; each is checked. While its stream
        is captured it is one with a workspace of its own: what is in a graph may run at any
        time."""
        first = arrays[0]
        of_torch = is_tensor(first)
        if stream is None:
            stream = current_stream(first.get_device()) if of_torch and first.is_cuda else 0
        key = [stream]
        for port, array in zip(self._ports, arrays, strict=True):
            key.append(port.device_address(array, stream))
        call = self._prepared.find(key)
        if call is None:
            check_one_device(self._ports, arrays)
            self._check(key[1:])
        ordinal = device_of(first) or 0
        self._kernel.enter(ordinal)
        capturing = self._has_workspace and self._kernel.capturing(stream)
        if call is None or capturing:
            call = self._prepare(key, ordinal, capturing)
        if of_torch:
            self._remember(arrays)
        return call

    def _remember(self, arrays: tuple[Any, ...]) -> None:
        """Keep what arrays that passed have in common with others to come."""
        if comparable(arrays) and not any(known.alike(*arrays) for known in self._known):
            self._known = (TensorGuards(arrays), *self._known)[:MOST_GUARDS]

    def _prepare(self, key: list[int], ordinal: int, capturing: bool) -> PreparedCall:
        """A new call, kept for other calls unless it is for one that is being captured."""
        stream, *addresses = key
        buffers = dict(zip((a.name for a in self._call.arrays), addresses, strict=True))
        if self._has_workspace:
            buffers[WORKSPACE] = self._kernel.workspace(ordinal, stream, capturing)
        functions = self._kernel.functions(ordinal)
        launches = prepare(self._call, functions, buffers, stream, self._extent)
        pointers = [launch.pointers for launch in launches]
        watch = entry_point("cuStreamIsCapturing") if self._has_workspace else None
        call = PreparedCall(entry_point("cuLaunchKernelEx"), pointers, watch, key, launches)
        if capturing:
            self._captured.append(call)
        else:
            self._prepared.keep(call)
        return call

    def _check(self, addresses: list[int]) -> None:
        for port, address in zip(self._ports, addresses, strict=True):
            if address % ALIGNMENT:
                raise InputError(f"{port.name} is not aligned to {ALIGNMENT} bytes")
        check_apart(self._ports, addresses, len(self._outputs))

"""Call a GPU kernel as a Python function."""

from __future__ import annotations

from typing import Any

from tilewright.measure.cuda.device import DeviceError
from tilewright.measure.cuda.launching import (
    bindings,
    checked,
    entry_point,
    load_functions,
    prepare,
)
from tilewright.measure.records.measurement import Candidate, ErrorKind, Job, new_job_id
from tilewright.measure.registry import builder_for
from tilewright.scheduler.functions.arrays import (
    check_apart,
    check_indices,
    ends_of,
    holds_indices,
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
from tilewright.scheduler.functions.kernel_function import KernelFunction, RefusedKernelError
from tilewright.scheduler.functions.launcher import (
    PreparedCall,
    PreparedCalls,
    compiled_start,
    start,
)
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import WORKSPACE
from tilewright.spaces.workloads.calling import calling_of

MOST_GUARDS = 8  # prepared kinds of arrays kept: several GPUs, in and out of autocast


class CudaFunction(KernelFunction):
    """A GPU kernel, compiled, that is called on arrays of a GPU.

    Example::

        c = function(a, b)  # by position: the workload's inputs, then the epilogue's
        function(a=a, b=b, out=c, stream=stream)  # by name, on a stream of yours

    Arrays are CUDA torch tensors, or anything with DLPack or ``__cuda_array_interface__``. The
    result goes to ``out``, or to a new tensor if the first input is one. Several outputs are a
    tuple, and ``out`` is a sequence or a mapping by name. Work is queued on ``stream`` (its
    handle), by default on torch's current stream, and may be captured in a CUDA graph. Nothing
    waits for it, unless indices are checked. Any number of threads may call at once.

    For each set of addresses the call is prepared once, tensor maps included, and kept. Every array
    is checked at every call: by its port, or by torch, for likeness to one that passed.
    """

    checks = False

    def _make_ready(self) -> None:
        job = Job(new_job_id(), self.workload, self.target)
        self._cubin = _cubin(Candidate(job, self.schedule, self._kernel))
        calling = calling_of(self.workload)
        self._given = tuple(DevicePort(operand) for operand in calling.inputs)
        self._inputs = tuple(self._given[place] for place in calling.order)
        self._order = None if self._inputs == self._given else calling.order
        self._outputs = tuple(DevicePort(o, output=True) for o in calling.outputs)
        self._ports = (*self._inputs, *self._outputs)
        self._count = len(self._given)
        self._several = len(self._outputs) > 1
        indices = [n for n, o in enumerate(self.workload.inputs) if holds_indices(o)]
        self._ends = ends_of(self.workload)
        self._checked = indices if self.check_indices else []
        self._has_workspace = self._kernel.call.workspace_bytes > 0
        self._driver = bindings()
        self._functions: dict[int, list[Any]] = {}
        self._known: tuple[TensorGuards, ...] = ()
        self._prepared = PreparedCalls()
        self._workspaces: dict[tuple[int, int], int] = {}
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
                checked((self._driver.CUresult(status),))
        return out

    def _check_indices(self, port: DevicePort, array: Any, stream: int | None) -> None:
        """Copy indices to the host, which waits for the device, and look at them."""
        if not is_tensor(array):
            raise InputError(f"{port.name} holds indices to be checked; allowed: a torch tensor")
        if array.is_cuda:
            ordinal = device_of(array) or 0
            self._enter(ordinal)
            if self._capturing(current_stream(ordinal) if stream is None else stream):
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
        self._enter(ordinal)
        capturing = self._has_workspace and self._capturing(stream)
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
        names = [array.name for array in self.workload.operands]
        buffers = dict(zip(names, addresses, strict=True))
        if self._has_workspace:
            buffers[WORKSPACE] = self._workspace(ordinal, stream, capturing)
        launches = prepare(self._kernel.call, self._functions[ordinal], buffers, stream)
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

    # -- the driver ------------------------------------------------------------------------

    def _enter(self, ordinal: int) -> None:
        """Give this thread the GPU's primary context, which torch uses too, if it has none, and
        the GPU the kernel."""
        driver, is_new = self._driver, ordinal not in self._functions
        if is_new:
            self._initialise()
        if not int(checked(driver.cuCtxGetCurrent())):
            device = checked(driver.cuDeviceGet(ordinal))
            checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(device))))
        if is_new:
            self._functions[ordinal] = load_functions(self._cubin, self._kernel.call, ordinal)

    def _initialise(self) -> None:
        try:
            checked(self._driver.cuInit(0))
        except RuntimeError as error:  # the bindings' own, where there is no driver
            reason = str(error).splitlines()[0].rstrip(".")
            raise InputError(f"a CUDA kernel runs on a GPU with its driver: {reason}") from None

    def _capturing(self, stream: int) -> bool:
        status = checked(self._driver.cuStreamIsCapturing(self._driver.CUstream(stream)))
        return bool(status.value)

    def _workspace(self, ordinal: int, stream: int, capturing: bool) -> int:
        """Scratch memory of the stream, zeroed as the kernel asks; a new one in a capture."""
        key = (ordinal, stream)
        if capturing or key not in self._workspaces:
            made = self._zeroed()
            if capturing:
                return made
            self._workspaces[key] = made
        return self._workspaces[key]

    def _zeroed(self) -> int:
        """New zeroed memory, also while some stream of this thread is being captured."""
        driver = self._driver
        relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        before = checked(driver.cuThreadExchangeStreamCaptureMode(relaxed))
        try:
            size = self._kernel.call.workspace_bytes
            address = int(checked(driver.cuMemAlloc(size)))
            side = checked(
                driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING.value)
            )
            checked(driver.cuMemsetD8Async(address, 0, size, side))
            checked(driver.cuStreamSynchronize(side))
            checked(driver.cuStreamDestroy(side))
            return address
        finally:
            checked(driver.cuThreadExchangeStreamCaptureMode(before))


def _cubin(candidate: Candidate) -> bytes:
    builder = builder_for(candidate.job.target, jobs=1)
    try:
        (built,) = builder.build([candidate])
        if built.binary is None:
            lost = built.error_kind is ErrorKind.COMPILER_LOST
            kind = DeviceError if lost else RefusedKernelError
            raise kind(f"{candidate.schedule} does not build: {built.error_text}")
        return built.binary if isinstance(built.binary, bytes) else built.binary.read_bytes()
    finally:
        builder.close()

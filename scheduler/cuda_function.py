"""A kernel of a GPU as a Python function."""

from __future__ import annotations

from typing import Any

from measure.cuda.device import DeviceError
from measure.cuda.launching import Arguments, bindings, checked, configuration, load_kernel
from measure.measurement import Candidate
from measure.registry import builder_for
from scheduler.arrays import in_order, is_tensor
from scheduler.cuda_arrays import ALIGNMENT, DevicePort, current_stream, device_of
from spaces.errors import InputError
from spaces.schedule import Schedule
from spaces.space import Space

MOST_LAUNCHES = 1024  # that are kept prepared


class CudaFunction:
    """A schedule's kernel, compiled, called on arrays of a GPU.

    Arrays come by position, in the order of the workload's inputs and then the epilogue's, or by
    name: CUDA torch tensors, or anything with DLPack or ``__cuda_array_interface__``. The result
    goes to ``out``, or to a new tensor where the first input is one. Work is queued on
    ``stream`` (its handle), by default on torch's current stream, and may be captured in a CUDA
    graph; nothing waits for it. Any number of threads may call at once.

    For each set of addresses the launch is prepared once, tensor maps included, and kept.
    ``source`` is the kernel's text, ``provenance`` where the schedule is from.
    """

    def __init__(self, space: Space, schedule: Schedule, provenance: str) -> None:
        self.workload = space.workload
        self.target = space.target
        self.schedule = schedule
        self.provenance = provenance
        self._kernel = space.lower(schedule)
        self.source = self._kernel.text
        self._cubin = _cubin(Candidate(self.workload, self.target, schedule, self._kernel))
        *inputs, output = self._kernel.arguments
        self._inputs = tuple(DevicePort(operand) for operand in inputs)
        self._output = DevicePort(output, output=True)
        self._driver = bindings()
        self._start = self._driver.cuLaunchKernelEx
        self._functions: dict[int, Any] = {}
        self._launches: dict[tuple[int, ...], _Launch] = {}
        self._workspaces: dict[tuple[int, int], int] = {}
        self._captured: list[_Launch] = []

    def __repr__(self) -> str:
        return f"<{self.workload} on {self.target.summary}, {self.provenance}: {self.schedule}>"

    def __call__(
        self, *arrays: Any, out: Any = None, stream: int | None = None, **named: Any
    ) -> Any:
        """``out``, to be written in the order of the stream. :class:`InputError` for unfit arrays,
        :class:`measure.cuda.device.DeviceError` if the launch fails."""
        if named or len(arrays) != len(self._inputs):
            arrays = in_order(self._inputs, arrays, named)
        first = arrays[0]
        if stream is None:
            on_gpu = is_tensor(first) and first.is_cuda
            stream = current_stream(first.get_device()) if on_gpu else 0
        if out is None:
            out = self._new_output(first)
        key = [stream]
        for port, array in zip(self._inputs, arrays):  # noqa: B905
            key.append(port.device_address(array, stream))
        key.append(self._output.device_address(out, stream))
        launch = self._launches.get(tuple(key))
        if launch is None or launch.has_workspace:
            launch = self._prepare(tuple(key), device_of(first), launch)
        (status,) = self._start(launch.configuration, launch.function, launch.arguments, 0)
        if status:
            self._retry(launch, status)
        return out

    def _new_output(self, like: Any) -> Any:
        if not is_tensor(like):
            raise InputError("out is needed where the inputs are no torch tensors")
        return self._output.empty_like(like)

    def _prepare(self, key: tuple[int, ...], ordinal: int, known: _Launch | None) -> _Launch:
        """The launch for a stream and addresses. What is captured in a graph, which may run at
        any time, gets a workspace of its own."""
        stream, *addresses = key
        if known is None:
            self._check(addresses)
        if ordinal not in self._functions:
            self._functions[ordinal] = self._load(ordinal)
        capturing = self._kernel.workspace_bytes > 0 and self._is_capturing(stream)
        if known is not None and not capturing:
            return known
        names = [port.name for port in (*self._inputs, self._output)]
        buffers = dict(zip(names, addresses, strict=True))
        if self._kernel.workspace_bytes:
            buffers["workspace"] = self._workspace(ordinal, stream, capturing)
        launch = _Launch(
            configuration(self._kernel, stream),
            self._functions[ordinal],
            Arguments(self._kernel, buffers),
            self._kernel.workspace_bytes > 0,
            ordinal,
        )
        if capturing:
            self._captured.append(launch)
        else:
            if len(self._launches) >= MOST_LAUNCHES:
                self._launches.clear()
            self._launches[key] = launch
        return launch

    def _check(self, addresses: list[int]) -> None:
        *sources, target = addresses
        for port, address in zip((*self._inputs, self._output), addresses, strict=True):
            if address % ALIGNMENT:
                raise InputError(f"{port.name} is not aligned to {ALIGNMENT} bytes")
        for port, address in zip(self._inputs, sources, strict=True):
            if address < target + self._output.bytes and target < address + port.bytes:
                raise InputError(f"out shares memory with {port.name}")

    # -- the driver ------------------------------------------------------------------------

    def _load(self, ordinal: int) -> Any:
        try:
            checked(self._driver.cuInit(0))
        except RuntimeError as error:  # the bindings' own, where there is no driver
            reason = str(error).splitlines()[0].rstrip(".")
            raise InputError(f"a CUDA kernel runs on a GPU with its driver: {reason}") from None
        self._enter(ordinal)
        return load_kernel(self._cubin, self._kernel, ordinal)

    def _enter(self, ordinal: int) -> None:
        """Give this thread the GPU's primary context, which torch uses too, if it has none."""
        driver = self._driver
        if not int(checked(driver.cuCtxGetCurrent())):
            device = checked(driver.cuDeviceGet(ordinal))
            checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(device))))

    def _retry(self, launch: _Launch, status: Any) -> None:
        """A thread's first launch may find it without a context."""
        if status is not self._driver.CUresult.CUDA_ERROR_INVALID_CONTEXT:
            checked((status,))
        self._enter(launch.ordinal)
        checked(self._start(launch.configuration, launch.function, launch.arguments, 0))

    def _is_capturing(self, stream: int) -> bool:
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
            size = self._kernel.workspace_bytes
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


class _Launch:
    """All that one launch takes, kept alive."""

    __slots__ = ("_held", "arguments", "configuration", "function", "has_workspace", "ordinal")

    def __init__(
        self,
        configuration: Any,
        function: Any,
        arguments: Arguments,
        has_workspace: bool,
        ordinal: int,
    ) -> None:
        self.configuration = configuration
        self.function = function
        self.arguments = arguments.address
        self.has_workspace = has_workspace
        self.ordinal = ordinal
        self._held = arguments


def _cubin(candidate: Candidate) -> bytes:
    builder = builder_for(candidate.target, jobs=1)
    try:
        (built,) = builder.build([candidate])
        if built.path is None:
            raise DeviceError(f"{candidate.schedule} does not build: {built.error_text}")
        return built.path.read_bytes()
    finally:
        builder.close()

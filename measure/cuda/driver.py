"""A GPU through NVIDIA's driver: the thin layer that only a machine with one can run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.measure.cuda.device import DeviceError, LoadError, MemoryShortError, Prepared
from tilewright.measure.cuda.launching import bindings, checked, load_functions, prepare
from tilewright.measure.cuda.trusted import oracle
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.cuda.target import architecture_of
from tilewright.spaces.kernel import Call, Source

COMPILE_SECONDS = 60.0
MOST_KEPT = 64  # cubins of our own kernels
FLUSH_BLOCKS = 4  # blocks per multiprocessor of the kernel that flushes L2
_NOT_TAKEN = {
    f"CUDA_ERROR_{words}"
    for words in ("INVALID_VALUE", "LAUNCH_OUT_OF_RESOURCES", "INVALID_CLUSTER_SIZE")
}
"""Says by which the driver refuses to start a kernel, for its shared memory, say."""


class CudaDevice:
    """:class:`measure.cuda.device.Device` of GPU ``ordinal``, in its primary context.

    Uses a stream of its own. Never touches clocks or settings.
    """

    def __init__(self, ordinal: int = 0) -> None:
        self._driver = driver = bindings()
        checked(driver.cuInit(0))
        self._ordinal = ordinal
        self._device = checked(driver.cuDeviceGet(ordinal))
        checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(self._device))))
        name = checked(driver.cuDeviceGetName(256, self._device))
        self.name = name.split(b"\0")[0].decode()
        major, minor = (
            self._attribute(f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR")
        )
        self.architecture = architecture_of(major, minor)
        self.multiprocessors = self._attribute("MULTIPROCESSOR_COUNT")
        flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING.value
        self._stream = checked(driver.cuStreamCreate(flags))
        self._events: list[tuple[Any, ...]] = []
        self._own: dict[str, bytes] = {}
        self._flush = self._prepare_flush()

    def allocate(self, size: int) -> int:
        """Plain device memory."""
        status, address = self._driver.cuMemAlloc(max(size, 1))
        short = status == self._driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY
        return int(checked((status, address), MemoryShortError if short else DeviceError))

    def free(self, address: int) -> None:
        """Give it back."""
        checked(self._driver.cuMemFree(address))

    def fill(self, address: int, byte: int, size: int) -> None:
        """Set bytes, in order with the other work."""
        checked(self._driver.cuMemsetD8Async(address, byte, size, self._stream))

    def write(self, address: int, data: bytes) -> None:
        """Copy to the device; waits for earlier work."""
        self._synchronize()
        checked(self._driver.cuMemcpyHtoD(address, data, len(data)))

    def read(self, address: int, size: int) -> bytes:
        """Copy from the device; waits for earlier work."""
        self._synchronize()
        data = bytearray(size)
        checked(self._driver.cuMemcpyDtoH(data, address, size))
        return bytes(data)

    def bind(self, call: Call, code: Path | Source, addresses: Mapping[str, int]) -> Prepared:
        """Return the functions and their arguments live as long as what is prepared does."""
        cubin = code.read_bytes() if isinstance(code, Path) else self._compiled(code)
        functions = load_functions(cubin, call, self._ordinal)
        launches = prepare(call, functions, addresses, int(self._stream))
        start = self._driver.cuLaunchKernelEx

        def prepared() -> None:
            for number, (config, function, arguments) in enumerate(launches):
                (status,) = start(config, function, arguments.address, 0)
                if status.value:
                    unharmed = number == 0 and status.name in _NOT_TAKEN
                    checked((status,), LoadError if unharmed else DeviceError)

        return prepared

    def seconds(self, call: Prepared, calls: int = 1, cold: bool = True) -> float:
        """Time a call by events around the launch. Several launches are replayed as a graph that
        contains the events; the median counts. A cold call is queued behind the flush, so that the
        processor's own time is hidden.
        """
        while len(self._events) < calls:
            self._events.append(tuple(checked(self._driver.cuEventCreate(0)) for _ in range(2)))
        if calls == 1:
            self._record(call, self._events[0], cold)
        else:
            self._replay(call, calls, cold)
        self._synchronize()
        elapsed = self._driver.cuEventElapsedTime
        return median(checked(elapsed(*pair)) * 1e-3 for pair in self._events[:calls])

    def _attribute(self, name: str) -> int:
        attribute = getattr(self._driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(checked(self._driver.cuDeviceGetAttribute(attribute, self._device)))

    def _prepare_flush(self) -> Prepared:
        """Prepare a launch that fills L2 with other data by reading it. Written data would have to
        leave L2 while a candidate runs, and the candidate would pay for that.
        """
        size, blocks = 4 * self._attribute("L2_CACHE_SIZE"), FLUSH_BLOCKS * self.multiprocessors
        kernel = oracle.sweep(size // 4, blocks)
        addresses = {o.name: self.allocate(o.bytes) for o in kernel.call.arrays}
        self.fill(addresses["buffer"], 0, size)
        return self.bind(kernel.call, kernel.source, addresses)

    def _compiled(self, source: Source) -> bytes:
        """Return the cubin of one of our own kernels; the last few are kept, for requests are
        alike."""
        if source.digest in self._own:
            return self._own[source.digest]
        text = device_text(source.text) + source.text
        done = compile_cubin(text, self.architecture, COMPILE_SECONDS, lambda: False)
        if done.cubin is None:
            raise LoadError(f"a kernel of our own does not compile: {done.log}")
        if len(self._own) == MOST_KEPT:
            self._own.clear()
        self._own[source.digest] = done.cubin
        return done.cubin

    def _synchronize(self) -> None:
        checked(self._driver.cuStreamSynchronize(self._stream))

    def _record(self, call: Prepared, pair: Any, cold: bool, flags: int = 0) -> None:
        """Queue one launch between two events."""
        record, (start, end) = self._driver.cuEventRecordWithFlags, pair
        if cold:
            self._flush()
        checked(record(start, self._stream, flags))
        call()
        checked(record(end, self._stream, flags))

    def _replay(self, call: Prepared, calls: int, cold: bool) -> None:
        """Queue a graph of launches twice; the second time counts."""
        driver = self._driver
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        external = driver.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL.value
        checked(driver.cuStreamBeginCapture(self._stream, mode))
        try:
            for pair in self._events[:calls]:
                self._record(call, pair, cold, external)
        finally:
            graph = checked(driver.cuStreamEndCapture(self._stream))
        replay = checked(driver.cuGraphInstantiate(graph, 0))
        checked(driver.cuGraphLaunch(replay, self._stream))
        checked(driver.cuGraphLaunch(replay, self._stream))
        self._synchronize()
        checked(driver.cuGraphExecDestroy(replay))
        checked(driver.cuGraphDestroy(graph))


def open_device(ordinal: int = 0) -> CudaDevice:
    """Return the GPU; :class:`DeviceError` says in words why there is none."""
    try:
        return CudaDevice(ordinal)
    except ImportError:
        raise DeviceError("the package cuda-bindings is not installed") from None
    except RuntimeError as error:  # the bindings' own, where there is no driver
        raise DeviceError(str(error).splitlines()[0].rstrip(".")) from None

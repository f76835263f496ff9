"""A compiled kernel on the GPUs of this process: its functions, and scratch memory of calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.measure.cuda.launching import bindings, checked, load_functions
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Call


class DeviceKernel:
    """The kernel of a cubin and a ``call``, loaded on each GPU when it is first used there.

    It keeps a workspace for each stream. Any number of threads may use it at once.
    """

    def __init__(self, cubin: bytes, call: Call) -> None:
        self._cubin, self._call = cubin, call
        self._driver = bindings()
        self._functions: dict[int, list[Any]] = {}
        self._workspaces: dict[tuple[int, int], int] = {}

    def enter(self, ordinal: int) -> None:
        """Give this thread the GPU's primary context, which torch uses too, if it has none, and
        the GPU the kernel. Raises :class:`InputError` where there is no driver."""
        driver, is_new = self._driver, ordinal not in self._functions
        if is_new:
            self._initialise()
        if not int(checked(driver.cuCtxGetCurrent())):
            device = checked(driver.cuDeviceGet(ordinal))
            checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(device))))
        if is_new:
            self._functions[ordinal] = load_functions(self._cubin, self._call, ordinal)

    def functions(self, ordinal: int) -> Sequence[Any]:
        """Return the functions of the launches on a GPU that was entered."""
        return self._functions[ordinal]

    def capturing(self, stream: int) -> bool:
        """Tell whether a stream is being captured."""
        status = checked(self._driver.cuStreamIsCapturing(self._driver.CUstream(stream)))
        return bool(status.value)

    def workspace(self, ordinal: int, stream: int, capturing: bool) -> int:
        """Return scratch memory of a stream, zeroed as the kernel asks; new memory in a capture."""
        key = (ordinal, stream)
        if capturing or key not in self._workspaces:
            made = self._zeroed()
            if capturing:
                return made
            self._workspaces[key] = made
        return self._workspaces[key]

    def _initialise(self) -> None:
        try:
            checked(self._driver.cuInit(0))
        except RuntimeError as error:  # the bindings' own, where there is no driver
            reason = str(error).splitlines()[0].rstrip(".")
            raise InputError(f"a CUDA kernel runs on a GPU with its driver: {reason}") from None

    def _zeroed(self) -> int:
        """New zeroed memory, also while some stream of this thread is being captured."""
        driver = self._driver
        relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        before = checked(driver.cuThreadExchangeStreamCaptureMode(relaxed))
        try:
            size = self._call.workspace_bytes
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

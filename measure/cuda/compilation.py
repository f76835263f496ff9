"""One run of NVRTC: CUDA C++ text to a cubin, without a driver, within a time limit."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.spaces.errors import InputError

FLAGS = ("--std=c++17", "--minimal", "--fmad=false", "--ptxas-options=-v")
"""Options of every compilation; the architecture comes on top. A value that is computed twice is to
be the same number: what is to be one multiply-add says so."""

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


@dataclass(frozen=True)
class Compilation:
    """``cubin`` is None if the compiler refused (its words are in ``log``) or was stopped."""

    cubin: bytes | None
    log: str
    stopped: bool = False


def compiler_version() -> str:
    """Return the version of NVRTC, such as ``13.5``; :class:`InputError` where it is not
    installed."""
    major, minor = _checked(_nvrtc().nvrtcVersion())
    return f"{major}.{minor}"


def compile_cubin(
    text: str, architecture: str, time_limit: float, cancelled: Callable[[], bool]
) -> Compilation:
    """Compile ``text`` for ``architecture`` (``sm_90a``).

    Stops soon after ``time_limit`` seconds of wall time, or once ``cancelled()`` holds. Releases
    the interpreter while it compiles, so threads run in parallel.
    """
    nvrtc = _nvrtc()
    deadline = time.monotonic() + time_limit
    # the compiler asks now and then; it wants the same answer again once told to stop
    callback = _Callback(lambda payload, reserved: time.monotonic() > deadline or cancelled())
    program = _checked(nvrtc.nvrtcCreateProgram(text.encode(), b"kernel.cu", 0, [], []))
    try:
        address = ctypes.cast(callback, ctypes.c_void_p).value
        _checked(nvrtc.nvrtcSetFlowCallback(program, address, 0))
        options = [o.encode() for o in (f"--gpu-architecture={architecture}", *FLAGS)]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = _fetched(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode()
        if status == nvrtc.nvrtcResult.NVRTC_ERROR_CANCELLED:
            return Compilation(None, log, stopped=True)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            return Compilation(None, log or status.name)
        cubin = _fetched(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
        return Compilation(cubin, log)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc
    except ImportError:
        raise InputError(
            "compiling CUDA kernels needs NVRTC, which is not installed; "
            "`pip install 'tilewright[cuda]'` brings it, no GPU or driver is needed"
        ) from None
    return nvrtc


def _checked(result: tuple[Any, ...]) -> Any:
    status, *values = result
    if status.value != 0:
        raise RuntimeError(f"NVRTC failed: {status.name}")
    return values[0] if len(values) == 1 else values


def _fetched(size: Callable[..., Any], fetch: Callable[..., Any], program: Any) -> bytes:
    """Fetch a text or binary from NVRTC, in a buffer of the size that it names."""
    buffer = b" " * _checked(size(program))
    _checked(fetch(program, buffer))
    return buffer.rstrip(b"\0 ") if fetch.__name__.endswith("Log") else buffer

"""NVIDIA GPUs as data: detected through the driver, or named for compiling without a device."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.target import Target
from tilewright.spaces.validation.limits import NAME, Real, Text, Texts, Whole
from tilewright.spaces.workloads.workload import Workload

WARP = 32
"""Threads of a warp."""
VECTOR_BYTES = 16
"""The most bytes that a thread moves at once."""
MOST_BLOCKS = 2**31 - 1
"""The most blocks of a launch along x."""
SEGMENT = 64
"""Bytes side by side that memory gives at a time."""
_NO_DEVICE = (
    "target 'cuda' needs an NVIDIA GPU with its driver and the packages of "
    "`pip install 'tilewright[cuda]'` ({why}); without one, name the hardware, such as "
    "cuda:sm_90a, to generate, verify and compile kernels"
)


@dataclass(frozen=True)
class Architecture:
    """Names of GPU architectures: ``sm_``, two or three digits, ``a`` or ``f`` at most."""

    def __contains__(self, value: object) -> bool:
        return isinstance(value, str) and re.fullmatch(r"sm_[0-9]{2,3}[af]?", value) is not None

    def __str__(self) -> str:
        return "names such as sm_80 or sm_90a"


_MOST_RATIO = 3.0  # times the nominal rates: float64 by matrix instructions has twice that of units
_BYTES_A_CYCLE = 128  # bytes that one SM loads from its L1 in a cycle


@dataclass(frozen=True)
class CudaTarget(Target):
    """One kind of GPU and the compiler that serves it.

    ``name`` is the architecture NVRTC compiles for. Bytes are bytes, ``bandwidth`` is bytes a
    second of device memory, ``clock`` is the highest SM clock in hertz. The ``*_flops`` are
    operations (a multiply-add is two) one SM does in one cycle: float32 and float64 by its
    ordinary units, and dense 16-bit matrix instructions with float32 accumulation. ``features``
    name what kernels may use: see :data:`FEATURES`.
    """

    kind: ClassVar[str] = "cuda"
    built_alike: ClassVar[tuple[str, ...]] = ("name",)

    name: Annotated[str, Architecture()]
    model: Annotated[str, NAME]
    multiprocessors: Annotated[int, Whole(1, 65536)]
    registers_per_multiprocessor: Annotated[int, Whole(1 << 10, 1 << 24)]
    registers_per_thread: Annotated[int, Whole(16, 4096)]
    shared_per_multiprocessor: Annotated[int, Whole(1 << 10, 1 << 30)]
    shared_per_block: Annotated[int, Whole(1 << 10, 1 << 30)]
    threads_per_multiprocessor: Annotated[int, Whole(32, 1 << 20)]
    threads_per_block: Annotated[int, Whole(32, 1 << 16)]
    blocks_per_multiprocessor: Annotated[int, Whole(1, 4096)]
    l2_bytes: Annotated[int, Whole(1 << 10, 1 << 40)]
    bandwidth: Annotated[float, Real(1e6, 1e18)]
    clock: Annotated[float, Real(1e3, 1e15)]
    float32_flops: Annotated[int, Whole(1, 1 << 24)]
    float64_flops: Annotated[int, Whole(1, 1 << 24)]
    tensor_flops: Annotated[int, Whole(1, 1 << 24)]
    features: Annotated[tuple[str, ...], Texts(64, Text(64))]
    compiler: Annotated[str, NAME]
    compiler_version: Annotated[str, NAME]

    @property
    def summary(self) -> str:
        """One line that describes the target for people."""
        return (
            f"{self.model} ({self.name}), {self.multiprocessors} SMs, "
            f"{self.shared_per_block // 1024} KiB shared memory a block, "
            f"{self.l2_bytes / 2**20:.0f} MiB L2, {self.bandwidth / 1e9:.0f} GB/s"
        )

    def least_seconds(self, workload: Workload) -> float:
        """Return a time in seconds that no kernel of this workload can beat, see
        :class:`Target`."""
        flops = max(map(self.peak, workload.arithmetic))
        cycles = self.clock * self.multiprocessors
        caches = self.l2_bytes + self.multiprocessors * (
            self.shared_per_multiprocessor + 4 * self.registers_per_multiprocessor
        )
        moved = workload.least_bytes
        return max(
            workload.flops / (_MOST_RATIO * flops),
            moved / (_MOST_RATIO * cycles * _BYTES_A_CYCLE),
            (moved - caches) / (_MOST_RATIO * self.bandwidth),
        )

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability, such as (9, 0) of sm_90a."""
        digits = self.name.removeprefix("sm_").rstrip("af")
        return int(digits[:-1]), int(digits[-1])

    def has(self, feature: str) -> bool:
        """Return true if kernels may use ``feature``, one of :data:`FEATURES`.

        Raises :class:`ValueError` for another name.
        """
        if feature not in FEATURES:
            raise ValueError(f"unknown feature {feature!r}; known: {', '.join(FEATURES)}")
        return feature in self.features

    def peak(self, dtype: str, tensor: bool = True) -> float:
        """Return the operations a second at ``clock`` on inputs of ``dtype``.

        They are those of matrix instructions if the hardware has them for it and ``tensor`` is true
        (float32 then means tf32).
        """
        per_cycle = self.float64_flops if dtype == "float64" else self.float32_flops
        if tensor and dtype in _TENSOR_RATE:
            per_cycle = int(self.tensor_flops * _TENSOR_RATE[dtype])
        return per_cycle * self.multiprocessors * self.clock


FEATURES = {
    "cp_async": "asynchronous copies of 4 to 16 bytes into shared memory",
    "mma": "mma.sync on float16, bfloat16, tf32 and int8, and ldmatrix",
    "mma_fp8": "mma.sync and conversions of float8",
    "tma": "tensor maps, mbarrier transactions, bulk stores and stmatrix",
    "cluster": "thread block clusters, multicast and distributed shared memory",
    "wgmma": "warpgroup matrix instructions and setmaxnreg",
}
"""Features of hardware that generated kernels may use, by name."""

_TENSOR_RATE = {
    "float16": 1.0,
    "bfloat16": 1.0,
    "float32": 0.5,
    "tfloat32": 0.5,
    "int8": 2.0,
    "float8_e4m3fn": 2.0,
    "float8_e5m2": 2.0,
}

_AMPERE = ("cp_async", "mma")
_ADA = (*_AMPERE, "mma_fp8")
_HOPPER = (*_ADA, "tma", "cluster", "wgmma")

_COMMON = {
    "registers_per_multiprocessor": 65536,
    "registers_per_thread": 255,
    "threads_per_block": 1024,
    "compiler": "nvrtc",
}

# Sizes: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". Rates: the
# vendor's white papers of each architecture and data sheet of each board.
_KNOWN: dict[str, dict[str, Any]] = {
    "sm_80": {
        "model": "NVIDIA A100-SXM4-80GB",
        "multiprocessors": 108,
        "shared_per_multiprocessor": 164 * 1024,
        "shared_per_block": 163 * 1024,
        "threads_per_multiprocessor": 2048,
        "blocks_per_multiprocessor": 32,
        "l2_bytes": 40 * 2**20,
        "bandwidth": 2039e9,
        "clock": 1410e6,
        "float32_flops": 128,
        "float64_flops": 64,
        "tensor_flops": 2048,
        "features": _AMPERE,
    },
    "sm_86": {
        "model": "NVIDIA A10",
        "multiprocessors": 72,
        "shared_per_multiprocessor": 100 * 1024,
        "shared_per_block": 99 * 1024,
        "threads_per_multiprocessor": 1536,
        "blocks_per_multiprocessor": 16,
        "l2_bytes": 6 * 2**20,
        "bandwidth": 600e9,
        "clock": 1695e6,
        "float32_flops": 256,
        "float64_flops": 4,
        "tensor_flops": 1024,
        "features": _AMPERE,
    },
    "sm_89": {
        "model": "NVIDIA L40S",
        "multiprocessors": 142,
        "shared_per_multiprocessor": 100 * 1024,
        "shared_per_block": 99 * 1024,
        "threads_per_multiprocessor": 1536,
        "blocks_per_multiprocessor": 24,
        "l2_bytes": 96 * 2**20,
        "bandwidth": 864e9,
        "clock": 2520e6,
        "float32_flops": 256,
        "float64_flops": 4,
        "tensor_flops": 1024,
        "features": _ADA,
    },
    "sm_90a": {
        "model": "NVIDIA H200",
        "multiprocessors": 132,
        "shared_per_multiprocessor": 228 * 1024,
        "shared_per_block": 227 * 1024,
        "threads_per_multiprocessor": 2048,
        "blocks_per_multiprocessor": 32,
        "l2_bytes": 60 * 2**20,
        "bandwidth": 4800e9,
        "clock": 1980e6,
        "float32_flops": 256,
        "float64_flops": 128,
        "tensor_flops": 4096,
        "features": _HOPPER,
    },
}


ARCHITECTURES = tuple(_KNOWN)
"""The architectures that a target may be named by."""


def detect(variant: str, threads: int | None) -> CudaTarget:
    """Return the architecture called ``variant``, or this machine's first GPU if it is empty.

    Raises :class:`InputError` if ``threads`` is given, which is for the CPU.
    """
    if threads is not None:
        name = f"cuda:{variant}" if variant else "cuda"
        raise InputError(f"threads={shown(threads)} is for the target cpu, not {name}")
    return cuda_target(variant or None)


def cuda_target(variant: str | None = None) -> CudaTarget:
    """Return the target called ``cuda:variant``, or the first GPU of this machine for None.

    Raises :class:`InputError` for an unknown variant, or where no usable GPU is found.
    """
    if variant is None:
        return _detect()
    if variant not in _KNOWN:
        raise InputError(f"unknown GPU architecture {shown(variant)}; allowed: {', '.join(_KNOWN)}")
    return CudaTarget(
        name=variant, compiler_version=_compiler_version(), **{**_COMMON, **_KNOWN[variant]}
    )


def _compiler_version() -> str:
    from importlib import metadata

    try:
        return metadata.version("nvidia-cuda-nvrtc")
    except metadata.PackageNotFoundError:
        return ""


def _detect() -> CudaTarget:
    try:
        from cuda.core import Device
    except ImportError:
        raise InputError(_NO_DEVICE.format(why="cuda-core is not installed")) from None
    try:
        device = Device(0)
        properties = device.properties
        capability = device.compute_capability
    except Exception as error:  # the driver's absence surfaces as many types
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(_NO_DEVICE.format(why=reason.rstrip("."))) from None
    return replace(
        cuda_target(_nearest(int(capability.major), int(capability.minor))),
        model=str(device.name),
        multiprocessors=properties.multiprocessor_count,
        registers_per_multiprocessor=properties.max_registers_per_multiprocessor,
        shared_per_multiprocessor=properties.max_shared_memory_per_multiprocessor,
        shared_per_block=properties.max_shared_memory_per_block_optin,
        threads_per_multiprocessor=properties.max_threads_per_multiprocessor,
        threads_per_block=properties.max_threads_per_block,
        blocks_per_multiprocessor=properties.max_blocks_per_multiprocessor,
        l2_bytes=properties.l2_cache_size,
        bandwidth=_bandwidth(properties),
        clock=properties.clock_rate * 1e3,
    )


def architecture_of(major: int, minor: int) -> str:
    """Return the name of a compute capability; of 9.0 the one with all its features, sm_90a."""
    return "sm_90a" if (major, minor) == (9, 0) else f"sm_{major}{minor}"


def _nearest(major: int, minor: int) -> str:
    """Return the architecture to compile for a device of this compute capability.

    Raises :class:`InputError` for one that no template serves.
    """
    name = architecture_of(major, minor)
    if name not in _KNOWN:
        raise InputError(
            f"the GPU here is {name}, which no template serves; allowed: {', '.join(_KNOWN)}"
        )
    return name


def _bandwidth(properties: Any) -> float:
    """Return the bytes a second of device memory: two transfers a clock over the whole bus."""
    return 2 * properties.memory_clock_rate * 1e3 * properties.global_memory_bus_width / 8

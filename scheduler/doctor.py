"""Check which of the parts that tilewright can use this machine has."""

from __future__ import annotations

import ctypes.util
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata

from tilewright.spaces.cpu.target import CpuTarget, detect_cpu
from tilewright.spaces.errors import InputError
from tilewright.spaces.settings import BUILT_IN, default_threads, setting


class State(StrEnum):
    """The state of one part: ok, absent, or with a warning or error."""

    OK = "ok"
    ABSENT = "absent"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Finding:
    """One part that was checked, and its state in words."""

    name: str
    text: str
    state: State = State.OK


PACKAGES = {
    "torch": "tilewright[torch]",
    "ray": "tilewright[ray]",
    "cuda-core": "tilewright[cuda]",
    "nvidia-cuda-nvrtc": "tilewright[cuda]",
}


def diagnose(threads: int | None = None) -> Iterator[Finding]:
    """Check each part and yield a finding; measuring peaks takes some seconds the first time."""
    yield Finding("python", f"{platform.python_version()} at {sys.executable}")
    yield from _settings()
    try:
        target = detect_cpu(default_threads() if threads is None else threads)
    except InputError as error:
        yield Finding("cpu", str(error), State.ERROR)
    else:
        yield from _cpu(target)
    yield from _blas()
    for package, extra in PACKAGES.items():
        yield _package(package, extra)
    found = ctypes.util.find_library("cuda")
    yield Finding("gpu driver", found or "not found", State.OK if found else State.ABSENT)
    yield _cache()


def _settings() -> Iterator[Finding]:
    """Yield the settings, and where each is from."""
    for name in BUILT_IN:
        try:
            found = setting(name)
        except InputError as error:
            yield Finding(f"setting {name}", str(error), State.ERROR)
        else:
            yield Finding(f"setting {name}", f"{found.value}, from {found.origin}")


def _cpu(target: CpuTarget) -> Iterator[Finding]:
    from tilewright.measure.cpu.peak import measure_peaks
    from tilewright.spaces.cpu.compiler import find_compiler

    compiler = find_compiler()
    yield Finding("compiler", f"{compiler.name} {compiler.version} at {compiler.path}")
    yield Finding("cpu", f"{target.model}, {target.architecture}, {target.cores} cores")
    extras = [name for name, has in (("fma", target.fma), ("bf16", target.bf16_dot)) if has]
    registers = f"{target.vector_registers} registers of {target.vector_bytes} bytes"
    yield Finding("isa", f"{target.isa}, {', '.join([registers, *extras])}")
    yield Finding(
        "caches",
        f"L1 {target.l1_bytes >> 10} KiB, L2 {target.l2_bytes >> 10} KiB, "
        f"L3 {target.l3_bytes >> 20} MiB",
    )
    try:
        peaks = measure_peaks(target)
    except InputError as error:
        yield Finding("peak", str(error), State.ERROR)
        return
    threads = f"{target.threads} thread{'s' if target.threads > 1 else ''}"
    yield Finding(
        f"peak, {threads}",
        ", ".join(f"{dtype} {gflops:.1f} GFLOP/s" for dtype, gflops in peaks.gflops.items()),
    )
    yield Finding(
        f"reads, {threads}",
        ", ".join(f"{level} {gbs:.1f} GB/s" for level, gbs in peaks.read_gbs.items()),
    )


def _blas() -> Iterator[Finding]:
    import numpy as np

    built = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    text = f"{built['name']} {built['version']}"
    loaded = _loaded_blas()
    yield Finding("numpy's BLAS", f"{text}, {loaded}" if loaded else text)
    core = os.environ.get("OPENBLAS_CORETYPE")
    if core:
        yield Finding(
            "OPENBLAS_CORETYPE",
            f"{core}: may slow NumPy down; unset it to compare with NumPy at its best",
            State.WARNING,
        )


def _loaded_blas() -> str:
    """Core type and threads of the BLAS in this process, where threadpoolctl is installed."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return ""
    pools = (pool for pool in threadpool_info() if pool["user_api"] == "blas")
    return "; ".join(
        f"core type {pool.get('architecture', 'unknown')}, {pool['num_threads']} threads"
        for pool in pools
    )


def _package(name: str, extra: str) -> Finding:
    try:
        return Finding(name, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding(name, f"not installed; optional: pip install '{extra}'", State.ABSENT)


def _cache() -> Finding:
    from tilewright.measure.host.directories import cache_directory

    try:
        path = cache_directory("").resolve()
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    except (OSError, InputError) as error:
        return Finding("cache", str(error), State.ERROR)
    return Finding("cache", f"{path}, {size / 2**20:.1f} MiB")

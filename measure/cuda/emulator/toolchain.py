"""Builds the emulator's process and kernels' libraries with the host's C++ compiler."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from measure.host.cache import CachedFile
from measure.host.directories import RunDirectory
from spaces.cuda.intrinsics import host_text
from spaces.errors import InputError
from spaces.kernel import Kernel

_HERE = Path(__file__).parent
_STANDARD = ("-std=c++20", "-w")


def compiler() -> str:
    """Path of g++; :class:`InputError` where the emulator cannot work."""
    path = shutil.which("g++")
    if path is None:
        raise InputError("emulating CUDA kernels needs g++ (C++20) on the path; none was found")
    if platform.machine() not in ("x86_64", "AMD64"):
        raise InputError(f"emulating CUDA kernels needs x86-64; this is {platform.machine()}")
    return path


@cache
def process() -> Path:
    """The emulator's executable, built on first use and kept in the user's cache."""
    sources = sorted(_HERE.glob("*.cpp"))
    command = [compiler(), "-std=c++20", "-O2", "-rdynamic"]
    digest = hashlib.sha256(repr((command, platform.libc_ver())).encode())
    for path in [*sources, *sorted(_HERE.glob("*.h"))]:
        digest.update(path.read_bytes())

    def build() -> bytes:
        with RunDirectory() as run:
            fresh = run.path / "emulator"
            built = subprocess.run(
                [*command, "-o", fresh, *sources, "-ldl"], capture_output=True, text=True
            )
            if built.returncode != 0 or not fresh.exists():
                reason = built.stderr.strip() or "no output"
                raise InputError(f"{command[0]} cannot build the emulator: {reason}")
            return fresh.read_bytes()

    return CachedFile("emulator", digest.hexdigest()[:24]).program(build)


def unit(kernels: Sequence[Kernel]) -> str:
    """The translation unit of ``kernels``: each distinct prelude once, each source in a namespace
    of its own, so that helpers may share names."""
    runtime, call = ((_HERE / name).read_text() for name in ("runtime.h", "call.h"))
    preludes = dict.fromkeys(kernel.prelude for kernel in kernels)
    parts = [runtime, host_text("\n".join(kernel.text for kernel in kernels)), call, *preludes]
    for i, kernel in enumerate(kernels):
        parts += [f"namespace kernel_{i} {{", kernel.source, f"TW_ENTRY({kernel.entry})", "}"]
    return "\n".join(parts)


def compile_library(kernels: Sequence[Kernel], folder: Path) -> Path:
    """A shared library of ``kernels``; raises CalledProcessError with the compiler's errors."""
    text = unit(kernels)
    name = hashlib.sha256(text.encode()).hexdigest()[:24]
    source, library = folder / f"{name}.cpp", folder / f"{name}.so"
    if not library.exists():
        source.write_text(text)
        subprocess.run(
            [compiler(), *_STANDARD, "-O1", "-shared", "-fPIC", "-o", library, source],
            check=True,
            capture_output=True,
            text=True,
        )
    return library

"""Builds the emulator's process and kernels' libraries with the host's C++ compiler."""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tilewright.measure.cpu.compilation import Compilations
from tilewright.measure.failures import compile_failure
from tilewright.measure.host.cache import CachedFile
from tilewright.measure.host.directories import RunDirectory
from tilewright.measure.records.measurement import ErrorKind
from tilewright.spaces.cuda.intrinsics import host_text
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Kernel

_NATIVE = Path(__file__).parent / "native"
_STANDARD = ("-std=c++20", "-w", "-ffp-contract=off")  # as on the device
TIME_LIMIT = 600.0  # seconds for one run of the compiler
OPTIMIZATION = "-O1"  # -O0 compiles in a third of the time, and its kernels run half as fast


class CompileError(Exception):
    """Kernels have no library: of which ``kind`` that is, and the compiler's words."""

    def __init__(self, kind: ErrorKind, text: str) -> None:
        super().__init__(text)
        self.kind, self.text = kind, text


def compiler() -> str:
    """Return the path of g++; :class:`InputError` where the emulator cannot work."""
    path = shutil.which("g++")
    if path is None:
        raise InputError("emulating CUDA kernels needs g++ (C++20) on the path; none was found")
    if platform.machine() not in ("x86_64", "AMD64"):
        raise InputError(f"emulating CUDA kernels needs x86-64; this is {platform.machine()}")
    return path


def library_command() -> list[str]:
    """Return the compiler and the flags of kernels' libraries."""
    return [compiler(), *_STANDARD, OPTIMIZATION, *_poison(), "-shared", "-fPIC"]


def _poison() -> tuple[str, ...]:
    """Fill registers that nobody has written with huge numbers, where the compiler's file says that
    it is GCC 12 or newer (``g++-12``); asking a compiler that hangs would hang."""
    version = re.search(r"-(\d+)$", str(Path(compiler()).resolve()))
    is_new = version is not None and int(version[1]) >= 12
    return ("-ftrivial-auto-var-init=pattern",) if is_new else ()


@cache
def process() -> Path:
    """Return the emulator's executable, built on first use and kept in the user's cache."""
    sources = sorted(_NATIVE.glob("*.cpp"))
    command = [compiler(), "-std=c++20", "-O2", "-rdynamic"]
    digest = hashlib.sha256(repr((command, platform.libc_ver())).encode())
    for path in [*sources, *sorted(_NATIVE.glob("*.h"))]:
        digest.update(path.read_bytes())

    def build() -> bytes:
        with RunDirectory() as run:
            whole, fresh = run.path / "emulator.cpp", run.path / "emulator"
            # one unit reads the library's headers once, which take longer than all that is ours
            whole.write_text("".join(f'#include "{source}"\n' for source in sources))
            arguments = [*command, "-o", str(fresh), str(whole), "-ldl"]
            built = Compilations().run(arguments, run.path, TIME_LIMIT)
            if not built.ok or not fresh.exists():
                reason = built.text or "no output"
                raise InputError(f"{command[0]} cannot build the emulator: {reason}")
            return fresh.read_bytes()

    return CachedFile("emulator", digest.hexdigest()[:24]).program(build)


def unit(kernels: Sequence[Kernel]) -> str:
    """Return the translation unit of ``kernels``: each prelude and source in a namespace of their
    own, so that helpers may share names. Entries have other names there, for one may be called like
    a function of the C library, and C has no namespaces."""
    runtime, call = ((_NATIVE / name).read_text() for name in ("runtime.h", "call.h"))
    texts = "\n".join(kernel.source.text for kernel in kernels)
    parts = [runtime, host_text(texts), call]
    for i, kernel in enumerate(kernels):
        names = dict.fromkeys(kernel.call.function(launch) for launch in kernel.call.launches)
        renamed = [f"#define {name} tw_entry_{name}" for name in names]
        entries = [f"TW_ENTRY({name})" for name in names]
        back = [f"#undef {name}" for name in names]
        source = [kernel.source.prelude, *renamed, kernel.source.body, *entries, *back]
        parts += [f"namespace kernel_{i} {{", *source, "}"]
    return "\n".join(parts)


def compile_library(kernels: Sequence[Kernel], folder: Path, compilations: Compilations) -> Path:
    """Return a shared library of ``kernels`` in ``folder``; raises :class:`CompileError`."""
    try:
        text = unit(kernels)
    except InputError as error:
        raise CompileError(ErrorKind.COMPILE, str(error)) from None
    name = hashlib.sha256(text.encode()).hexdigest()[:24]
    source, library = folder / f"{name}.cpp", folder / f"{name}.so"
    if not library.exists():
        source.write_text(text)
        command = [*library_command(), "-o", str(library), str(source)]
        built = compilations.run(command, folder, TIME_LIMIT)
        if not built.ok:
            raise CompileError(compile_failure(built.text, built.timed_out), built.text)
    return library

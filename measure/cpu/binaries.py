"""Binaries that are built once and kept: the server, the thread pool, kernels in use."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

from tilewright.measure.cpu.compilation import SHARED, Compilation, Compilations
from tilewright.measure.host.cache import CachedFile
from tilewright.measure.host.directories import ELSEWHERE, RunDirectory
from tilewright.measure.host.loading import sealed_file
from tilewright.spaces.cpu.compiler import find_compiler
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Source

HERE = Path(__file__).parent / "native"
OPTIMISED = ("-O3", "-pthread")
TIME_LIMIT = 120.0
BINARY = b"\x7fELF"  # what a compiler's output starts with

Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class Build:
    """A binary, described by its inputs: C and C++ ``sources``, texts by file name, and compiler
    ``flags``.

    ``host`` identifies the machines that it is for, beside the compiler and the C library;
    ``supervised`` tells whether its compiler is, see :class:`Compilations`.
    """

    name: str
    sources: Mapping[str, str]
    flags: Sequence[str]
    host: str = ""
    supervised: bool = True

    @property
    def file(self) -> CachedFile:
        """The cached file, named after everything that the binary depends on."""
        compiler = find_compiler()
        here = [compiler.name, compiler.version, platform.machine(), _c_library(), self.host]
        return CachedFile("binaries", f"{self.name}-{_digest([*here, self._given])[:32]}")

    @cached_property
    def _given(self) -> str:
        """Tells flags and sources apart, which are long."""
        return _digest([list(self.flags), dict(self.sources)])

    def compile(self) -> bytes:
        """Return the binary; :class:`InputError` with the compiler's words if there is none."""
        compiler = find_compiler()
        with RunDirectory() as run:
            try:
                outcome, binary = self._compile_in(run.path, compiler.path)
            except OSError as error:
                raise InputError(
                    f"cannot build the {self.name} in {run.path}: {error.strerror}; {ELSEWHERE}"
                ) from None
        if not binary.startswith(BINARY):
            reason = outcome.text or ("it took too long" if outcome.timed_out else "no output")
            raise InputError(f"{compiler.path} cannot build the {self.name}: {reason}")
        return binary

    def _compile_in(self, folder: Path, compiler: str) -> tuple[Compilation, bytes]:
        for file, text in self.sources.items():
            (folder / file).write_text(text)
        units = [file for file in self.sources if file.endswith((".c", ".cpp"))]
        made = folder / "made"
        command = [compiler, *self.flags, *units, "-o", str(made), "-lm", "-ldl"]
        outcome = Compilations(self.supervised).run(command, folder, TIME_LIMIT)
        return outcome, made.read_bytes() if outcome.ok and made.exists() else b""

    def content(self) -> bytes:
        """Return the binary that is kept, compiled first where there is none."""
        return self.file.content(self.compile)

    def load(self, load: Callable[[str], Loaded]) -> Loaded:
        """Call ``load`` with the path of this shared object, and return its result.

        A file that does not load is compiled again, once: it may come from a different machine. If
        it still does not load, :class:`InputError` is raised.
        """
        file = self.file
        try:
            return _loaded(file.content(self.compile), load)
        except (OSError, ImportError):
            file.remove()
        try:
            return _loaded(file.content(self.compile), load)
        except (OSError, ImportError) as error:
            file.remove()
            compiler = find_compiler().path
            raise InputError(
                f"the {self.name} that {compiler} built cannot be loaded: {error}"
            ) from None


def _digest(identity: object) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def _loaded(content: bytes, load: Callable[[str], Loaded]) -> Loaded:
    with sealed_file(content) as path:
        return load(path)


@cache
def _c_library() -> str:
    """Name and version of the C library, as far as the system tells."""
    with suppress(OSError, ValueError, AttributeError):
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    return ""


def server_binary() -> Path:
    """Return the program that measures candidates, checked each time it is asked for."""
    build = _server()
    return build.file.program(build.compile)


def keeper_binary() -> Path:
    """Return the program that supervises others, checked as well."""
    build = _keeper()
    return build.file.program(build.compile)


def build_helpers() -> float:
    """Build what measures candidates where it is not built yet; the seconds that took, 0 if all was
    there."""
    if all(build.file.read() is not None for build in (_keeper(), _server())):
        return 0.0
    began = time.monotonic()
    keeper_binary()
    server_binary()
    return time.monotonic() - began


@cache
def _keeper() -> Build:
    return Build("keeper", _sources("keeper", "reap"), OPTIMISED, supervised=False)


@cache
def _server() -> Build:
    parts = ("server", "child", "plan", "zone", "compare", "timer", "cache_flush", "protocol")
    return Build("server", _sources(*parts, "pool", "reap"), OPTIMISED)


@cache
def pool_library() -> ctypes.CDLL:
    """Return the thread pool."""
    return _pool().load(ctypes.CDLL)


def pool_binary() -> bytes:
    """Return the shared object of the thread pool."""
    return _pool().content()


def _pool() -> Build:
    return Build("pool", _sources("pool"), (*OPTIMISED, *SHARED))


def kernel_library(source: Source, target: CpuTarget) -> ctypes.CDLL:
    """Return one kernel, loaded; each once in a process, where it stays.

    Raises :class:`InputError` with the compiler's words if it cannot be built.
    """
    return _kernel_library(source.text, (*target.compiler_flags, *SHARED), target.fingerprint)


def kernel_binary(source: Source, target: CpuTarget) -> bytes:
    """Return the shared object of one kernel."""
    flags = (*target.compiler_flags, *SHARED)
    return _kernel(source.text, flags, target.fingerprint).content()


def is_built(source: Source, target: CpuTarget) -> bool:
    """Tell whether a kernel's binary is there, so that loading it needs no compiler."""
    flags = (*target.compiler_flags, *SHARED)
    return _kernel(source.text, flags, target.fingerprint).file.read() is not None


@cache
def _kernel_library(text: str, flags: tuple[str, ...], host: str) -> ctypes.CDLL:
    return _kernel(text, flags, host).load(ctypes.CDLL)


def _kernel(text: str, flags: tuple[str, ...], host: str) -> Build:
    return Build("kernel", {"kernel.c": text}, flags, host)


def _sources(*modules: str) -> dict[str, str]:
    """Return the text of these C modules, and all headers, by file name."""
    wanted = {f"{module}.c" for module in modules}
    paths = [path for path in HERE.rglob("*.[ch]") if path.suffix == ".h" or path.name in wanted]
    return {path.name: path.read_text() for path in sorted(paths, key=lambda path: path.name)}

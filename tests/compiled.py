"""Libraries that tests compile, kept in the user's cache: most are the same in the next run."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from tilewright.measure.cpu.compilation import Compilations
from tilewright.measure.cuda.emulator import toolchain
from tilewright.measure.host.cache import CachedFile
from tilewright.spaces.cpu.compiler import find_compiler
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Kernel

KIND = "tests"
"""The kind of these files in the cache, see :mod:`measure.host.cache`."""
FASTEST = 1
"""The level at which they are compressed, to a quarter: the cache has no room for those of a whole
run else."""


def keep(library: Path, given: object, make: Callable[[], object]) -> Path:
    """Return ``library`` as an earlier run made it of all that is ``given``; else ``make`` does.

    Text, flags and compiler have to be ``given``. Only a library that was made is kept.
    """

    def made() -> bytes:
        make()
        return zlib.compress(library.read_bytes(), FASTEST)

    content = zlib.decompress(_kept(given).content(made))
    library.unlink(missing_ok=True)  # the process may have loaded another one of this name
    library.write_bytes(content)
    return library


def is_kept(given: object) -> bool:
    """Tell whether an earlier run made a library of all that is ``given``."""
    return _kept(given).path.exists()


def _kept(given: object) -> CachedFile:
    return CachedFile(KIND, hashlib.sha256(repr(("zlib", given)).encode()).hexdigest())


def c_compiler() -> tuple[object, ...]:
    """Identify the C compiler, and the instructions that it may use on this machine."""
    found = find_compiler()
    return _program(found.path), found.version, found.native, sorted(found.macros)


def keep_emulated(kernels: Sequence[Kernel], folder: Path, compilations: Compilations) -> Path:
    """Stand in for the emulator's ``compile_library``."""
    try:
        text = toolchain.unit(kernels)
    except InputError:  # it has the words for this
        return toolchain.compile_library(kernels, folder, compilations)
    library = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}-kept.so"
    if library.exists():
        return library
    given = (text, toolchain.library_command(), _program(toolchain.compiler()))
    return keep(
        library,
        given,
        lambda: toolchain.compile_library(kernels, folder, compilations).rename(library),
    )


def _program(path: str) -> tuple[str, int, int]:
    """Tell a program from those that were or will be at its path."""
    status = os.stat(path)
    return path, status.st_size, status.st_mtime_ns

"""Binaries that are built once and kept: the server, the thread pool, kernels in use."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from measure.cpu.cache import cache_directory, cached
from measure.cpu.compilation import SHARED, Compilations
from spaces.cpu.compiler import find_compiler
from spaces.cpu.target import CpuTarget
from spaces.kernel import Kernel

HERE = Path(__file__).parent
OPTIMISED = ("-O3", "-pthread")
TIME_LIMIT = 120.0


@cache
def server_binary() -> Path:
    """The program that measures candidates."""
    modules = ("server", "child", "plan", "zone", "compare", "timer", "pool")
    return built("server", _sources(*modules), OPTIMISED, "")


@cache
def pool_binary() -> Path:
    """The thread pool as a shared object."""
    return built("pool", _sources("pool"), (*OPTIMISED, *SHARED), "")


def kernel_binary(kernel: Kernel, target: CpuTarget) -> Path:
    """The shared object of one kernel. RuntimeError with the compiler's words if it fails."""
    flags = (*target.flags, *SHARED)
    return built("kernel", {"kernel.c": kernel.text}, flags, target.fingerprint)


def _sources(*modules: str) -> dict[str, str]:
    """The text of these C modules, and all headers, by file name."""
    paths = [*(HERE / f"{module}.c" for module in modules), *HERE.glob("*.h")]
    return {path.name: path.read_text() for path in sorted(paths)}


def built(name: str, sources: Mapping[str, str], flags: Sequence[str], host: str) -> Path:
    """The cached binary of ``sources``, texts by file name, on what ``host`` identifies.

    Its name tells all that went into it apart. RuntimeError with the compiler's words if it
    fails, :class:`spaces.errors.InputError` where there is no compiler.
    """
    compiler = find_compiler()
    identity = [compiler.name, compiler.version, host, list(flags), dict(sources)]
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    def compile_to(path: Path) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for file, text in sources.items():
                Path(folder, file).write_text(text)
            units = [file for file in sources if file.endswith(".c")]
            command = [compiler.path, *flags, *units, "-o", str(path), "-lm", "-ldl"]
            outcome = Compilations().run(command, Path(folder), TIME_LIMIT)
        if not outcome.ok:
            raise RuntimeError(f"{compiler.path} cannot build the {name}: {outcome.text}")

    return cached(cache_directory("binaries") / f"{name}-{digest[:32]}", compile_to)

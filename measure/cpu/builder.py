"""C kernels to shared objects: many to a translation unit, units in parallel."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.measure.cpu.compilation import SHARED, Compilation, Compilations, in_groups
from tilewright.measure.failures import compile_failure
from tilewright.measure.host.directories import RunDirectory
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import Candidate
from tilewright.spaces.cpu.compiler import find_compiler
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.kernel import Kernel

UNIT_SIZE = 16


@dataclass(frozen=True)
class _Unit:
    """Kernels that are compiled together, by the digests of their texts, and what came of it."""

    kernels: tuple[str, ...]
    path: Path
    outcome: Compilation


class CBuilder:
    """Builds for one CPU target with the system's compiler.

    ``jobs`` units of at most ``unit_size`` kernels compile at a time; a kernel may take
    ``time_limit`` seconds. Where a unit of several fails, each of its kernels is compiled alone,
    so that only the culprits carry the error. Binaries live until :meth:`close`, which may come
    from another thread and cuts short what is under way; so no kernel that compiles does so twice.
    """

    def __init__(
        self,
        target: CpuTarget,
        jobs: int = 1,
        unit_size: int = UNIT_SIZE,
        time_limit: float = 20.0,
    ) -> None:
        compiler = find_compiler()
        self._command = (compiler.path, *target.compiler_flags, *SHARED)
        self._toolchain = f"{compiler.name} {compiler.version}"
        self.batch = UNIT_SIZE
        self._jobs, self._unit_size, self._time_limit = jobs, unit_size, time_limit
        self._compilations = Compilations()
        self._directory = RunDirectory()
        self._threads = ThreadPoolExecutor(jobs, thread_name_prefix="compile")
        self._numbers = itertools.count()
        self._known: dict[str, _Unit] = {}

    def build(self, candidates: Sequence[Candidate]) -> list[Built]:
        """Return the binaries in the order of ``candidates``; equal kernels are built once."""
        digests = [candidate.kernel.source.digest for candidate in candidates]
        kernels = {digest: c.kernel for digest, c in zip(digests, candidates, strict=True)}
        new = [kernel for digest, kernel in kernels.items() if digest not in self._known]
        units = list(self._threads.map(self._build_unit, self._divide(new)))
        failed = [u.kernels for u in units if not u.outcome.ok and len(u.kernels) > 1]
        alone = [[kernels[digest]] for digest in itertools.chain.from_iterable(failed)]
        units += self._threads.map(self._build_unit, alone)
        home = {digest: unit for unit in units for digest in unit.kernels}
        self._known |= {digest: unit for digest, unit in home.items() if unit.outcome.ok}
        home = self._known | home
        return [self._built(c, home[digest]) for digest, c in zip(digests, candidates, strict=True)]

    def close(self) -> None:
        """Kill running compilers and remove the binaries. Idempotent."""
        self._compilations.close()
        self._threads.shutdown()
        self._directory.close()

    def _divide(self, kernels: list[Kernel]) -> list[list[Kernel]]:
        """Return the groups of about equal size, enough of them to keep all jobs busy."""
        size = min(self._unit_size, max(1, -(-len(kernels) // self._jobs)))
        return in_groups(kernels, size)

    def _build_unit(self, kernels: list[Kernel]) -> _Unit:
        path = self._directory.path / f"unit{next(self._numbers)}.so"
        limit = self._time_limit * len(kernels) ** 0.5
        try:
            outcome = self._compile(unit_text(kernels), path, limit)
        except OSError as error:  # of this machine: a full disk, no more processes
            outcome = Compilation(False, 0.0, text=f"cannot compile: {error.strerror}")
        return _Unit(tuple(kernel.source.digest for kernel in kernels), path, outcome)

    def _compile(self, text: str, path: Path, limit: float) -> Compilation:
        source = path.with_suffix(".c")
        source.write_text(text)
        command = (*self._command, str(source), "-o", str(path), "-lm")
        return self._compilations.run(command, path.parent, limit)

    def _built(self, candidate: Candidate, unit: _Unit) -> Built:
        outcome, share = unit.outcome, unit.outcome.seconds / len(unit.kernels)
        built = Built(candidate, unit.path, share, toolchain=self._toolchain)
        if outcome.ok:
            return built
        kind = compile_failure(outcome.text, outcome.timed_out)
        return replace(built, binary=None, error_kind=kind, error_text=outcome.text)


def unit_text(kernels: Sequence[Kernel]) -> str:
    """Return one translation unit of many kernels: each distinct prelude once, then all sources."""
    preludes = dict.fromkeys(kernel.source.prelude for kernel in kernels)
    return "\n".join([*preludes, *(kernel.source.body for kernel in kernels)])

"""Compile kernels, run them on guarded buffers, and say what is wrong with the outcome."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.compiled import c_compiler, is_kept, keep
from tests.kernels import planted
from tilewright.spaces.cpu.compiler import ARCHITECTURE, find_compiler
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.derivation.rounding.allowance import allowed as allowed_of_program
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.numerics.allowance import agrees, allowed
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.workload import Workload

# Workers one after the other, the last one first: no kernel may count on their order.
RUNTIME = """\
static void one_after_the_other(
    tw_pool *pool, int workers, void (*task)(void *context, int worker), void *context) {
  for (int worker = workers - 1; worker >= 0; worker--) task(context, worker);
}
const tw_runtime test_runtime = {one_after_the_other, 0};
"""
GUARD = 256
CANARY = 0xFF  # NaN in every dtype: what is read there shows in the results
QUIET = (
    "-Wall", "-Werror", "-Wno-unused-function", "-Wno-unused-variable", "-Wno-psabi",
    "-Wno-uninitialized", "-Wno-maybe-uninitialized",
)  # fmt: skip
"""Warnings end a compilation, but for what is unused and for gcc 13's of vectors that have no value
yet: it takes one whose elements are set in a loop for such."""


QUICKLY = ("-O0",)
"""Compiles in half the time: for many kernels of which the results count."""


class Turns:
    """Says which units are optimized as users' are: the first of each file's tests, the first of
    each prelude in a process, and all of tests that are slow.

    A prelude has what differs in how vectors, dtypes and functions are compiled. What the kernels
    of a file have in common is optimized with it, and the rest is judged by its results.
    """

    def __init__(self) -> None:
        self.every = self._first = False
        self._seen = set[str]()

    def begin(self) -> None:
        """Another file's tests follow."""
        self._first = True

    def flags(self, prelude: str) -> tuple[str, ...]:
        """Flags for the next unit."""
        if self.every or self._first or prelude not in self._seen:
            self._first = False
            self._seen.add(prelude)
            return ()
        return QUICKLY


TURNS = Turns()


def compile_kernels(
    kernels: Sequence[Kernel], target: CpuTarget, folder: Path, *further: str
) -> ctypes.CDLL:
    """One translation unit of all ``kernels``, which share a prelude, without warnings; compiled
    with ``further`` flags, too, unless it is kept, or optimized when its turn is, or was in an
    earlier run. Where tests are repeated for other instructions, those of this machine have shown
    what the compiler's optimizations make of kernels."""
    assert len({kernel.source.prelude for kernel in kernels}) == 1
    folder.mkdir(parents=True, exist_ok=True)
    source, library = folder / "kernels.c", folder / "kernels.so"
    parts = [kernels[0].source.prelude, *(kernel.source.body for kernel in kernels), RUNTIME]
    text = "\n".join(parts)
    source.write_text(text)
    if os.environ.get(ARCHITECTURE):
        level = QUICKLY
    else:
        level = () if further else TURNS.flags(kernels[0].source.prelude)
    flags = (*target.compiler_flags, *QUIET, "-fPIC", "-shared")
    if level and not os.environ.get(ARCHITECTURE) and is_kept((c_compiler(), flags, text)):
        level = ()
    flags = (*flags, *level, *further)

    def compiled() -> None:
        done = subprocess.run(
            [find_compiler().path, *flags, str(source), "-o", str(library), "-lm"],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr

    return ctypes.CDLL(str(keep(library, (c_compiler(), flags, text), compiled)))


def compile_apart(
    kernels: Sequence[Kernel], target: CpuTarget, folder: Path, *further: str
) -> list[ctypes.CDLL]:
    """The library of each kernel: a translation unit for each prelude."""
    units: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        units.setdefault(kernel.source.prelude, []).append(kernel)
    libraries = {}
    for number, (prelude, unit) in enumerate(units.items()):
        libraries[prelude] = compile_kernels(unit, target, folder / f"unit{number}", *further)
    return [libraries[kernel.source.prelude] for kernel in kernels]


class Guarded:
    """Memory with canaries on both sides, ``off`` bytes behind where a cache line begins."""

    def __init__(self, size: int, off: int, poison: int = 0xFF) -> None:
        self.memory = np.full(size + 2 * GUARD + 128, CANARY, dtype=np.uint8)
        self.start = GUARD + (-(self.memory.ctypes.data + GUARD)) % 64 + off
        self.size = size
        self.bytes[:] = poison

    @property
    def bytes(self) -> np.ndarray:
        return self.memory[self.start : self.start + self.size]

    @property
    def address(self) -> int:
        return self.memory.ctypes.data + self.start

    @property
    def intact(self) -> bool:
        before, after = self.memory[: self.start], self.memory[self.start + self.size :]
        return bool((before == CANARY).all() and (after == CANARY).all())

    def array(self, operand: Array) -> np.ndarray:
        element = operand.element
        strides = tuple(step * element.bytes for step in operand.strides)
        return np.ndarray(operand.shape, element.numpy, self.bytes, strides=strides)


Run = Callable[[Any, Any, Any, Any], str]
"""Calls a kernel with its three arguments, and says what went wrong meanwhile."""


def here(entry: Any, *arguments: Any) -> str:
    """Call a kernel in this process."""
    entry(*arguments)
    return ""


def outcome(
    kernel: Kernel,
    library: ctypes.CDLL,
    inputs: Mapping[str, np.ndarray],
    off: int = 1,
    memory: type[Guarded] = Guarded,
    run: Run = here,
) -> tuple[str, dict[str, np.ndarray]]:
    """What went wrong in one run of ``kernel`` beside its results, and these; see
    :func:`complaint`."""
    buffers = {
        o.name: memory(o.span_bytes, off * o.element.bytes, 0x5A) for o in kernel.call.arrays
    }
    arrays = {o.name: buffers[o.name].array(o) for o in kernel.call.arrays}
    given = [name for name in arrays if name in inputs]
    for name in given:
        arrays[name][...] = inputs[name]
    before = {name: buffers[name].bytes.copy() for name in given}
    workspace = memory(kernel.call.workspace_bytes, 64)
    pointers = (ctypes.c_void_p * len(buffers))(*(b.address for b in buffers.values()))
    runtime = ctypes.addressof(ctypes.c_char.in_dll(library, "test_runtime"))
    entry = getattr(library, kernel.call.entry)
    failed = run(entry, pointers, ctypes.c_void_p(workspace.address), ctypes.c_void_p(runtime))
    outside = [f"wrote outside of {name}" for name, buffer in buffers.items() if not buffer.intact]
    if not workspace.intact:
        bytes_ = kernel.call.workspace_bytes
        outside.append(f"wrote outside of the {bytes_} bytes of workspace")
    if any((values != buffers[name].bytes).any() for name, values in before.items()):
        outside.append("changed an input")
    results = {name: array.copy() for name, array in arrays.items() if name not in inputs}
    for name in results:
        written = arrays[name].view(np.uint8) if arrays[name].dtype == bool else arrays[name]
        written[...] = np.full(1, 0x5A5A5A5A5A5A5A5A).view(written.dtype)[0]
        if (buffers[name].bytes != 0x5A).any():
            outside.append(f"wrote between the rows of {name}")
    return next(iter([*filter(None, [failed]), *outside]), ""), results


def complaint(
    kernel: Kernel,
    library: ctypes.CDLL,
    workload: Workload,
    seed: int,
    inputs: dict[str, np.ndarray] | None = None,
    off: int = 1,
    meant: Mapping[str, np.ndarray] | None = None,
    memory: type[Guarded] = Guarded,
    run: Run = here,
) -> str:
    """What is wrong with one run of ``kernel``, on arrays that begin ``off`` elements behind lines
    of the cache: nothing, if the text is empty. Results are to be those of the inputs ``meant``."""
    inputs = inputs or workload.make_inputs(seed)
    failed, found = outcome(kernel, library, inputs, off, memory, run)
    if failed:
        return failed
    bounds = allowed_outputs(workload, meant or inputs)
    return next(filter(None, (_wrong(found[name], *bounds[name]) for name in bounds)), "")


def sampled(space: Space, count: int, seed: int = 0) -> list[Kernel]:
    """The kernels of schedules at random, none of them twice."""
    return [space.lower(schedule) for schedule in _schedules(space, count, seed)]


def check_sampled(space: Space, count: int, seed: int, folder: Path) -> None:
    """Kernels of schedules at random, under guard zones, compute what the reference says; of half
    as many where tests are not slow."""
    schedules = _schedules(space, count if TURNS.every else (count + 1) // 2, seed)
    kernels = list(map(space.lower, schedules))
    assert isinstance(space.target, CpuTarget)
    library = compile_kernels(kernels, space.target, folder)
    found = [complaint(kernel, library, space.workload, seed) for kernel in kernels]
    wrong = [
        f"{space.workload} with {s}: {problem}"
        for s, problem in zip(schedules, found, strict=True)
        if problem
    ]
    assert not wrong, "\n".join(wrong)


def _schedules(space: Space, count: int, seed: int) -> list[Schedule]:
    rows = np.unique(space.sample(np.random.default_rng(seed), count), axis=0)
    return [space.schedule(row) for row in rows]


def check_bugs_are_found(
    right: Kernel,
    bugs: Mapping[str, tuple[str, str]],
    workload: Workload,
    target: CpuTarget,
    folder: Path,
    inputs: Sequence[dict[str, np.ndarray] | None] = (None,),
    count: int = 1,
) -> None:
    """The kernel is right for all ``inputs`` (None: random ones), and wrong for some of them with
    any of the ``bugs``: patterns and what ``count`` matches of each become (0: all)."""
    wrong = [
        planted(right, *bug, entry=f"bug{number}", count=count)
        for number, bug in enumerate(bugs.values())
    ]
    library = compile_kernels([right, *wrong], target, folder, *QUICKLY)
    found = [
        [complaint(kernel, library, workload, 0, given) for given in inputs]
        for kernel in (right, *wrong)
    ]
    assert not any(found[0]), found[0]
    assert dict(zip(bugs, map(any, found[1:]), strict=True)) == dict.fromkeys(bugs, True)


def allowed_outputs(
    workload: Workload, inputs: Mapping[str, np.ndarray]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The least and greatest values of each output, those of the latest inputs remembered: many
    kernels run on the same ones."""
    names = tuple(array.name for array in workload.operands)
    given = tuple((n, a.dtype, a.shape, a.tobytes()) for n, a in inputs.items())
    return _allowed_outputs(workload, names, given)


@lru_cache(maxsize=8)
def _allowed_outputs(
    workload: Workload, names: tuple[str, ...], given: tuple[tuple[str, Any, Any, bytes], ...]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    inputs = {name: np.frombuffer(data, kind).reshape(shape) for name, kind, shape, data in given}
    if matmul := workload.matmul:
        return {matmul.output.name: allowed(matmul, matmul.contract(inputs), inputs)}
    return allowed_of_program(workload.program, inputs)


def _wrong(output: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    wrong = ~agrees(output, low, high)
    if not wrong.any():
        return ""
    place = tuple(np.argwhere(wrong)[0].tolist())
    return f"{wrong.sum()} wrong; at {place} {output[place]} for {low[place]} to {high[place]}"

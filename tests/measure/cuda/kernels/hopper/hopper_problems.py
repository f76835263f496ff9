"""Small problems for Hopper kernels: few multiprocessors, so that blocks walk over many tiles."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tests.covering import aspects_of
from tests.kernels import rewritten
from tests.measure.cuda.emulator.planting import Case, in_turn
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tilewright.measure.cuda.emulator import INTERLEAVINGS, Emulator, Interleaving
from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.target import CudaTarget, cuda_target
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.space import NO_PREFERENCE, Space
from tilewright.spaces.workloads.workload import Workload

USUAL: dict[str, Value] = {
    "swap_ab": False,
    "block_m": 128,
    "block_n": 128,
    "schedule": "cooperative",
    "consumers": 2,
    "producer_registers": 40,
    "blocks_per_sm": 1,
    "cluster": "1x1",
    "depth": 64,
    "store_buffers": 1,
    "stages": 3,
    "in_flight": 0,
    "splits": 1,
    "merge": "add",
    "raster": "along_columns",
    "raster_group": 1,
}
TYPES = (
    ("bfloat16", "bfloat16"),
    ("float16", "float32"),
    ("float16", "float16"),
    ("bfloat16", "float32"),
    ("tfloat32", "float32"),
    ("float8_e4m3fn", "float32"),
    ("float8_e5m2", "bfloat16"),
)
START = "  if (threadIdx.x == 256) {\n    tw::tma_prefetch(&m_map);\n"
"""Where a kernel with two multiplying warpgroups starts."""
LATE = "  if (rank == 1) for (int i = 0; i < 20; i++) tw::sync_block();\n" + START
"""The same of a kernel whose blocks of rank 1 come late."""
EPILOGUES = ("", "relu(x + bias[n])", "x * scale[] + r[m, n]", "gelu(x) * rows[m]")


def small_target(multiprocessors: int = 2) -> CudaTarget:
    """A Hopper with next to no multiprocessors."""
    return replace(cuda_target("sm_90a"), multiprocessors=multiprocessors)


@dataclass(frozen=True)
class Problem:
    """A workload's parameters and how its schedule differs from the usual one."""

    parameters: dict[str, int | str]
    changes: dict[str, Value] = field(default_factory=dict)
    multiprocessors: int = 2

    @property
    def workload(self) -> Workload:
        return workload("matmul", **self.parameters)

    @property
    def kernel(self) -> Kernel:
        target = small_target(self.multiprocessors)
        template = Hopper(self.workload, target)
        space = Space(self.workload, target, [template])
        known = {decision.name: decision.values[0] for decision in template.decisions}
        values = {**known, **USUAL, **self.changes}
        return space.lower(Schedule("hopper", tuple(values.items())))

    def changed(self, entry: str, *changes: str) -> Kernel:
        """The kernel with another entry, and texts that must be in it replaced, each by the one
        after it."""
        kernel = self.kernel
        body = kernel.source.body
        for old, new in zip(changes[::2], changes[1::2], strict=True):
            assert old in body, old
            body = body.replace(old, new)
        return rewritten(kernel, body, entry)


def drawn(
    count: int,
    seed: int,
    each: int = 4,
    multiprocessors: Sequence[int] = (1, 2, 4),
    given: Mapping[str, Value] | None = None,
    deeper: int = 1,
) -> list[tuple[Workload, Schedule, Kernel]]:
    """``count`` random schedules, ``each`` of a random problem with tails of all kinds; all have
    the decisions ``given``, where a problem has such schedules, and sums ``deeper`` times as long
    as usual."""
    generator = np.random.default_rng(seed)
    found: list[tuple[Workload, Schedule, Kernel]] = []
    while len(found) < count:
        made = _random_workload(generator, deeper)
        target = small_target(int(generator.choice(multiprocessors)))
        assert Hopper.refuses(made, target) is None
        space = Space(made, target, [Hopper(made, target)])
        schedules = [space.schedule(row) for row in sample(space, generator, each, given or {})]
        found += [(made, schedule, space.lower(schedule)) for schedule in schedules]
    return found


def sample(
    space: Space, generator: np.random.Generator, count: int, given: Mapping[str, Value]
) -> np.ndarray:
    """Up to ``count`` random rows of ``space`` with the decisions ``given``."""
    decisions = space.templates["hopper"].decisions
    columns = [i for i, decision in enumerate(decisions, start=1) if decision.name in given]
    values = [decisions[i - 1].values.index(given[decisions[i - 1].name]) for i in columns]
    wishes = np.full((count * (16 if given else 1), space.width), NO_PREFERENCE, dtype=np.int32)
    wishes[:, columns] = values
    made = space.complete(wishes, generator)
    return made[(made[:, columns] == values).all(axis=1)][:count]


def _random_workload(generator: np.random.Generator, deeper: int) -> Workload:
    source, result = TYPES[generator.integers(len(TYPES))]
    layouts = {name: str(generator.choice(["row", "col"])) for name in "abc"}
    m = int(generator.choice([8, 16, 40, 72, 128, 200, 264, 328]))
    n = int(generator.choice([8, 48, 136, 200, 256, 392]))
    k = int(generator.choice([8, 64, 120, 200, 264])) * deeper
    if source.startswith(("float8", "tfloat")):
        layouts |= {"a": "row", "b": "col"}
        k = -(-k // 16) * 16
    # what no operand's rows are as long as need not be a multiple of 8
    if (layouts["a"], layouts["b"]) == ("row", "col"):
        m, n = m - int(generator.integers(8)), n - int(generator.integers(8))
    elif (layouts["a"], layouts["b"]) == ("col", "row"):
        k -= int(generator.integers(8))
    return workload(
        "matmul",
        m=m,
        n=n,
        k=k,
        dtype=source,
        out=result,
        epilogue=str(generator.choice(EPILOGUES)),
        **layouts,
    )


def check_drawn(
    emulator: Emulator, some: Sequence[tuple[Workload, Schedule, Kernel]], seed: int
) -> None:
    """All kernels agree with the reference."""
    emulator.build([kernel for *_, kernel in some])
    results = [(w, s, in_turn(emulator, (w, k), turn, seed)) for turn, (w, s, k) in enumerate(some)]
    failures = [f"{w} {s}: {r.error_text}" for w, s, r in results if r.error_kind is not None]
    assert not failures, "\n".join(failures)


class ProblemContract(KernelContract):
    """Kernels are those of problems; a bug is a problem, what is replaced wherever it stands, by
    what, and so on."""

    orders = (*INTERLEAVINGS, *(Interleaving("random", seed) for seed in range(3, 7)))

    def aspects(self, name: str, case: Problem) -> Iterable[Hashable]:
        return aspects_of((case.parameters, case.changes))

    def case(self, name: str) -> Case:
        problem = {**self.cases, **self.broken}[name]
        return problem.workload, problem.kernel

    def planted(self, name: str) -> Case:
        problem, *changes = self.bugs[name]
        return problem.workload, problem.changed(f"bug_{list(self.bugs).index(name)}", *changes)

"""Which tests are to see changes of which files, and how many changes are drawn there.

In the order of what an unseen change would cost: first what decides whether a kernel is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Area:
    """Files that are changed, ``draws`` times in all, and the tests of theirs; both as patterns
    below the root. Tests that ``unsteady`` selects (as pytest's ``-k`` does) are left out: they
    fail by themselves, on a machine that is busy with other things or as a user of a namespace.
    A test may take ``breath`` seconds more than a few times the usual; longer where a change has
    it compile the emulator."""

    name: str
    sources: tuple[str, ...]
    tests: tuple[str, ...]
    draws: int
    unsteady: str = ""
    breath: float = 20.0

    def files(self, root: Path) -> list[Path]:
        """The files to be changed, below ``root``, each once."""
        return list(_found(self.sources, root))

    def test_files(self, root: Path) -> list[Path]:
        """The tests to be run, below ``root``."""
        return list(_found(self.tests, root))


def _found(patterns: tuple[str, ...], root: Path) -> Iterator[Path]:
    files = (path for pattern in patterns for path in sorted(root.glob(pattern)))
    return iter(dict.fromkeys(path.relative_to(root) for path in files))


AREAS = (
    Area(
        "verdicts on CPU kernels",
        (
            "measure/cpu/native/child.c",
            "measure/cpu/native/compare.c",
            "measure/cpu/native/zone.c",
            "measure/cpu/native/server.c",
            "measure/cpu/native/plan.c",
            "measure/cpu/native/timer.c",
            "measure/cpu/native/protocol.c",
            "measure/cpu/problem.py",
        ),
        (
            "tests/measure/cpu/native/test_protocol.py",
            "tests/measure/cpu/native/test_rounds.py",
            "tests/measure/cpu/native/test_late_faults.py",
            "tests/measure/cpu/native/test_faults.py",
            "tests/measure/cpu/test_runner.py",
        ),
        70,
    ),
    Area(
        "threads",
        ("measure/cpu/native/threads/pool.c",),
        ("tests/measure/cpu/native/test_pool.py",),
        15,
    ),
    Area(
        "what is right",
        (
            "spaces/numerics/allowance.py",
            "spaces/numerics/interval.py",
            "spaces/numerics/numbers.py",
            "spaces/numerics/sums.py",
            "spaces/workloads/workload.py",
            "spaces/language/functions.py",
            "spaces/dtypes.py",
            "measure/drawing/*.py",
        ),
        (
            "tests/spaces/numerics/test_interval.py",
            "tests/spaces/numerics/test_allowance.py",
            "tests/measure/drawing/test_*.py",
            "tests/measure/test_verdicts.py",
            "tests/spaces/numerics/test_sums.py",
            "tests/spaces/test_dtypes.py",
            "tests/spaces/workloads/test_workload.py",
            "tests/spaces/epilogue/test_*.py",
        ),
        40,
    ),
    Area(
        "records",
        (
            "measure/records/record.py",
            "measure/records/ranking.py",
            "measure/records/fields.py",
            "measure/tables/rows.py",
            "measure/records/jsonl.py",
            "measure/tables/inserting.py",
            "measure/tables/likeness/distance.py",
            "measure/database.py",
            "measure/tables/reading.py",
            "measure/tables/importing.py",
            "measure/tables/described.py",
            "measure/tables/earlier.py",
            "measure/tables/engine.py",
            "measure/tables/opening.py",
            "measure/tables/best_known.py",
            "measure/tables/likeness/nearest.py",
            "measure/tables/likeness/related.py",
            "measure/tables/queries.py",
            "measure/records/run.py",
            "measure/records/plausibility.py",
            "measure/records/measurement.py",
        ),
        (
            "tests/measure/records/test_fields.py",
            "tests/measure/records/test_plausibility.py",
            "tests/measure/databases/test_read_only.py",
            "tests/measure/databases/test_database.py",
            "tests/measure/databases/test_migrations.py",
            "tests/measure/databases/test_refusals.py",
            "tests/measure/databases/test_exports.py",
            "tests/measure/databases/test_postgresql.py",
        ),
        35,
    ),
    Area(
        "builds and runs",
        (
            "measure/executor.py",
            "measure/failures.py",
            "measure/retrying.py",
            "measure/timing.py",
            "measure/cpu/runner.py",
            "measure/cpu/builder.py",
            "measure/cpu/compilation.py",
            "measure/host/cache.py",
            "measure/cpu/binaries.py",
        ),
        (
            "tests/measure/test_timing.py",
            "tests/measure/test_failures.py",
            "tests/measure/test_retrying.py",
            "tests/measure/host/test_*.py",
            "tests/measure/test_executor.py",
            "tests/measure/cpu/native/test_rounds.py",
            "tests/measure/cpu/test_compilation.py",
            "tests/measure/cpu/test_b*.py",
            "tests/measure/cpu/test_runner.py",
            "tests/measure/cpu/native/test_faults.py",
        ),
        30,
        unsteady="another_user",
    ),
    Area(
        "mappings and layouts",
        (
            "spaces/algebra/mapping*.py",
            "spaces/algebra/layout.py",
            "spaces/algebra/index.py",
            "spaces/space/*.py",
            "spaces/rules/judge.py",
            "spaces/schedule.py",
        ),
        (
            "tests/spaces/algebra/test_*.py",
            "tests/spaces/space/test_*.py",
            "tests/spaces/rules/test_judge.py",
            "tests/spaces/test_schedule.py",
        ),
        35,
    ),
    Area(
        "tuning",
        (
            "scheduler/tuning/pace.py",
            "scheduler/tuning/scoreboard.py",
            "scheduler/limits.py",
            "scheduler/strategies/history.py",
            "scheduler/strategies/evolutionary.py",
            "scheduler/tuning/tuner.py",
            "scheduler/tuning/task.py",
            "scheduler/tuning/loop.py",
            "scheduler/tuning/transfer.py",
            "scheduler/strategies/trust.py",
            "scheduler/tuning/claims.py",
            "scheduler/suites/allocation.py",
            "scheduler/suites/objective.py",
            "scheduler/suites/shared_model.py",
            "scheduler/suites/suite.py",
            "scheduler/suites/tuner.py",
        ),
        (
            "tests/scheduler/tuning/test_pace.py",
            "tests/scheduler/tuning/test_scoreboard.py",
            "tests/scheduler/test_limits.py",
            "tests/scheduler/tuning/test_tuner.py",
            "tests/scheduler/strategies/test_search.py",
            "tests/scheduler/tuning/test_transfer.py",
            "tests/scheduler/strategies/test_trust.py",
            "tests/scheduler/tuning/test_claims.py",
            "tests/scheduler/suites/test_allocation.py",
            "tests/scheduler/suites/test_*.py",
        ),
        30,
    ),
    Area(
        "functions",
        (
            "scheduler/functions/arrays.py",
            "scheduler/best.py",
            "scheduler/query.py",
            "scheduler/functions/caller.*",
            "scheduler/functions/cpu_function.py",
            "scheduler/machine.py",
        ),
        (
            "tests/scheduler/test_query.py",
            "tests/scheduler/functions/test_arrays.py",
            "tests/scheduler/functions/test_caller.py",
            "tests/scheduler/test_best*.py",
        ),
        15,
    ),
    Area(
        "processes",
        (
            "measure/cpu/keeper.*",
            "measure/cpu/native/ending/reap.c",
            "scheduler/functions/launcher.*",
        ),
        (
            "tests/measure/cpu/test_keeper.py",
            "tests/measure/cpu/test_orphans.py",
            "tests/scheduler/functions/test_launcher.py",
        ),
        15,
    ),
    Area("predictions", ("costmodel/**/*.py",), ("tests/costmodel/**/test_*.py",), 10),
    Area(
        "CPU templates",
        ("spaces/cpu/**/*.py", "spaces/numerics/polynomials.py"),
        (
            "tests/spaces/cpu/test_*.py",
            "tests/spaces/cpu/vectors/test_vector_math.py",
            "tests/spaces/test_targets.py",
        ),
        12,
    ),
    Area(
        "windows on CPUs",
        ("spaces/cpu/windows/*.py",),
        ("tests/spaces/cpu/windows/test_*.py",),
        10,
        breath=60.0,
    ),
    Area(
        "short windows on CPUs",
        ("spaces/cpu/winograd/*.py", "spaces/derivation/products/short_windows.py"),
        (
            "tests/spaces/cpu/winograd/test_*.py",
            "tests/spaces/derivation/products/test_short_windows.py",
        ),
        10,
        breath=60.0,
    ),
    Area(
        "kept axes on CPUs",
        ("spaces/cpu/kept/*.py",),
        ("tests/spaces/cpu/kept/test_*.py",),
        8,
        breath=60.0,
    ),
    Area(
        "chains on CPUs",
        ("spaces/cpu/chained/*.py",),
        ("tests/spaces/cpu/chained/test_*.py",),
        10,
        breath=60.0,
    ),
    Area(
        "emulated threads and barriers",
        (
            "measure/cuda/emulator/native/scheduler.cpp",
            "measure/cuda/emulator/native/barriers.cpp",
            "measure/cuda/emulator/native/report.cpp",
        ),
        (
            "tests/measure/cuda/emulator/test_emulated_memory.py",
            "tests/measure/cuda/emulator/test_emulated_clusters.py",
            "tests/measure/cuda/emulator/test_planted_bugs.py",
            "tests/measure/cuda/emulator/test_verify.py",
        ),
        10,
        breath=240.0,
    ),
    Area(
        "emulated memory",
        (
            "measure/cuda/emulator/memory.py",
            "measure/cuda/emulator/native/memory.cpp",
            "measure/cuda/emulator/native/visibility.cpp",
            "measure/cuda/emulator/native/banks.cpp",
        ),
        (
            "tests/measure/cuda/emulator/test_emulated_memory.py",
            "tests/measure/cuda/emulator/test_emulated_clusters.py",
            "tests/measure/cuda/emulator/test_verify.py",
        ),
        10,
        breath=240.0,
    ),
    Area(
        "emulated matrices",
        ("measure/cuda/emulator/native/matrix.cpp", "measure/cuda/emulator/native/numbers.cpp"),
        (
            "tests/measure/cuda/emulator/test_emulated_matrices.py",
            "tests/measure/cuda/emulator/test_numbers.py",
        ),
        8,
        breath=240.0,
    ),
    Area(
        "emulated copies of tensors",
        ("measure/cuda/emulator/native/tensor.cpp",),
        ("tests/measure/cuda/emulator/test_emulated_tma.py",),
        6,
        breath=240.0,
    ),
    Area(
        "the emulator's process",
        (
            "measure/cuda/emulator/native/main.cpp",
            "measure/cuda/emulator/*.py",
        ),
        (
            "tests/measure/cuda/emulator/test_emulat*.py",
            "tests/measure/cuda/emulator/test_verify.py",
        ),
        8,
        breath=240.0,
    ),
    Area(
        "intrinsics",
        ("spaces/cuda/intrinsics/host.h", "spaces/cuda/intrinsics/*.py"),
        (
            "tests/spaces/cuda/test_intrinsics.py",
            "tests/measure/cuda/emulator/test_emulated_*.py",
        ),
        8,
        breath=240.0,
    ),
    Area(
        "GPU launches",
        (
            "measure/cuda/launching.py",
            "measure/cuda/server.py",
            "measure/cuda/session.py",
            "measure/cuda/buffers.py",
            "measure/cuda/problems.py",
            "measure/cuda/runner.py",
            "measure/cuda/child.py",
        ),
        (
            "tests/measure/cuda/test_several_launches.py",
            "tests/measure/cuda/test_driver.py",
            "tests/measure/cuda/test_runner.py",
        ),
        5,
    ),
    Area(
        "rows on GPUs",
        ("spaces/cuda/rows/*.py",),
        ("tests/spaces/cuda/rows/test_*.py", "tests/measure/cuda/kernels/test_rows_kernels.py"),
        8,
    ),
    Area(
        "maps on GPUs",
        ("spaces/cuda/maps/*.py", "spaces/cuda/scalar_*.py"),
        (
            "tests/spaces/cuda/maps/test_*.py",
            "tests/spaces/cuda/test_scalar_*.py",
            "tests/measure/cuda/kernels/test_map_kernels.py",
        ),
        8,
    ),
    Area(
        "thin products on GPUs",
        ("spaces/cuda/thin/*.py",),
        ("tests/spaces/cuda/thin/test_*.py", "tests/measure/cuda/kernels/test_thin_kernels.py"),
        8,
    ),
    Area(
        "blocked products on GPUs",
        ("spaces/cuda/simt/*.py", "spaces/cuda/mma/*.py", "spaces/cuda/blocks/*.py"),
        (
            "tests/spaces/cuda/simt/test_*.py",
            "tests/spaces/cuda/mma/test_*.py",
            "tests/spaces/cuda/test_tiles.py",
            "tests/measure/cuda/kernels/test_block_kernels.py",
            "tests/measure/cuda/kernels/test_convolutions.py",
            "tests/measure/cuda/kernels/test_templates_on_emulator.py",
        ),
        10,
    ),
    Area(
        "Hopper's products",
        ("spaces/cuda/hopper/**/*.py",),
        (
            "tests/spaces/cuda/test_hopper_space.py",
            "tests/measure/cuda/kernels/hopper/test_hopper.py",
            "tests/measure/cuda/kernels/hopper/test_hopper_exchange.py",
        ),
        10,
    ),
    Area(
        "judging on GPUs",
        ("measure/cuda/trusted/*.py",),
        ("tests/measure/cuda/trusted/test_*.py",),
        8,
        breath=60.0,
    ),
    Area(
        "segments of products",
        (
            "spaces/cpu/windows/segments.py",
            "spaces/cuda/blocks/segments.py",
            "spaces/cuda/hopper/segments.py",
        ),
        (
            "tests/spaces/cpu/windows/test_segments.py",
            "tests/measure/cuda/kernels/test_segments.py",
        ),
        8,
        breath=60.0,
    ),
)

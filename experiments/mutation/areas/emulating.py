"""Code that stands in for a GPU where there is none."""

from __future__ import annotations

from experiments.mutation.areas.area import Area

AREAS = (
    Area(
        "emulated threads and barriers",
        (
            "measure/cuda/emulator/native/scheduler.cpp",
            "measure/cuda/emulator/native/fibers.cpp",
            "measure/cuda/emulator/native/blocks.cpp",
            "measure/cuda/emulator/native/barriers.cpp",
            "measure/cuda/emulator/native/report.cpp",
        ),
        (
            "tests/measure/cuda/emulator/test_emulated_faults.py",
            "tests/measure/cuda/emulator/test_emulated_threads.py",
            "tests/measure/cuda/emulator/test_emulated_blocks.py",
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
            "tests/measure/cuda/emulator/test_emulated_faults.py",
            "tests/measure/cuda/emulator/test_emulated_memory.py",
            "tests/measure/cuda/emulator/test_emulated_blocks.py",
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
            "tests/measure/cuda/emulator/products/test_emulated_matrices.py",
            "tests/measure/cuda/emulator/test_numbers.py",
        ),
        8,
        breath=240.0,
    ),
    Area(
        "emulated copies of tensors",
        ("measure/cuda/emulator/native/tensor.cpp",),
        ("tests/measure/cuda/emulator/transfers/test_emulated_tma.py",),
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
            "tests/measure/cuda/test_tables.py",
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
)

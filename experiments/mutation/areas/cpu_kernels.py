"""Code that writes kernels for CPUs."""

from __future__ import annotations

from experiments.mutation.areas.area import Area

AREAS = (
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
        ("spaces/cpu/windows/*.py", "spaces/cpu/windows/copies/*.py"),
        ("tests/spaces/cpu/windows/**/test_*.py",),
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
        "programs in stages",
        ("spaces/staged/*.py", "spaces/cpu/staged/*.py", "spaces/derivation/cutting.py"),
        ("tests/spaces/cpu/staged/test_*.py", "tests/spaces/derivation/test_cutting.py"),
        8,
        breath=60.0,
    ),
    Area("maps on CPUs", ("spaces/cpu/maps/*.py",), ("tests/spaces/cpu/maps/test_*.py",), 10),
)

"""Code that writes kernels for GPUs."""

from __future__ import annotations

from experiments.mutation.areas.area import Area

AREAS = (
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
            "tests/measure/cuda/kernels/blocks/test_block_kernels.py",
            "tests/measure/cuda/kernels/blocks/test_convolutions.py",
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
        "segments of products",
        (
            "spaces/cpu/windows/segments.py",
            "spaces/cuda/blocks/segments.py",
            "spaces/cuda/hopper/segments.py",
        ),
        (
            "tests/spaces/cpu/windows/test_segments.py",
            "tests/measure/cuda/kernels/blocks/test_segments.py",
        ),
        8,
        breath=60.0,
    ),
    Area(
        "pairs of products on Hopper",
        ("spaces/cuda/hopper_pairs/*.py", "spaces/cuda/hopper/storing/*.py"),
        (
            "tests/spaces/cuda/hopper_pairs/test_*.py",
            "tests/measure/cuda/kernels/hopper/test_hopper_pairs.py",
        ),
        8,
    ),
)

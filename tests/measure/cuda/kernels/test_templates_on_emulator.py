"""Random schedules of all CUDA templates, on random problems, against the float64 reference.

Every kernel runs on the emulator in eager, lazy and two random orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from tilewright.scheduler.verification import draw, emulate
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target

SCHEDULES, MANY = 40, 180
GROUPS = 5
SLOW = pytest.mark.slow
TARGETS = ("cuda:sm_80", "cuda:sm_86", "cuda:sm_89", "cuda:sm_90a")
# dtype of A and B, that of C
TYPES = (
    ("float32", "float32"),
    ("float64", "float64"),
    ("tfloat32", "float32"),
    ("float16", "float16"),
    ("float16", "float32"),
    ("bfloat16", "bfloat16"),
    ("bfloat16", "float32"),
    ("int8", "int32"),
    ("float8_e4m3fn", "float32"),
    ("float8_e5m2", "float16"),
    ("float8_e4m3fn", "bfloat16"),
)
EPILOGUES = (
    "",
    "relu(x + bias[n])",
    "gelu(x + bias[n])",
    "x * scale[] + residual[m, n]",
    "silu(x) * rows[m]",
    "select(x < bias[n], exp2(x * 0.1), log(abs(x) + 1)) + floor(x * 4)",
)
ARITHMETIC = ("", "x * scale[] + residual[m, n]")  # functions are float32
MOST = 3 * 2**20  # multiply-adds of a problem


def extents(generator: np.random.Generator, few: bool) -> tuple[int, int, int]:
    """Odd ones, ones that TMA can take, and a few small ones; with ``few`` rows or columns."""
    while True:
        step = int(generator.choice([1, 8, 16, 64]))
        m, n, k = (int(2 ** generator.uniform(0, 8.6) // step + 1) * step for _ in range(3))
        if few:
            m = int(generator.integers(1, 17))
            m, n = (m, n) if generator.random() < 0.5 else (n, m)
        if m * n * k <= MOST:
            return m, n, k


def problem(generator: np.random.Generator, number: int) -> Space:
    """A random problem; consecutive numbers have other types and targets."""
    source, result = TYPES[number % len(TYPES)]
    # Half of the problems are for the newest GPU, which most templates serve.
    name = TARGETS[-1] if number // len(TYPES) % 2 else generator.choice(TARGETS)
    if source.startswith("float8") and name not in TARGETS[2:]:
        name = TARGETS[-1]
    m, n, k = extents(generator, few=number % 6 == 0)
    layouts = {operand: str(generator.choice(["row", "col"])) for operand in "abc"}
    epilogue = str(generator.choice(ARITHMETIC if source == "float64" else EPILOGUES))
    if source == "int8":
        epilogue = ""
    made = workload("matmul", m=m, n=n, k=k, dtype=source, out=result, epilogue=epilogue, **layouts)
    return space_for(made, detect_target(name))


@cache
def samples(
    count: int = SCHEDULES, each: int = 1, seed: int = 2033
) -> list[tuple[Space, list[Schedule]]]:
    """Problems, and ``each`` schedules to check for each of their templates, ``count`` together."""
    generator = np.random.default_rng(seed)
    found: list[tuple[Space, list[Schedule]]] = []
    while sum(len(schedules) for _, schedules in found) < count:
        space = problem(generator, len(found))
        schedules = draw(space, each * len(space.templates), int(generator.integers(2**31)))
        found.append((space, schedules))
    return found


def test_the_samples_cover_what_there_is():
    schedules = [schedule for _, some in samples() for schedule in some]
    assert len(schedules) >= SCHEDULES
    templates = Counter(schedule.template for schedule in schedules)
    assert templates.keys() == {"hopper", "mma", "simt", "thin"}
    assert min(templates.values()) >= SCHEDULES / 10
    parameters = [dict(space.workload.parameters) for space, _ in samples()]
    for name in ("a", "b", "c"):
        assert {p[name] for p in parameters} == {"row", "col"}
    assert {(p["dtype"], p["out"]) for p in parameters} == set(TYPES)
    assert len({p["epilogue"] for p in parameters}) == len(set(EPILOGUES))
    assert {space.target.name for space, _ in samples()} == {t[5:] for t in TARGETS}


def failures(some: Sequence[tuple[Space, list[Schedule]]], seed: int) -> list[str]:
    return [
        f"{space.workload} {space.target.name} {verdict}"
        for space, schedules in some
        for verdict in emulate(space, schedules, seed=seed)
        if not verdict.right
    ]


@pytest.mark.parametrize("group", [0, 1, *(pytest.param(n, marks=SLOW) for n in range(2, GROUPS))])
def test_random_schedules_agree_with_the_reference(group):
    found = failures(samples()[group::GROUPS], group)
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10))
def test_many_more_schedules_agree_with_the_reference(seed):
    found = failures(samples(MANY, 3, seed), seed)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("words", "target"),
    [
        ("m=130 n=72 k=64 dtype=float16 lda=80 ldb=96 ldc=88", "cuda:sm_90a"),
        ("m=3 n=70 k=96 dtype=float16 lda=98 ldb=99 b=col ldc=76", "cuda:sm_80"),
        ("m=40 n=33 k=64 c=col lda=67 ldb=40 ldc=41 epilogue=relu(x)", "cuda:sm_80"),
    ],
)
def test_matrices_may_be_slices_of_larger_ones(words, target):
    space = space_for(workload(f"matmul {words}"), detect_target(target))
    assert not failures([(space, draw(space, 2 * len(space.templates)))], 0)

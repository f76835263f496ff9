"""How often the rules let a Hopper schedule pass that the compiler then refuses."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.records.measurement import Candidate, Job
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import NO_PREFERENCE, Space
from tilewright.spaces.target import detect_target

TARGET = detect_target("cuda:sm_90a")
PROBLEMS = (
    {"m": 8192, "n": 8192, "k": 8192, "dtype": "bfloat16"},
    {"m": 4096, "n": 4096, "k": 4096, "dtype": "float16", "epilogue": "gelu(x + bias[n])"},
    {"m": 4096, "n": 4096, "k": 4096, "dtype": "float8_e4m3fn", "out": "bfloat16", "b": "col"},
    {"m": 64, "n": 6144, "k": 4096, "dtype": "bfloat16", "b": "col"},
    {"m": 2048, "n": 2040, "k": 2048, "dtype": "float16", "a": "col", "c": "col"},
)


def hopper_candidates(space: Space, count: int, seed: int) -> list[Candidate]:
    """Distinct random schedules of the Hopper template."""
    wishes = np.full((2 * count, space.width), NO_PREFERENCE, dtype=np.int32)
    wishes[:, 0] = list(space.templates).index("hopper")
    drawn = map(space.schedule, space.complete(wishes, np.random.default_rng(seed)))
    schedules = [s for s in dict.fromkeys(drawn) if s.template == "hopper"][:count]
    job = Job("test", space.workload, TARGET)
    return [Candidate(job, s, space.lower(s)) for s in schedules]


def surprises(count: int) -> tuple[int, Counter[str]]:
    """Kernels compiled, and how often the compiler refused one and why."""
    builder, built = NvrtcBuilder(TARGET, jobs=2), 0
    reasons: Counter[str] = Counter()
    try:
        for seed, parameters in enumerate(PROBLEMS):
            space = space_for(workload("matmul", **parameters), TARGET)
            made = hopper_candidates(space, count // len(PROBLEMS), seed)
            for outcome in builder.build(made):
                built += 1
                if outcome.error_kind is not None:
                    digits = str.maketrans("", "", "0123456789")
                    text = f"{parameters['dtype']}: {outcome.error_text.translate(digits)}"
                    reasons[text[:120]] += 1
                    print(outcome.candidate.schedule, outcome.error_text[:200])
    finally:
        builder.close()
    return built, reasons


@pytest.mark.parametrize("count", [10, pytest.param(300, marks=pytest.mark.slow)])
def test_at_most_one_schedule_in_twenty_surprises(count):
    built, reasons = surprises(count)
    rate = sum(reasons.values()) / built
    print(f"{built} Hopper kernels compiled, {rate:.1%} refused: {dict(reasons)}")
    assert built == count
    assert rate <= 0.05, reasons

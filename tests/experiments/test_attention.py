"""The comparison of attention on a GPU: its cases, and the schedules that it always tries."""

from __future__ import annotations

import pytest

from experiments.attention.cases import CASES, FIXED, completed
from experiments.attention.flash3.library import why_not
from experiments.attention.similar import best_of_similar
from spaces.cuda.chained.template import CudaChained
from spaces.cuda.chained_hopper.template import ChainedHopper
from spaces.cuda.target import cuda_target
from spaces.space import Space
from spaces.template import Template

TARGET = cuda_target("sm_90a")


def valid(template: type[Template], case) -> int:
    """How many of the fixed schedules a case can be computed by."""
    made = template(case.workload, TARGET)
    space = Space(case.workload, TARGET, [made])
    schedules = (completed(made, values) for values in FIXED[made.name])
    return sum(bool(s) and space.why_not(s) is None for s in schedules)


@pytest.mark.parametrize("case", CASES[:15], ids=lambda case: case.name)
def test_each_case_has_schedules_that_are_tried(case):
    assert CudaChained.refuses(case.workload, TARGET) is None
    assert valid(CudaChained, case) >= 3
    if case.queries > 1 and not ChainedHopper.refuses(case.workload, TARGET):
        assert valid(ChainedHopper, case) >= 4


def test_ten_operators_are_compared_at_each_length():
    assert len({case.name for case in CASES}) == len(CASES) == 8 * 10 + 12


def test_schedules_of_the_most_similar_case_come_first():
    def row(mark):
        return {"templates": {"chained": {"tried": [{"us": 1.0, "values": {"keys": mark}}]}}}

    names = (
        "causal b1 h32/32 d128 16384",
        "causal alibi b1 h32/32 d128 512",
        "plain b1 h32/8 d128 1x256",
    )
    results = {f"{name} bfloat16": row(n) for n, name in enumerate(names)}
    (case,) = (c for c in CASES if c.name == "causal alibi b1 h32/32 d128 2048 bfloat16")
    found = best_of_similar(case, results)
    assert [values["keys"] for values in found["chained"]] == [1, 0, 2]


def test_flash_attention_3_is_asked_for_what_was_built_alone(tmp_path):
    (tmp_path / "prefill_128.so").touch()
    found = {case.name: why_not(case, tmp_path) for case in CASES}
    assert found["causal b1 h32/8 d128 4096 bfloat16"] == ""
    assert found["causal alibi b1 h32/32 d128 4096 bfloat16"] == "not built for causal alibi"
    assert found["plain b1 h32/32 d128 4096 float16"] == "not built for float16"
    assert found["plain b1 h32/8 d128 1x4096 bfloat16"].endswith("decode_128.so")
    assert found["plain b1 h64/64 d64 4096 bfloat16"].endswith("prefill_64.so")

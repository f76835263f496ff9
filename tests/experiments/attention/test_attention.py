"""The comparison of attention on a GPU: its cases, and the schedules that it always tries."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiments.attention.cases import CASES, FIXED, WINDOW, AttentionCase, completed
from experiments.attention.compilers.plain import plain_text
from experiments.attention.flash3.library import why_not
from experiments.attention.similar import best_of_similar
from tilewright.spaces.cuda.chained.template import CudaChained
from tilewright.spaces.cuda.chained_hopper.template import ChainedHopper
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.space import Space
from tilewright.spaces.template import Template

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


@pytest.mark.parametrize("case", CASES[-4:], ids=lambda case: case.name)
def test_float8_has_schedules_of_its_own(case):
    made = CudaChained(case.workload, TARGET)
    space = Space(case.workload, TARGET, [made])
    own = [v for v in FIXED["chained"] if "weight_dtype" in v]
    found = [s for v in own if (s := completed(made, v)) and space.why_not(s) is None]
    assert len(found) >= 4 * (case.queries > 1)
    assert all(s.values["weight_dtype"] == case.dtype for s in found)
    other = CASES[0].workload
    assert not [v for v in own if completed(CudaChained(other, TARGET), v)]


def test_prefills_in_float8_have_schedules_by_wgmma():
    cases = [case for case in CASES if case.is_float8 and case.queries > 1]
    assert all(valid(ChainedHopper, case) >= 48 for case in cases)


def test_the_plain_text_for_compilers_is_attention():
    generator = torch.Generator().manual_seed(1)
    for form in ("", "causal", "causal alibi", "causal softcap", "causal softcap window"):
        case = AttentionCase(form, 2, 4, 2, 3, WINDOW + 40, 16, "float32")
        drawn = {n: torch.randn(s, generator=generator) for n, s in case.shapes.items()}
        arrays = {name: tensor.numpy() for name, tensor in drawn.items()}
        (wanted,) = evaluate(case.workload.program, arrays).values()
        assert np.abs(plain_text(case)(**drawn).numpy() - wanted).max() < 5e-4


def test_ten_operators_are_compared_at_each_length():
    assert len({case.name for case in CASES}) == len(CASES) == 8 * 10 + 17


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

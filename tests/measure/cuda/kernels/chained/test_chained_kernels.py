"""Chained kernels of a GPU on the emulator: all forms of attention, planted bugs, random ones."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.covering import few
from tests.measure.cuda.emulator.planting import Case, check_all_right, planted
from tests.measure.cuda.kernels.chained.chained_bugs import BROKEN, BUGS
from tests.measure.cuda.kernels.chained.chained_cases import (
    ALONE,
    CASES,
    H200,
    HELD,
    LATER,
    PLAIN,
    SPLIT,
    case,
    dtype_of,
)
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.chained_programs import FORMS, form, random_form
from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.measure.cuda.emulator import INTERLEAVINGS, Emulator
from tilewright.measure.cuda.emulator.verify import judged
from tilewright.measure.drawing.draw import one_draw
from tilewright.measure.drawing.interfaces import Draw
from tilewright.measure.drawing.programs import ProgramDraw
from tilewright.spaces.cuda.chained.template import CudaChained
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import Program
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload


class TestChainedKernels(KernelContract):
    cases, broken, bugs = CASES, BROKEN, BUGS


def sampled(found: Program, count: int, seed: int) -> list[Case]:
    """Random schedules of a program; none of one that is refused."""
    work = Workload("program", (), found, "")
    if CudaChained.refuses(work, H200):
        return []
    space = Space(work, H200, [CudaChained(work, H200)])
    rows = space.sample(np.random.default_rng(seed), count)
    return [(work, space.lower(space.schedule(row))) for row in rows]


def random_cases(seeds: range) -> list[Case]:
    """A schedule of each random form that has a row with a key, and whose outputs are telling."""
    cases = []
    for seed in seeds:
        try:
            drawn = sampled(random_form(seed, ("float16", "bfloat16")[seed % 2]), 1, seed)
            cases += [each for each in drawn if one_draw(each[0], 0)]
        except InputError as refused:
            if not any(words in str(refused) for words in ("no element for any row", "cannot be")):
                raise
    return cases


@pytest.mark.parametrize("count", few(3, of=6))
def test_random_forms_agree(emulator, count):
    check_all_right(emulator, random_cases(range(count)))


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(100, 650, 50))
def test_many_random_forms_agree(emulator, begin):
    check_all_right(emulator, random_cases(range(begin, begin + 50)))


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(("i", "j"), [(1, 1), (1, 129), (17, 64), (64, 17), (129, 131)])
def test_forms_agree_at_all_lengths(emulator, name, i, j):
    if name == "pages" or "< 54" in FORMS[name] or "< 53" in FORMS[name]:
        j = min(j, 53)
    try:
        cases = sampled(form(name, dtype_of(name), i=i, j=j), 3, i)
    except InputError as refused:
        if "no element for any row" not in str(refused):
            raise
        return
    emulator.build([kernel for _, kernel in cases])
    for work, kernel in cases:
        result = judged(emulator, kernel, any_draw(work), INTERLEAVINGS)
        assert result.error_kind is None, result.error_text


def any_draw(work: Workload) -> Draw:
    """Inputs that tell right kernels from wrong ones; any, where none tell: a softmax of one key is
    one whatever its score."""
    try:
        return one_draw(work, 0)
    except InputError:
        return ProgramDraw(work, work.make_inputs(0))


def complaints(
    emulator: Emulator, name: str, inputs: dict[str, np.ndarray], **meant: np.ndarray
) -> list[str]:
    """Outputs of some schedules that are not what ``inputs``, changed to those ``meant``, allow."""
    cases = [case(form(name, dtype_of(name)), values) for values in (PLAIN, HELD, SPLIT, LATER)]
    work = cases[0][0]
    allowed = replace(one_draw(work, 0), inputs=inputs | meant).allowed()
    found = []
    for _, kernel in cases:
        outputs = emulator.run(kernel, inputs, INTERLEAVINGS[0]).outputs
        found += [
            n for n, (low, high) in allowed.items() if not agrees(outputs[n], low, high).all()
        ]
    return found


def inputs_of(name: str) -> dict[str, np.ndarray]:
    return dict(Workload("program", (), form(name, dtype_of(name)), "").make_inputs(0))


@pytest.mark.parametrize("scale", [1e4, -1e4, 0.0])
def test_scores_that_overflow_an_exponential_and_equal_ones_agree(emulator, scale):
    inputs = inputs_of("log of the sum")
    inputs["q"] = (inputs["q"] * 0 + scale).astype(np.float16)
    inputs["k"] = np.round(inputs["k"] * 2).astype(np.float16)
    assert complaints(emulator, "log of the sum", inputs) == []


def test_keys_that_a_bias_of_minus_infinity_hides_do_not_count(emulator):
    inputs = inputs_of("bias")
    inputs["bias"][:, :, ::3] = -np.inf
    inputs["bias"][:, 3, :50] = -np.inf
    assert complaints(emulator, "bias", inputs) == []


def test_a_page_beyond_its_table_is_no_wild_read(emulator):
    """Of the table's entries the nearest counts."""
    inputs = inputs_of("pages")
    inputs["t"] = np.array([[2**31 - 1, 0, -(2**31), 3], [8, 8, 99, 1]], np.int32)
    near = np.array([[8, 0, 0, 3], [8, 8, 8, 1]], np.int32)
    assert complaints(emulator, "pages", inputs, t=near) == []


@pytest.mark.parametrize("values", [PLAIN, HELD, ALONE])
def test_skipping_tiles_changes_no_bit(emulator, values):
    """Nor does taking part in all of them, with keys that none of a warp's rows see."""
    found = case(form("causal", dtype_of("causal"), i=70, j=90), values)
    skips = r"tile < own_last && tile \+ \d+ > own_first"
    every = planted(found, skips, "true", "every_tile")
    inputs = found[0].make_inputs(0)
    outputs = [emulator.run(k, inputs, INTERLEAVINGS[0]).outputs["y"] for _, k in (found, every)]
    np.testing.assert_array_equal(*outputs)


def test_lengths_beyond_the_keys_are_all_of_them_and_negative_ones_none(emulator):
    inputs = inputs_of("prefix lengths")
    inputs["n"] = np.array([2**31 - 1, -(2**31)], np.int32)
    near = np.array([53, 0], np.int32)
    assert complaints(emulator, "prefix lengths", inputs, n=near) == []


def test_kernels_compile_for_the_gpu_without_spills():
    """A second kernel that merges, too."""
    work = workload("attention", b=1, h=8, i=2048, j=2048, d=128, mask="causal", dtype="float16")
    template = CudaChained(work, H200)
    for values in (
        {"keys": 64, "warps": 4},
        {"query_storage": "registers", "keys": 64, "warps": 4},
        {"keys": 32, "warps": 4, "splits": 32, "merge": "early"},
    ):
        chosen = {**PLAIN, "columns": 128, **values}
        kernel = template.lower(Schedule("chained", tuple(chosen.items())))
        text = device_text(kernel.source.text) + kernel.source.text
        built = compile_cubin(text, "sm_90a", 120, lambda: False)
        assert built.cubin is not None, built.log[:2000]
        assert " 0 bytes spill stores" in built.log
        assert not re.search(r" [1-9]\d* bytes spill", built.log)

"""Chunked kernels of a GPU on the emulator: states that pass from chunk to chunk."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case, check_all_right, deferred
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.recurrent_programs import TEXTS, extents_of
from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.measure.cuda.emulator import INTERLEAVINGS, Emulator
from tilewright.spaces.cuda.chunked.template import CudaChunked
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

H200 = cuda_target("sm_90a")
HALF = "bfloat16"
CHUNKED = (
    "linear attention",
    "retention",
    "state space",
    "decays that are summed up",
    "before, with maps",
    "behind",
    "suffixes",
    "gates of input",
)
"""The programs whose decays all elements of a state share, and whose scores are sums."""

IN_ONE_SUM = ("linear attention, in one sum", "retention, in one sum")
"""Programs whose scores are sums of terms of the program, and no sums of their own."""


def recurrence(name: str, kind: str = HALF, **changes: int) -> Workload:
    extents = extents_of(name, **{"t": 75, "s": 75, "d": 19, **changes})
    return workload(TEXTS[name], **extents, dtype=kind)


def lowered(w: Workload, target: str = "sm_90a", **values: int) -> Case:
    """The kernel of decisions, else of the first ones."""
    template = CudaChunked(w, cuda_target(target))
    decided = {d.name: values.get(d.name, d.values[0]) for d in template.decisions}
    schedule = Schedule("chunked", tuple(decided.items()))
    reason = Space(w, cuda_target(target), [template]).why_not(schedule)
    assert reason is None, reason
    return w, template.lower(schedule)


@deferred
def case(name: str, kind: str = HALF, extents: dict[str, int] | None = None, **values: int) -> Case:
    return lowered(recurrence(name, kind, **(extents or {})), **values)


PAIRS = {"chunk": 32, "warps": 4}
WIDE = {"chunk": 32, "warps": 1, "fragments": 2, "stages": 3}
LONG = {"chunk": 64, "warps": 2}
VALUES = (PAIRS, WIDE, LONG, {"stages": 4})
PARTS = {"segments": 4}
LONGER = {"t": 107, "s": 107}
ALIGNED = {"t": 64, "s": 64, "d": 32, "e": 64}
CASES = {name: case(name, **VALUES[n % 4]) for n, name in enumerate(CHUNKED)}
CASES |= {
    f"{name}, float16": case(name, "float16", **VALUES[(n + 1) % 4])
    for n, name in enumerate(CHUNKED)
}
CASES |= {
    "pairs of warps": case("state space", **PAIRS),
    "whole tiles": case("state space", HALF, ALIGNED, chunk=32, warps=2, fragments=2),
    "deep": case("linear attention", HALF, {"d": 130, "e": 32}, **LONG),
    "segments": case("gates of input", HALF, LONGER, **PARTS),
    "two segments": case("linear attention", "float16", chunk=16, warps=1, fragments=2, segments=2),
    "segments, behind": case("behind", HALF, LONGER, segments=4, stages=3),
    "in one sum": case("linear attention, in one sum", **PAIRS),
    "in one sum, with decays": case("retention, in one sum", **LONG),
    "one chunk": case("retention", HALF, {"t": 9, "s": 9}),
}
PLAIN, SHARED, NARROW = "linear attention", "pairs of warps", "gates of input, float16"
BACK, LATER, SPLIT, FLAT = "behind", "before, with maps", "segments", "in one sum"
LAST = r"((?:.*\n)*.*)"
"""Before the last match."""
BUGS = {  # what is broken: kernel, pattern, replacement of its first occurrence
    "terms after a position count": (PLAIN, r"column \+ e <= row", "column + e <= row + 1"),
    "its own term does not count": (PLAIN, r"column \+ e <= row", "column + e < row"),
    "its own term counts": (LATER, r"column \+ e < row", "column + e <= row"),
    "the first has terms": (LATER, r"point > 0 \?", "true ?"),
    "hidden infinities are added": (PLAIN, r"odd != odd, 0", "false, 0"),
    "hidden infinities are added again": (PLAIN, r"term < row \+ 1", "term < 16"),
    "hidden infinities of another term": (PLAIN, r"\(term \^", "((term + 1) ^"),
    "a state is not zero at first": (
        PLAIN,
        r"float state\[1\]\[4\]\[4\] = \{\};",
        "float state[1][4][4]; for (int n = 0; n < 16; n++) state[0][n / 4][n % 4] = 1.0f;",
    ),
    "a state passes to the next head": (PLAIN, r"batch = own / 1", "batch = 0"),
    "the state is updated before it is read": (
        PLAIN,
        r"(    float sums\[(?:.*\n)*?)(    if \(chunk \+ 1 < last\) \{\n(?:.*\n)*?    \}\n)",
        r"\2\1",
    ),
    "the state is rounded": (PLAIN, r"rest\[0\]\[2 \* t1\], rest\[0\]\[2 \* t1 \+ 1\]", "0, 0"),
    "positions of the chunk before": (
        PLAIN, rf"{LAST}first_point = next \* 32", r"\1first_point = chunk * 32"
    ),
    "the last positions": (PLAIN, r"point < 75", "point < 74"),
    "a stage is read before it is full": (
        PLAIN,
        r"tw::cp_async_wait<0>\(\);\n    tw::sync_block\(\);",
        "tw::sync_warp();",
    ),
    "a stage is filled while it is read": (PLAIN, rf"{LAST}next % 2", r"\1chunk % 2"),
    "scores are read before they are there": (
        PLAIN, rf"{LAST}tw::sync_block\(\);", r"\1tw::sync_warp();"
    ),
    "scores of other warps": (PLAIN, r"\(warp / 2 \* 1 \+ f\)", "(warp % 2 + f)"),
    "columns of the first warp": (PLAIN, rf"{LAST}first_column \+ warp \* 16", r"\1first_column"),
    "a decay of the wrong row": (SHARED, r"(_row = .*)\(row\)", r"\1(row ^ 1)"),
    "a decay of the wrong term": (SHARED, r"(\(term_.*)\(column\)", r"\1(column ^ 2)"),
    "a decay of the wrong chunk": (SHARED, r"\(chunk \+ 1 \+ 1\) \* 32", "(chunk + 1) * 32"),
    "numbers are overwritten": (SHARED, r"\(chunk \+ 1\) % 2 \*", "(chunk % 2) *"),
    "no weight in a chunk": (SHARED, r" \* weight_term\[e\]", ""),
    "no weight in a state": (SHARED, r" \* weight\[i\]\)", ")"),
    "nothing is kept": (SHARED, r"\*= kept;", "*= 0.0f;"),
    "nothing decays": (SHARED, r"\*= kept;", "*= 1.0f;"),
    "the state is read as it was stored": (SHARED, r"\*= scale\[h\]", "*= 1.0f"),
    "the scale of the first chunk": (SHARED, r"greatest = next;", ""),
    "the least exponent": (SHARED, r"tw_most\(most, ", "tw_least(most, "),
    "what joins the state is as large as it is": (SHARED, r"- next\)\)", "))"),
    "growth of a lane alone": (NARROW, r"\+= before;", "+= 0.0f;"),
    "growth of the chunks before": (NARROW, r"end = tw::shuffle\(.*\);", "end = 0.0f;"),
    "growth of other lanes": (NARROW, r"tw_summed_before\(end, lane\)", "end"),
    "the other row of a state": (NARROW, r"down\[f\]\[h\]", "down[f][1 - h]"),
    "the other column of a sum": (NARROW, r"\(lane % 4 \* 2 \+ e\) \* 4", "lane"),
    "the last segment before": (SPLIT, r"before < segment", "before + 1 < segment"),
    "its own segment": (SPLIT, r"before < segment", "before <= segment"),
    "the state of another block": (SPLIT, r"(before \* \d+) \+ own", r"\1"),
    "the exponent of another block": (SPLIT, r"(\(before \* \d+) \+ own\) \* 2", r"\1) * 2"),
    "segments do not grow": (SPLIT, r"gone \+= end;", ""),
    "states are not scaled as they join": (SPLIT, r"kept = .*- next\) \+ grown.*;", "kept = 1.0f;"),
    "what joins a state is not scaled": (SPLIT, r"added = .*other - next.*;", "added = 1.0f;"),
    "the exponent of a segment alone": (SPLIT, r"(added = .*other.*;\n +)greatest = next;", r"\1"),
    "a chunk too few": (SPLIT, r"tw_least\(first \+ 2", "tw_least(first + 1"),
    "the last chunk of a segment is left out": (SPLIT, r"chunk < last", "chunk + 1 < last"),
    "scores are rounded": (FLAT, r"(store_shared\(weighed.*), left\)", r"\1, 0u)"),
    "what rounding leaves of scores goes astray": (FLAT, r"(weighed \+ \d+ \+) 2048", r"\1 0"),
    "what rounding leaves of scores is read twice": (
        FLAT, rf"{LAST}weighed \+ \d+ \+ 2048", r"\1weighed + 2048"
    ),
    "the wrong way": (BACK, r"-37 \* s0", "37 * s0"),
}  # fmt: skip


class TestChunked(KernelContract):
    cases, bugs = CASES, BUGS


def space_of(w: Workload) -> Space:
    return Space(w, H200, [CudaChunked(w, H200)])


@pytest.mark.parametrize("name", ["state space", "gates of input"])
def test_random_schedules_agree(emulator: Emulator, name: str) -> None:
    space = space_of(recurrence(name))
    rows = space.sample(np.random.default_rng(3), 3)
    check_all_right(emulator, [(space.workload, space.lower(space.schedule(r))) for r in rows])


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CHUNKED, *IN_ONE_SUM])
def test_many_random_schedules_agree(emulator: Emulator, name: str) -> None:
    for kind in (HALF, "float16")[: 1 + (name in CHUNKED)]:
        space = space_of(recurrence(name, kind, t=131, s=131, e=72))
        rows = space.sample(np.random.default_rng(5), 8)
        check_all_right(emulator, [(space.workload, space.lower(space.schedule(r))) for r in rows])


@pytest.mark.parametrize("scale", [0.0, 1e-3, 30.0, 300.0])
@pytest.mark.parametrize("name", ["state space", "decays that are summed up", "gates of input"])
def test_decays_of_any_size(emulator: Emulator, name: str, scale: float) -> None:
    """Powers that grow, vanish, and come back after they were too small for the state.

    Where powers are infinite of either sign, so are sums, or NaN.
    """
    w, kernel = lowered(recurrence(name, **LONGER), **(PARTS if scale == 30 else PAIRS))
    inputs = w.make_inputs(0)
    own = "a" if "a" in inputs else "l"
    inputs[own] = (inputs[own].astype(np.float32) * scale).astype(inputs[own].dtype)
    result = emulator.run(kernel, inputs, INTERLEAVINGS[0])
    assert result.error_kind is None, result.error_text
    low, high = allowed(w.program, inputs)["y"]
    found = result.outputs["y"].astype(np.float64)
    free = np.isnan(low) | np.isnan(high) | ~(low <= high) | ((low == -np.inf) & (high == np.inf))
    assert scale > 1 or free.mean() < 0.5
    assert (free | ((low <= found) & (found <= high))).all()


def test_states_beyond_float16_are_scaled(emulator: Emulator) -> None:
    """Sums of products that float16 holds leave it; what is read of them does not."""
    w, kernel = lowered(recurrence("linear attention", "float16", d=16), **PAIRS)
    inputs = w.make_inputs(0)
    for operand, size in (("q", 1e-3), ("k", 100.0), ("v", 3e3)):
        inputs[operand] = (inputs[operand] * size).astype(np.float16)
    inputs["q"][..., 1:] = 0.0
    inputs["k"][..., 0] = np.abs(inputs["k"][..., 0])
    inputs["v"][..., ::2] = np.abs(inputs["v"][..., ::2])
    state = np.einsum("hsd,hse->hde", *(inputs[n].astype(np.float64) for n in "kv"))
    wanted = evaluate(w.program, inputs)["y"]
    assert np.abs(state).max() > 1e5 > np.abs(wanted).max() * 4
    result = emulator.run(kernel, inputs, INTERLEAVINGS[0])
    assert result.error_kind is None, result.error_text
    found = result.outputs["y"].astype(np.float64)
    np.testing.assert_allclose(found, wanted, rtol=2**-8, atol=2**-8 * np.abs(wanted).max())


SIZES = {
    64: {"warps": 4, "chunk": 64, "fragments": 1, "blocks_per_sm": 2},
    128: {"warps": 8, "chunk": 64, "fragments": 1, "blocks_per_sm": 1},
}


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", ["linear attention", "state space", "decays that are summed up"])
@pytest.mark.parametrize("head", SIZES)
def test_kernels_compile_for_the_gpu_without_spills(head: int, name: str, target: str) -> None:
    w = recurrence(name, h=64, t=4096, s=4096, d=head, e=head)
    _, kernel = lowered(w, target, **SIZES[head])
    text = kernel.source.text  # type: ignore[union-attr]
    built = compile_cubin(device_text(text) + text, target, 120, lambda: False)
    assert built.cubin is not None, built.log[:2000]
    assert built.log.count("bytes spill stores") == built.log.count(" 0 bytes spill stores") == 1

"""Kernels of steps: hard cases and planted bugs on the emulator, and machine code."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case, check_all_right, deferred
from tests.measure.cuda.kernels.blocks.test_block_kernels import instructions
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces import cycle_programs, recurrent_programs
from tests.spaces.random_cycles import EXTENTS, random_cycles
from tilewright.measure.cuda.emulator import INTERLEAVINGS, Emulator
from tilewright.spaces.cuda.stepped.template import CudaStepped
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.gradients import gradient
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.workload import Workload

H200 = cuda_target("sm_90a")
PLAIN = {"row_threads": 1, "warps": 1, "vector": 1, "steps": 4, "stages": 2, "unroll": 1}
PROGRAMS = {"cycle": cycle_programs, "recurrence": recurrent_programs}


def stepped(kind: str, name: str, dtypes: str = "", **extents: int) -> Workload:
    """A program whose stages read themselves, or one of prefixes."""
    programs = PROGRAMS[kind]
    return workload(dtypes + programs.TEXTS[name], **programs.extents_of(name, **extents))


def cycle(name: str, dtypes: str = "", **extents: int) -> Workload:
    return stepped("cycle", name, dtypes, **extents)


def recurrence(name: str, dtypes: str = "", **extents: int) -> Workload:
    if "t" in extents:
        extents["s"] = extents["t"]
    return stepped("recurrence", name, dtypes, **extents)


@deferred
def case(w: Workload, **values: int) -> Case:
    """The workload, and the kernel of a schedule."""
    template = CudaStepped(w, H200)
    schedule = Schedule("stepped", tuple((PLAIN | values).items()))
    assert Space(w, H200, [template]).why_not(schedule) is None
    return w, template.lower(schedule)


def kinds(names: str, dtype: str) -> str:
    return "".join(f"{name}: {dtype}\n" for name in names)


GATED = """
    r[b, t, d] = sigmoid(x[b, t, d] + sum[e](inside(h[b, t - 1, e], 0) * u[e, d]))
    h[b, t, d] = tanh(y[b, t, d] + sum[e](r[b, t, e] * inside(h[b, t - 1, e], 0) * m[e, d]))"""
BORDERS = """
    y: float32[2, 11, 37]
    h[b, t, d] = inside(h[b, t - 1, d], 0) * 0.5 + x[b, t, d] * inside(y[b, t - 1, d], 3)"""
BOUNDED = """
    where e <= t + 1
    h[b, t, d, e] = 0.5 * inside(h[b, t - 1, d, e], 0) + x[b, t, d] * k[b, t, e]
    o[b, t, d] = sum[e](h[b, t, d, e] * q[b, t, e])"""
TURNED = """
    A[b, t, d, e, c] = 0.5 * inside(A[b, t - 1, d, e, c], 0) + x[b, t, d] * k[b, t, e] * v[b, t, c]
    B[b, t, e, d, c] = A[b, t, d, e, c] * w[e, d]
    o[b, t, c] = sum[d, e](B[b, t, e, d, c] * inside(B[b, t - 1, e, d, c], 1))
    q[b, t, c] = o[b, t, c] + sum[e, d](inside(B[b, t - 1, e, d, c], 1) * u[b, t, e])
    -> o, q"""
SWAPPED = """
    A[b, t, d, e, c] = 0.5 * inside(B[b, t - 1, d, e, c], 1) + x[b, t, d] * k[b, t, e] * v[b, t, c]
    B[b, t, e, d, c] = A[b, t, d, e, c] * w[e, d]
    o[b, t, c] = sum[d, e](A[b, t, d, e, c] * inside(B[b, t - 1, d, e, c], 1))
    -> o"""
ALIKE = """
    p[b, t, e, d] = exp(-abs(k[b, t, e] * x[b, t, d]))
    A[b, t, d, e, c] = p[b, t, e, d] * inside(A[b, t - 1, d, e, c], 0) + x[b, t, d] * v[b, t, c]
    m[b, t, e, d] = 0.5 * inside(m[b, t - 1, e, d], 1) + p[b, t, e, d]
    o[b, t, c] = sum[d, e](A[b, t, d, e, c] * m[b, t, e, d])
    -> o"""
SHARED = {"row_threads": 4, "vector": 2}
DELTA = kinds("vkqgo", "bfloat16")
CASES = {
    "delta": case(cycle("delta", d=37, e=16)),
    "delta, shared": case(cycle("delta", d=72, e=24), **SHARED, warps=2, stages=3),
    "delta, odd": case(cycle("delta", d=37, e=13), row_threads=4, unroll=2),
    "delta, halves": case(cycle("delta", DELTA, d=72, e=32), **SHARED, warps=2),
    "delta, odd halves": case(cycle("delta", DELTA, d=37, e=15), row_threads=2),
    "delta, float16": case(cycle("delta", kinds("vkqgo", "float16"), d=64, e=64), row_threads=8),
    "gated delta": case(cycle("gated delta", d=40, e=32), row_threads=32, warps=2),
    "gates": case(cycle("gates", d=70, t=23), warps=2, steps=8, stages=3),
    "selective": case(cycle("selective", d=37, e=16, t=12), row_threads=4),
    "largest": case(cycle("largest", d=29), row_threads=8),
    "matrix": case(cycle("matrix", d=40, b=5), row_threads=32, vector=2, warps=2),
    "matrix, backwards": case(cycle("matrix backwards", d=21), row_threads=8),
    "matrix, halves": case(cycle("matrix", kinds("xmh", "bfloat16"), d=33, b=1), row_threads=32),
    "gates of matrices": case(workload(GATED, b=3, t=7, d=21, e=21), row_threads=16),
    "one step": case(cycle("delta", d=33, t=1), row_threads=4),
    "linear attention": case(recurrence("linear attention", d=8), row_threads=2, steps=16),
    "state space": case(recurrence("state space", e=64), **SHARED, stages=4),
    "gated": case(recurrence("gated", d=16), row_threads=8, steps=8),
    "gated, by warps": case(recurrence("gated", d=40), row_threads=8, steps=8, warps=2),
    "gated twice": case(recurrence("gated twice"), row_threads=4, steps=8),
    "gated lanes": case(recurrence("gated lanes"), row_threads=4, unroll=4),
    "before, with maps": case(recurrence("before, with maps"), row_threads=4, steps=32),
    "behind": case(recurrence("behind"), row_threads=8, steps=8),
    "turned": case(workload(TURNED, b=2, t=5, d=3, e=4, c=9), row_threads=8),
    "swapped": case(workload(SWAPPED, b=2, t=5, d=3, e=3, c=9), row_threads=4, vector=2),
    "alike": case(workload(ALIKE, b=2, t=5, d=3, e=4, c=9), row_threads=4),
    "borders": case(workload(BORDERS, b=2, t=11, d=37), steps=8),
    "a condition": case(workload(BOUNDED, b=3, t=6, d=37, e=9), row_threads=4),
    "gates, backwards": case(cycle("gates backwards", d=40)),
    "gated delta, backwards": case(cycle("gated delta backwards", d=37, e=16), row_threads=4),
    "suffixes": case(recurrence("suffixes", kinds("qkvy", "bfloat16"), d=8), row_threads=2),
    "averages": case(recurrence("averages"), warps=2, stages=3),
    "two positions": case(recurrence("linear attention", t=2), row_threads=2),
}

# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "the state is never made": ("delta", r"s1\[i\] = r1\[i\]", "(void)0"),
    "another start": ("delta", r"s1\[i\] = 0.0f", "s1[i] = 1.0f"),
    "one step late": ("delta", r"stage \+ 0 \+ step \* 64", "stage + 0 + step / 2 * 64"),
    "steps in another order": ("delta", r"chunk \* 4 \+ step", "chunk * 4 + (end - 1 - step)"),
    "the last steps": ("delta", r"left < 4 \? left : 4", "4"),
    "fewer steps": ("delta", r"chunk < 3; chunk", "chunk < 2; chunk"),
    "the state of a later step": ("delta", r"(tw::fused\(d1_1, v0_2, )b1_0_1", r"\g<1>0.0f"),
    "no barrier": ("delta, shared", r"tw::sync_block\(\);", ""),
    "no wait": ("delta", r"cp_async_wait<0>", "cp_async_wait<1>"),
    "a stage that is read": ("delta, shared", r"\(chunk \+ 2\) % 3", "chunk % 3"),
    "columns of the neighbour": ("delta, shared", r"\+ column \* 8", "+ (column ^ 1) * 8"),
    "another part of the row": ("delta, shared", r"\+ 8 \* part", "+ 8 * (part ^ 1)"),
    "no exchange": ("delta, shared", r"r0\[1\] = r0\[1\] \+ .*;", ""),
    "an exchange with other columns": ("delta, shared", r"\(r0\[0\], 8\)", "(r0[0], 4)"),
    "another row's keys": ("delta, shared", r"x0 = array0 \+ \(216 \* a0\)", "x0 = array0"),
    "columns of another block": ("delta, odd", r"column0 = .*;", "column0 = 0;"),
    "points past the last": ("delta, odd", r"if \(exists\) (r0)", r"\1"),
    "columns past the last": ("delta, odd", r" && \(?column0 \+ column\)? < 37\)", ")"),
    "registers are not stored": (
        "delta, odd halves", r"(step\+\+\)[\s\S]*)tw::store_shared\(next.*", r"\1(void)0;",
    ),
    "the state that is made": ("gates", r"= s0\[0\]", "= s1[0]"),
    "what is alike at all steps": ("gates", r"load_global\(x(\d) \+ \(c0\)\)", r"load_global(x\1)"),
    "the least": ("largest", r"r0\[0\] = tw::max_nan", "r0[0] = tw::min_nan"),
    "elements of another order": ("turned", r"= s1\[i\]", "= s1[i ^ 1]"),
    "elements of the same order": (
        "swapped", r"192 \* \(point % 3\) \+ 64 \* \(point / 3\)", "64 * point",
    ),
    "beyond a border": ("borders", r"t \+ -1 >= 0", "t >= 0"),
    "zero beyond a border": ("borders", r": 3.0f", ": 0.0f"),
    "another condition": ("a condition", r"<=", "<"),
    "nothing is zero": ("largest", r"r0\[1\] = \{.*\}", "r0[1] = {0.0f}"),
    "elements that are not there yet": (
        "gates of matrices", r"(float r0.*\n[\s\S]*?)tw::sync_warp\(\);", r"\1",
    ),
    "elements of this step": ("matrix", r"number % 2 \* 640", "(number + 1) % 2 * 640"),
    "elements that are read": ("matrix", r"\(number \+ 1\) % 2 \* 640", "number % 2 * 640"),
    "elements of another column": ("matrix", r"16 \* e0 \+ 8 \* column", "16 * e0"),
    "nothing is left before": ("matrix", r"(0 \* 640.*), 0.0f\)", r"\1, 1.0f)"),
    "one term less": ("matrix", r"int e0 = 0", "int e0 = 1"),
    "nothing decays": ("state space", r"tw_exp\((\w+)\)", r"tw_exp(\1 * 0.0f)"),
    "the scale is kept": ("state space", r"s0\[i\] = r0\[i\]", "(void)0"),
    "states of other points": ("gated", r"\br4\[i\] = |\br0\[i\] = ", "r0[0] = "),
    "powers of another step": ("gated", r"3328 \+ step \* 64 \+ \(8", "3328 + step / 2 * 64 + (8"),
    "powers that are not there yet": (
        "gated, by warps", r"tw::sync_block\(\);(\n +#pragma unroll 1\n +for \(int step)", r"\1",
    ),
    "powers of another chunk": ("gated", r"a_s0\[i\] = a_r0\[i\]", "(void)0"),
    "powers of other points": ("gated, by warps", r"point\), a_r1", "(point / 2)), a_r1"),
    "the first has terms": ("before, with maps", r"!= 0", ">= 0"),
    "read too late": ("before, with maps", r"= s4\[i\]", "= r4[i]"),
    "forwards": ("behind", r"x1_from \+= -296", "x1_from += 296"),
    "another position": ("behind", r"= 44 - ", "= 43 - "),
    "down from another step": ("behind", r"1665 \* a0 \+ 1628", "1665 * a0 + 1591"),
}  # fmt: skip


class TestSteppedKernels(KernelContract):
    cases, bugs = CASES, BUGS


@pytest.mark.parametrize("name", ["gated delta", "selective", "gates"])
def test_random_schedules_of_cycles_agree(emulator: Emulator, name: str) -> None:
    check_random(emulator, cycle(name, d=70, e=20, t=11), 3)


@pytest.mark.parametrize("name", ["state space", "gates of input", "two inner axes"])
def test_random_schedules_of_recurrences_agree(emulator: Emulator, name: str) -> None:
    check_random(emulator, recurrence(name, e=70, t=11), 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", recurrent_programs.TEXTS)
def test_many_random_schedules_of_recurrences_agree(emulator: Emulator, name: str) -> None:
    check_random(emulator, recurrence(name), 8)


@pytest.mark.parametrize("seed", range(8))
def test_kernels_of_random_cycles_agree_with_loops(emulator: Emulator, seed: int) -> None:
    made = random_cycles(seed)
    w = workload(
        made.text, **{a: n for a, n in EXTENTS.items() if re.search(rf"\b{a}\b", made.text)}
    )
    if CudaStepped.why_not(w, H200) is not None:
        pytest.skip("no stage reads itself")
    space, inputs = Space(w, H200, [CudaStepped(w, H200)]), w.make_inputs(seed)
    wanted = made.computed({name: np.asarray(array) for name, array in inputs.items()})
    for row in space.sample(np.random.default_rng(seed), 2):
        result = emulator.run(space.lower(space.schedule(row)), inputs, INTERLEAVINGS[-1])
        assert result.error_kind is None, result.error_text
        for name, array in result.outputs.items():
            np.testing.assert_allclose(array, wanted[name], 1e-3, 1e-4)


@pytest.mark.parametrize("name", ["delta", "gates", "selective", "matrix"])
def test_gradients_of_cycles_agree(emulator: Emulator, name: str) -> None:
    extents = cycle_programs.extents_of(name)
    text = f'"{cycle_programs.TEXTS[name]}" ' + " ".join(f"{a}={n}" for a, n in extents.items())
    inputs = ",".join(operand.name for operand in workload(text).inputs)
    space = space_for(workload_of(gradient(text, inputs)), H200)
    row = space.sample(np.random.default_rng(1), 1)[0]
    check_all_right(emulator, [(space.workload, space.lower(space.schedule(row)))])


def check_random(emulator: Emulator, w: Workload, count: int) -> None:
    space = Space(w, H200, [CudaStepped(w, H200)])
    rows = space.sample(np.random.default_rng(3), count)
    check_all_right(emulator, [(w, space.lower(space.schedule(row))) for row in rows])


@pytest.mark.parametrize(("arch", "halves"), [("sm_80", ""), ("sm_90a", "vkqo")])
def test_the_state_stays_in_registers(arch, halves):
    w = cycle("delta", kinds(halves, "bfloat16"), b=8, t=1024, d=128, e=128)
    found = instructions(arch, case(w, row_threads=8, vector=4, warps=4, steps=16))
    assert found["LDL"] == found["STL"] == 0
    assert found["LDG"] == 0
    assert found["FFMA"] == 3 * 64  # two sums and the state, of the elements of a thread
    assert found["LDS.128"] > 0

"""What kernels in float64 say is allowed of programs, on the emulator, against the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.measure.cuda.emulated_device import EmulatedDevice
from tests.spaces.derivation import programs as known
from tests.spaces.language.strategies import programs
from tilewright.measure.cuda.buffers import Buffers
from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.measure.cuda.device import DeviceError
from tilewright.measure.cuda.emulator import Emulator
from tilewright.measure.cuda.trusted import oracle
from tilewright.measure.cuda.trusted import programs as trusted_programs
from tilewright.measure.cuda.trusted.evaluating import by_pairs, evaluate, hold_to_the_host
from tilewright.measure.cuda.trusted.programs import (
    expect_program,
    fits,
    rows_of_a_piece,
    rows_operand,
)
from tilewright.measure.cuda.trusted.statements import DOUBLE, WHOLE, Statements
from tilewright.measure.drawing.programs import ProgramDraw
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.derivation.rounding.rows import Rows, row_axis
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.language import Program, program
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.numerics.allowance import bounds_dtype
from tilewright.spaces.operators import workload

TEXTS = {
    "whole numbers": (
        "x: int8[r, c]; i: int32[r](index < 5)\n"
        "s[r] = sum[c](x[r,c] * (c - 2)); m[r] = max[c](x[r,c]); l[r] = argmin[c](-x[r,c] // 3)\n"
        "y[r] = s[r] % 7 + m[i[r]] * 1.5\n-> y, s, m, l",
        {"r": 5, "c": 9},
    ),
    "places, of NaN too": (
        "where c != 3\ny[r] = argmax[c](sqrt(x[r,c])); z[r] = argmin[c](x[r,c]); "
        "p = argmax[c, r](abs(x[r,c]))\n-> y, z, p",
        {"r": 6, "c": 40},
    ),
    "contested places": (
        "y[r] = argmax[c](sum[k](x[r,k] * w[k,c])); z[r] = argmin[c](exp(floor(u[r,c] * 9)))\n"
        "-> y, z",
        {"r": 6, "c": 40, "k": 5},
    ),
    "what is found at contested places": (
        "a[r] = argmax[c](exp(floor(u[r,c] * 2))); y[r] = v[a[r]] + a[r] // 2 % 3",
        {"r": 9, "c": 3},
    ),
    "infinite sums": (
        "y[r] = sum[c](exp(1000 * u[r,c])); z[r] = prod[c](exp(1000 * u[r,c])); -> y, z",
        {"r": 9, "c": 3},
    ),
    "infinite terms of a state": (
        "y[t,e] = sum[s: s <= t](exp(1000 * u[t] - 1000 * u[s]) * v[s,e])",
        {"t": 9, "s": 9, "e": 5},
    ),
    "differences that are not negative": (
        "m[r] = max[c](x[r,c] * u[c]); y[r,c] = sqrt(m[r] - x[r,c] * u[c])",
        {"r": 6, "c": 40},
    ),
    "nothing in some rows": (
        "where c < r - 2\nm[r] = max[c](x[r,c]); s[r] = sum[c](x[r,c] * x[r,c]); "
        "p[r] = prod[c](x[r,c]); a[r] = argmax[c](x[r,c])\n-> m, s, p, a",
        {"r": 6, "c": 9},
    ),
    "borders": (
        "x: float16[n, 2, 7, 7]; w: float16[o, 2, 3, 3]\n"
        "y[n,o,p,q] = relu(sum[c,r,s](inside(x[n, c, 2 * p + r - 1, 2 * q + s - 1], 0) "
        "* w[o,c,r,s]) + b[o])\ny: float16[n, o, p, q](order=(0, 2, 3, 1))",
        {"n": 2, "o": 3, "p": 4, "q": 4, "c": 2, "r": 3, "s": 3},
    ),
    "a value outside": (
        "x: float32[12]\ny[i] = max[k](inside(x[i + k - 2], -0.5))",
        {"i": 12, "k": 5},
    ),
    "conditions that are not sure": (
        "m[r] = mean[c](x[r,c])\ny[r,c] = select(x[r,c] < m[r], x[r,c], m[r] * log(abs(m[r])))",
        {"r": 4, "c": 16},
    ),
    "a choice of whole numbers": (
        "x: int32[i]; n: int32[i](index < 9)\n"
        "y[i] = select(x[i] < 3, n[i], x[i]); z[i] = select(x[i] < 3, n[i], 0.3 * x[i])\n"
        "-> y, z",
        {"i": 40},
    ),
    "functions": (
        "y[i] = exp2(x[i]) + floor(3 * x[i]) + gelu(x[i]) + silu(x[i]) * erf(x[i]); "
        "z[i] = bfloat16(tanh(x[i])) / (sigmoid(x[i]) - 0.5) - gelu_tanh(x[i]) + sqrt(x[i])"
        "\n-> y, z",
        {"i": 64},
    ),
    "functions of the library": (
        "y[i] = sin(9 * x[i]) + cos(x[i]) + round(3 * x[i]) + log1p(x[i] + 1) * expm1(x[i]); "
        "z[i] = pow(x[i], 5) + pow(2, x[i]) + atan2(x[i], x[0]) + fmod(x[i], 0.3) + atan(x[i])"
        "\n-> y, z",
        {"i": 64},
    ),
    "random numbers": (
        "y[i] = select(random(7, 3 * i, i) < 0.3, 0, x[i] / 0.7); z[i] = random(9 * x[i], i, 2)"
        "\n-> y, z",
        {"i": 64},
    ),
    "rounded factors": (
        "v: bfloat16[j, d]\np[i,j] = softmax[j](x[i,j])\ny[i,d] = sum[j](p[i,j] * v[j,d])",
        {"i": 3, "j": 20, "d": 5},
    ),
    "eight bits": (
        "a: float8_e4m3fn[i, k]; b: float8_e4m3fn[k, j]\ny[i,j] = sum[k](a[i,k] * b[k,j])",
        {"i": 5, "j": 3, "k": 17},
    ),
    "factors rounded to eight bits": (
        "v: float8_e4m3fn[j, d]\np[i,j] = softmax[j](x[i,j])\ny[i,d] = sum[j](p[i,j] * v[j,d])",
        {"i": 3, "j": 20, "d": 5},
    ),
    "a sum of all": ("y = sum[a, b](x[a,b] * x[a,b])", {"a": 7, "b": 1100}),
    "products of many": ("y[a] = prod[b](1 + 0.1 * x[a,b] / (2 + x[a,0]))", {"a": 3, "b": 50}),
    "whole outputs": (
        "y: int8[i]; z: int32[i]\ny[i] = 200 * x[i]; z[i] = x[i] / x[0]\n-> y, z",
        {"i": 9},
    ),
}


@pytest.fixture(scope="module")
def emulator():
    with Emulator(batch=16) as emulator:
        yield emulator


def held_to_the_host(emulator: Emulator, made: Program, inputs=None) -> None:
    inputs = draw(made, 5) if inputs is None else inputs
    found = emulator.run(expect_program(made), inputs)
    assert found.error_kind is None, f"{found.error_text}\n{made}"
    agree(made, found.outputs, allowed(made, inputs, by_pairs(made, Rows())))


def agree(made: Program, found, right, at=...) -> None:
    for output in made.outputs:
        kind = bounds_dtype(output).numpy
        for own, wanted in zip(found[f"tw.allowed.{output.name}"], right[output.name], strict=True):
            with np.errstate(over="ignore"):
                expected = wanted.astype(kind)
            np.testing.assert_allclose(own[at], expected, 3e-7, 1e-37, err_msg=str(made))


def of_texts() -> list[Program]:
    sums = workload("matmul m=7 n=9 k=40 dtype=float16 accumulator=float16 epilogue='x * 40000'")
    return [*(program(text, **extents) for text, extents in TEXTS.values()), sums.program]


def all_held_to_the_host(emulator: Emulator, made: Sequence[Program]) -> None:
    emulator.build([expect_program(one) for one in made])
    for one in made:
        held_to_the_host(emulator, one)


def test_what_is_allowed_is_what_the_host_says(emulator):
    all_held_to_the_host(emulator, [*of_texts(), known.attention("prefill_window")])


@pytest.mark.slow
def test_so_it_is_for_chains(emulator):
    attentions = map(known.attention, (*known.ATTENTIONS, *known.WITH_EMPTY_ROWS))
    rows = map(known.rows, (*known.ROWS, *known.FURTHER_ROWS))
    all_held_to_the_host(emulator, [*attentions, *rows])


def test_a_choice_is_whole_where_both_are():
    code = Statements()
    condition = code.variable("true", WHOLE)
    whole, other = code.variable("1", WHOLE), code.variable("0.5", DOUBLE)
    kinds = [code.select(condition, a, b).kind for a in (whole, other) for b in (whole, other)]
    assert kinds == [WHOLE, DOUBLE, DOUBLE, DOUBLE]


def test_they_compile_for_gpus():
    for made in (*of_texts(), known.attention("prefill_window")):
        source = expect_program(made).source.text
        compilation = compile_cubin(device_text(source) + source, "sm_90a", 60, lambda: False)
        assert compilation.cubin is not None, compilation.log


def test_some_rows_are_judged_alone(emulator):
    for name in ("prefill_gqa", "layernorm"):
        made = known.attention(name) if name in known.ATTENTIONS else known.rows(name)
        axis = row_axis(made)
        which = np.array([1, 3, 4])
        inputs = draw(made, 2)
        kernel = expect_program(made, rows=4)
        unknown = {a.name: np.full(a.shape, 7.0, np.float32) for a in kernel.call.written}
        rows = {rows_operand(4).name: np.array([*which, 4])}
        found = emulator.run(kernel, {**inputs, **rows, **unknown})
        assert found.error_kind is None, found.error_text
        axes = made.stage["y"].axes
        at = tuple(which if a == axis else slice(None) for a in axes)
        agree(made, found.outputs, allowed(made, inputs, Rows({axis: which})), at)
        others = np.delete(found.output, which, axis=1 + axes.index(axis))
        assert (others == 7).all()


def random_ones_agree(emulator: Emulator, drawn) -> None:
    made = []
    for text, extents in drawn:
        try:
            made.append(program(text, **extents))
        except InputError:
            continue
    all_held_to_the_host(emulator, made)


LISTS = st.lists(programs(), min_size=12, max_size=12)
QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=1, **QUIET)
@given(LISTS)
def test_random_programs(emulator, drawn):
    random_ones_agree(emulator, drawn)


@pytest.mark.slow
@settings(max_examples=30, **QUIET)
@given(LISTS)
def test_many_random_programs(emulator, drawn):
    random_ones_agree(emulator, drawn)


LARGE = "p[r,c] = softmax[c](x[r,c] * u[c])\ny[r,d] = sum[c](p[r,c] * w[c,d])\n-> y, p"


@pytest.mark.parametrize("rows", [None, np.array([0, 2, 3, 7, 19, 20, 36])])
def test_pieces_of_some_rows_make_up_the_whole(monkeypatch, rows):
    work = workload(LARGE, r=37, c=50, d=3)
    monkeypatch.setattr(trusted_programs, "BETWEEN", 5_000)
    inputs = draw(work.program, 1)
    which = None if rows is None else Rows({row_axis(work.program): rows})
    problem = ProgramDraw(work, inputs, which)
    paused = []
    with Buffers(EmulatedDevice(), 2) as buffers:
        buffers.add(*work.inputs, *map(oracle.allowed_operand, work.outputs))
        for operand in work.inputs:
            buffers.write(operand, inputs[operand.name])
        evaluate(buffers, problem, lambda: paused.append(1))
        found = {
            f"tw.allowed.{o.name}": buffers.read(oracle.allowed_operand(o)) for o in work.outputs
        }
        hold_to_the_host(buffers, problem)
        buffers.write(oracle.allowed_operand(work.outputs[0]), np.zeros((2, 37, 3)))
        with pytest.raises(DeviceError, match="computes otherwise than the host"):
            hold_to_the_host(buffers, problem)
    assert len(paused) > 1
    agree(work.program, found, problem.allowed())


def test_what_does_not_fit_is_left_to_the_host(monkeypatch):
    made = program("y = max[i](x[i] / sum[i](x[i]))", i=1000)
    assert fits(made)
    assert rows_of_a_piece(made) is None
    monkeypatch.setattr(trusted_programs, "BETWEEN", 20)
    assert not fits(made)


MISTAKES = [
    ("borders", "ex_nearest(t6, 7)", "ex_nearest(t6, 6)"),
    ("borders", "const bool t8 = t6 == t7", "const bool t8 = true"),
    ("borders", "const i64 a1 = element / 16 % 3", "const i64 a1 = element / 16 % 2"),
    ("borders", "a5 = lane; a5 < 3", "a5 = lane; a5 < 2"),
    ("borders", "s1 = s1 + t", "s1 = s1 - t"),
    ("borders", "half > 0", "half > 1"),
    ("nothing in some rows", "if (!t1) continue;", ""),
    ("nothing in some rows", "double s0 = 1;", "double s0 = 0;"),
    ("nothing in some rows", ".at < 0 ? 0", ".at < 0 ? 1"),
    ("nothing in some rows", "= s0 - t", "= s0 + t"),
    ("places, of NaN too", "s0 = ex_argmin", "s0 = ex_argmax"),
    ("places, of NaN too", "(0 * 40 + a1)", "(0 * 40 + a1 + 1)"),
    ("contested places", ".second >= s", ".first >= s"),
    ("contested places", ".third >= s", ".second >= s"),
    (
        "contested places",
        "ex_three(s2",
        "ex_three(Three{-ex_infinity(), -ex_infinity(), -ex_infinity(), 0, 0}",
    ),
    ("a value outside", "= -0.5;", "= 5.0;"),
    ("whole numbers", "ex_quotient(", "ex_remainder("),
    ("rounded factors", "ex_exp(", "ex_exp2("),
]


def test_mistakes_in_them_show(emulator):
    kernels = []
    for number, (name, old, new) in enumerate(MISTAKES):
        text, extents = TEXTS[name]
        made = program(text, **extents)
        right = expect_program(made)
        assert old in right.source.body, (name, old)
        names = {right.call.function(launch) for launch in right.call.launches}
        body = right.source.body.replace(old, new)
        for own in names:
            body = body.replace(own, f"{own}_{number}")
        launches = [replace(a, entry=f"{a.entry}_{number}") for a in right.call.launches]
        call = replace(right.call, entry=f"wrong{number}", launches=tuple(launches))
        kernels.append((made, Kernel(replace(right.source, body=body), call)))
    emulator.build([kernel for _, kernel in kernels])
    for made, kernel in kernels:
        inputs = draw(made, 5)
        found = emulator.run(kernel, inputs)
        if found.error_kind is None:
            with pytest.raises(AssertionError, match="Not equal"):
                agree(made, found.outputs, allowed(made, inputs, by_pairs(made, Rows())))


def test_long_prefixes_are_added_up_by_the_host_which_takes_linear_time():
    text = "y[r,i] = sum[j: j <= i](x[r,j])"
    assert fits(program(text, r=32768, i=4096, j=4096))
    assert not fits(program(text, r=8, i=1 << 22, j=1 << 22))
    assert fits(program("y[r] = sum[j](x[r,j])", r=8, j=1 << 22))


def test_stages_that_read_themselves_are_judged_on_the_host():
    assert not fits(program("h[b, t] = 0.5 * inside(h[b, t - 1], 0) + x[b, t]", b=2, t=3))

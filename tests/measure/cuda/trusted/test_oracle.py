"""The kernels that judge others, on the emulator, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.cuda_kernels import output_of
from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.measure.cuda.emulator import Emulator
from tilewright.measure.cuda.trusted import oracle
from tilewright.measure.cuda.trusted.products import expect
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.dtypes import DTYPES
from tilewright.spaces.errors import InputError
from tilewright.spaces.numerics.allowance import allowed
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.matmul import Operand

SEED = np.int32(12345)


def in_order(values: np.ndarray, operand: Operand) -> np.ndarray:
    """The elements of an array as they lie in memory."""
    return np.ascontiguousarray(values.transpose(operand.order)).reshape(-1)


@pytest.fixture(scope="module")
def emulator():
    with Emulator() as emulator:
        yield emulator


def random_words(size: int, seed: int) -> np.ndarray:
    """SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        z = np.arange(size, dtype=np.uint64) + np.uint64(seed) * golden + golden
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def random_values(operand: Operand, seed: int) -> np.ndarray:
    words = random_words(operand.size, seed ^ oracle.own_seed(operand))
    if operand.element.is_integer:
        values = (words >> np.uint64(60)).astype(np.int64) - 8
        values = np.clip(values, *operand.element.limits)
    elif operand.dtype == "float64":
        values = words.view(np.int64) * 2.0**-63
    else:
        top = (words >> np.uint64(32)).astype(np.uint32).view(np.int32)
        values = top.astype(np.float32) * np.float32(2.0**-31)
    return operand.element.cast(values)


def test_operands_differ_though_their_seed_is_one(emulator):
    a = Operand("A", "float32", (64, 32), (0, 1), axes=("m", "k"))
    b = Operand("B", "float32", (32, 64), (1, 0), axes=("k", "n"))
    first, second = (
        in_order(output_of(emulator.run(oracle.fill(o, 1), {oracle.SEED.name: SEED})), o)
        for o in (a, b)
    )
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.1


@pytest.mark.parametrize("name", DTYPES)
def test_random_elements_are_those_of_splitmix(emulator, name):
    operand = Operand("A", name, (77, 91), (1, 0), axes=("m", "k"))
    kernel = oracle.fill(operand, 3)
    found = output_of(emulator.run(kernel, {oracle.SEED.name: SEED}))
    flat = in_order(found, operand)
    wanted = random_values(operand, 12345)
    assert flat.tobytes() == wanted.tobytes()
    assert np.unique(flat.astype(np.float64)).size > {"bool": 1, "uint8": 7, "uint16": 7}.get(
        name, 15
    )
    back = oracle.changed(operand, 3)
    report = output_of(emulator.run(back, {oracle.SEED.name: SEED, "A": found}))
    assert oracle.count_and_first(report.tobytes()) == (0, -1)
    spoilt = flat.copy()
    spoilt[[5000, 17]] = np.where(flat[[5000, 17]] == 1, 0, 1)
    report = output_of(emulator.run(back, {oracle.SEED.name: SEED, "A": spoilt.reshape(91, 77).T}))
    assert oracle.count_and_first(report.tobytes()) == (2, 17)


CASES = [
    {"m": 5, "n": 7, "k": 3, "dtype": "float64"},
    {"m": 70, "n": 130, "k": 33, "epilogue": "gelu(x + bias[n])", "a": "col"},
    {"m": 65, "n": 64, "k": 17, "dtype": "bfloat16", "b": "col", "epilogue": "silu(x) * w[m, n]"},
    {"m": 64, "n": 65, "k": 16, "dtype": "float16", "c": "col", "epilogue": "gelu_tanh(x) - s[]"},
    {"m": 3, "n": 200, "k": 40, "dtype": "int8", "a": "col", "b": "col", "c": "col"},
    {"m": 30, "n": 20, "k": 400, "dtype": "int8", "out": "int8", "epilogue": "x * 2"},
    {"m": 33, "n": 20, "k": 31, "dtype": "float8_e4m3fn", "epilogue": "max(tanh(x), rows[m])"},
    {"m": 33, "n": 20, "k": 31, "dtype": "float8_e5m2", "out": "bfloat16"},
    {"m": 9, "n": 20, "k": 5, "epilogue": "exp(x)+erf(x)+sigmoid(x)+relu(x)+sqrt(abs(x)+1)"},
    {"m": 9, "n": 20, "k": 5, "epilogue": "select(x<b[n],log(abs(x)),exp2(x))+floor(x*4)"},
    {"m": 9, "n": 20, "k": 5, "epilogue": "rsqrt(max(x,1))+min(x,0.5)"},
    {"m": 9, "n": 20, "k": 5, "epilogue": "bfloat16(x)+float16(x*2)+float32(x*0.5)"},
    {"m": 9, "n": 20, "k": 5, "epilogue": "sqrt(x) / b[n] + rsqrt(x - 1)"},
    {"m": 9, "n": 20, "k": 5, "epilogue": "exp(x * 90) - 1 / relu(x)", "out": "bfloat16"},
    {"m": 9, "n": 20, "k": 5, "dtype": "float8_e4m3fn", "out": "float8_e5m2", "epilogue": "x*1e6"},
    {"m": 9, "n": 20, "k": 5, "dtype": "int8", "out": "int8", "epilogue": "rsqrt(x)*50"},
]


@pytest.mark.parametrize("parameters", CASES)
def test_what_is_allowed_is_what_numpy_says(emulator, parameters):
    work = workload("matmul", **parameters)
    inputs = work.make_inputs(7)
    found = output_of(emulator.run(expect(work), inputs))
    right = allowed(work.matmul, work.matmul.contract(inputs), inputs)
    np.testing.assert_allclose(found, right, rtol=5e-7, atol=1e-45)


def test_so_it_is_for_each_product_of_a_batch(emulator):
    work = workload("bmm batch=3 m=5 n=7 k=4 epilogue='x + bias[n]'")
    inputs = work.make_inputs(7)
    found = output_of(emulator.run(expect(work), inputs))
    right = allowed(work.matmul, work.matmul.contract(inputs), inputs)
    np.testing.assert_allclose(found, right, rtol=5e-7, atol=1e-45)


@pytest.mark.parametrize("parameters", CASES[:12])
def test_only_what_is_not_allowed_is_counted(emulator, parameters):
    work = workload("matmul", **parameters)
    inputs = work.make_inputs(7)
    bounds = np.stack(allowed(work.matmul, work.matmul.contract(inputs), inputs))
    right = work.outputs[0].element.cast(work.matmul.reference(inputs))
    kernel = oracle.compare(work.outputs[0], 3)
    allowance = oracle.allowed_operand(work.outputs[0])
    arrays = {allowance.name: allowance.array(bounds), work.outputs[0].name: right}
    report = output_of(emulator.run(kernel, arrays))
    assert oracle.count_and_first(report.tobytes()) == (0, -1)
    wrong = right.copy()
    wrong[1, 2] += wrong.dtype.type(3 if wrong[1, 2] < 0 else -3)
    wrong[2, 4] = wrong.dtype.type(77) if work.outputs[0].element.is_integer else np.nan
    report = output_of(emulator.run(kernel, {**arrays, work.outputs[0].name: wrong}))
    first = min(
        r * work.outputs[0].strides[0] + c * work.outputs[0].strides[1] for r, c in ((1, 2), (2, 4))
    )
    assert oracle.count_and_first(report.tobytes()) == (2, first)


def test_not_a_number_agrees_where_it_is_due_or_anything_goes(emulator):
    work = workload("matmul", m=1, n=6, k=5)
    nan, infinite = np.nan, np.inf
    low = np.array([nan, -infinite, 1, infinite, -infinite, nan], np.float32)
    high = np.array([nan, infinite, 2, infinite, 5, nan], np.float32)
    found = np.array([[nan, nan, nan, infinite, nan, 0]], np.float32)
    name = oracle.allowed_operand(work.outputs[0]).name
    arrays = {name: np.stack([low, high])[:, None], work.outputs[0].name: found}
    report = output_of(emulator.run(oracle.compare(work.outputs[0], 3), arrays))
    assert oracle.count_and_first(report.tobytes()) == (3, 2)


def test_the_pulse_runs(emulator):
    kernel = oracle.pulse(2, 10)
    found = output_of(emulator.run(kernel, {}))
    assert found.shape == (512,)
    assert np.isfinite(found).all()


def test_a_sweep_reads_everything(emulator):
    kernel = oracle.sweep(3000, 2)
    buffer = np.random.default_rng(0).random(3000, dtype=np.float32)
    sums = output_of(emulator.run(kernel, {"buffer": buffer}))
    assert sums.sum() == pytest.approx(buffer.sum(), rel=1e-5)


def test_all_compile_for_the_device():
    work = workload("matmul", **CASES[1])
    every = workload("matmul", m=9, n=20, k=5, dtype="float8_e5m2", epilogue=CASES[8]["epilogue"])
    kernels = [expect(work), oracle.compare(work.outputs[0], 3), oracle.pulse(132, 8192)]
    kernels.append(oracle.sweep(1 << 26, 528))
    kernels += [
        oracle.fill(work.matmul.factors[0], 528),
        oracle.changed(work.matmul.factors[0], 528),
        expect(every),
    ]
    for kernel in kernels:
        text = device_text(kernel.source.text) + kernel.source.text
        compilation = compile_cubin(text, "sm_90a", 60, lambda: False)
        assert compilation.cubin is not None, compilation.log


def test_what_is_no_product_is_refused():
    lone = workload("y[m] = sum[k](a[m, k])", m=3, k=5)
    with pytest.raises(InputError, match="cannot be verified on a GPU"):
        expect(lone)

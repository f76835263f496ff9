"""Right and wrong results of many workloads, as NumPy computes them, for tests of verification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tilewright.spaces.language.evaluation import Elementwise
from tilewright.spaces.language.functions import FUNCTIONS
from tilewright.spaces.numerics.numbers import Arrays
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.matmul import Operand
from tilewright.spaces.workloads.workload import Workload

EPILOGUES = (
    "",
    "x * 100",
    "x * 0.000001",
    "x * 1e-30",
    "x * x",
    "x * x * x - 3 * x",
    "(x - 100) * 100",
    "x + bias[n]",
    "x * scale[] + bias[m]",
    "x * scale[n] + r[m, n]",
    "x * a[m] * b[n]",
    "x - t[n, m]",
    "-x",
    "x / 3",
    "x / b[n]",
    "1 / x",
    "x / (1 + abs(x))",
    "x / (b[n] * b[n] + 0.25)",
    "relu(x)",
    "relu(x + bias[n])",
    "relu(x - 1000)",
    "max(x, 0.1 * x)",
    "min(max(x, 0), 6)",
    "max(x, r[m, n])",
    "abs(x - bias[n])",
    "sqrt(x)",
    "sqrt(abs(x) + 1)",
    "rsqrt(abs(x))",
    "x * rsqrt(v[n] * v[n] + 0.01)",
    "exp(x)",
    "exp(x * 0.1)",
    "exp(x - 20)",
    "sigmoid(x)",
    "sigmoid(x - 30)",
    "tanh(x * 0.1 + bias[n])",
    "erf(x * 0.05)",
    "gelu(x)",
    "gelu(x + bias[n]) * r[m, n] * 1000",
    "select(x > 0, x, 0.1 * x)",
    "select(x * x < 2 + bias[n], log(abs(x) + 0.5), exp2(x * 0.1))",
    "floor(x * 4)",
    "gelu_tanh(x) * scale[]",
    "silu(x) * gate[m, n]",
    "bfloat16(x) + bias[n]",
    "float16(x * 0.01)",
    "float32(x) * 2",
)


@dataclass(frozen=True)
class Float32(Elementwise):
    """Numbers and operations as float32 code computes them (:class:`spaces.language.tree.Meaning`),
    whose functions are off by as much as they may."""

    generator: np.random.Generator

    def number(self, value: float) -> np.ndarray:
        return np.asarray(value, np.float32)

    def call(self, function: str, arguments: list[np.ndarray]) -> np.ndarray:
        known = FUNCTIONS[function]
        exact = known.reference(*(a.astype(np.float64) for a in arguments))
        relative, absolute = (
            error * self.generator.uniform(-1, 1, exact.shape) for error in known.error
        )
        off = np.where(np.isfinite(exact), exact * relative + absolute, 0.0)
        return (exact + off).astype(np.float32)


def product(epilogue: str, k: int, dtype: str, m: int = 24, n: int = 40) -> Workload:
    """A workload; an int8 one has an output of whole numbers where it has no epilogue."""
    out = "" if dtype != "int8" or not epilogue else "float32"
    return workload("matmul", m=m, n=n, k=k, dtype=dtype, epilogue=epilogue, out=out)


def stored(values: np.ndarray, work: Workload) -> np.ndarray:
    """Values rounded to the output's dtype, in a wide one."""
    with np.errstate(all="ignore"):
        if work.outputs[0].element.is_integer:
            limits = np.iinfo(work.outputs[0].element.numpy)
            return np.clip(np.rint(values), limits.min, limits.max)
        return np.asarray(Arrays().cast(values, work.outputs[0].dtype)).astype(np.float64)


def right(work: Workload, inputs: Mapping[str, np.ndarray], seed: int) -> np.ndarray:
    """What NumPy gives in float32 (float64 or int32 where sums are), functions off at random."""
    generator = np.random.default_rng(seed)
    kind = {"int32": np.int32, "float64": np.float64}.get(work.accumulator, np.float32)
    sums = inputs["A"].astype(kind) @ inputs["B"].astype(kind)
    if work.matmul.epilogue is None:
        return stored(sums, work)
    with np.errstate(all="ignore"):
        given = {"x": sums, **work.matmul.beside_output(inputs)}
        narrow = {name: array.astype(np.float32) for name, array in given.items()}
        found = work.matmul.epilogue.fold(Float32(generator), narrow)
        return stored(np.broadcast_to(found, work.outputs[0].shape), work)


def wrong(work: Workload, inputs: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    """Results of mistakes, each with its name."""
    k, sums = work.extents["k"], work.matmul.contract(inputs)
    a, b = (inputs[name].astype(np.float64) for name in "AB")

    def given(x: np.ndarray, **operands: np.ndarray) -> np.ndarray:
        return stored(work.matmul.finish(x, {**inputs, **operands}), work)

    yield "zeros", np.zeros(work.outputs[0].shape)
    if k > 1:
        yield "first half left out", given(a[:, k // 2 :] @ b[k // 2 :])
        yield "second half left out", given(a[:, : k // 2] @ b[: k // 2])
    for term in (0, k // 2, k - 1):
        yield f"term {term} left out", given(sums - np.outer(a[:, term], b[term]))
    exact = given(sums)
    most = np.argmax(np.where(np.isfinite(exact), np.abs(exact), -1))
    spoilt = work.matmul.finish(sums, inputs).astype(np.float64)
    spoilt.flat[most] *= 0.95
    yield "largest off by 5 %", stored(spoilt, work)
    if work.matmul.factors[0].dtype == work.outputs[0].dtype == "float32":
        yield "sums rounded to bfloat16", given(_bfloat16(sums))
    for operand in work.matmul.epilogue_inputs:
        for value in (0, 1):
            other = np.full_like(inputs[operand.name], value)
            yield f"{operand.name} taken for {value}", given(sums, **{operand.name: other})
        for dimension in range(len(operand.shape)):
            yield f"{operand.name} shifted", given(sums, **_shifted(inputs, operand, dimension))


def _shifted(
    inputs: Mapping[str, np.ndarray], operand: Operand, dimension: int
) -> dict[str, np.ndarray]:
    return {operand.name: np.roll(inputs[operand.name], 1, dimension)}


def _bfloat16(values: np.ndarray) -> np.ndarray:
    import ml_dtypes

    return values.astype(ml_dtypes.bfloat16).astype(np.float64)

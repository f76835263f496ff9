"""Long reductions, and how far float32 may be off that adds up in blocks, as NumPy does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.program import Program

ULP = 2.0**-23
TIMES = 4.0
"""By how many times NumPy's error a kernel may be off."""
FLOOR = 2.0 * ULP
"""The error of NumPy's that one with less is taken to have."""


def equal(shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """Terms of .1, whose roundings all go the same way."""
    return np.full(shape, 0.1, np.float32)


def positive(shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """Uniform terms."""
    return generator.random(shape, np.float32)


def offset(shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """Terms far from 0, beside their spread."""
    return (1000 + generator.standard_normal(shape)).astype(np.float32)


def far(shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """Terms whose mean in float32 is off by some hundredths of their spread."""
    return (1e7 + 10 * generator.standard_normal(shape)).astype(np.float32)


Draw = Callable[[tuple[int, ...], np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Reduction:
    """A reduction by its ``text``, of ``shape`` for ``n`` terms, drawn by each of ``draws``;
    ``plain`` is NumPy's in float32, of arrays whose terms lie along the last axis."""

    text: str
    shape: Callable[[int], Mapping[str, int]]
    draws: tuple[Draw, ...]
    plain: Callable[..., np.ndarray]


def _rows(n: int) -> dict[str, int]:
    return {"r": 3, "c": n}


def _few(n: int) -> dict[str, int]:
    return {"r": n, "c": 5}


def _images(n: int) -> dict[str, int]:
    return {"b": max(1, n // 2500), "h": 50, "w": 50, "k": 4}


def _sum(x: np.ndarray) -> np.ndarray:
    return x.sum(-1)


def _mean(x: np.ndarray) -> np.ndarray:
    return x.mean(-1)


def _var(x: np.ndarray) -> np.ndarray:
    """About the mean in float64: NumPy's is about one in float32."""
    distance = (x - x.mean(-1, dtype=np.float64)[..., None]).astype(np.float32)
    return np.asarray((distance * distance).mean(-1))


def _norm(x: np.ndarray) -> np.ndarray:
    return np.sqrt((x * x).sum(-1))


def _dot(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    return (x * z).sum(-1)


def _exponentials(x: np.ndarray) -> np.ndarray:
    return np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1)) + x.max(-1)


ANY = (equal, positive, offset)
SPREAD = (positive, offset, far)

REDUCTIONS = {
    "sum of rows": Reduction("y[r] = sum[c](x[r, c])", _rows, ANY, _sum),
    "sum of columns": Reduction("y[c] = sum[r](x[r, c])", _few, ANY, _sum),
    "mean of channels": Reduction("y[k] = mean[b, h, w](x[b, h, w, k])", _images, ANY, _mean),
    "norm": Reduction("y[r] = sqrt(sum[c](x[r, c] * x[r, c]))", _rows, ANY, _norm),
    "norm of columns": Reduction("y[c] = sqrt(sum[r](x[r, c] * x[r, c]))", _few, ANY, _norm),
    "dot": Reduction("y[r] = sum[c](x[r, c] * z[r, c])", _rows, ANY, _dot),
    "variance of rows": Reduction("y[r] = var[c](x[r, c])", _rows, SPREAD, _var),
    "variance of columns": Reduction("y[c] = var[r](x[r, c])", _few, SPREAD, _var),
    "variance of channels": Reduction("y[k] = var[b, h, w](x[b, h, w, k])", _images, SPREAD, _var),
    "logsumexp": Reduction("y[r] = logsumexp[c](x[r, c])", _rows, ANY, _exponentials),
}


def drawn(program: Program, draw: Draw, seed: int = 0) -> dict[str, np.ndarray]:
    """The program's inputs."""
    generator = np.random.default_rng(seed)
    return {o.name: draw(o.shape, generator) for o in program.operands}


@dataclass(frozen=True)
class ErrorBound:
    """What a reduction is exactly, and how far off it may be, relative to that."""

    exact: np.ndarray
    error: float

    @staticmethod
    def of(reduction: Reduction, program: Program, inputs: Mapping[str, np.ndarray]) -> ErrorBound:
        """By the error of NumPy's."""
        (name,) = (output.name for output in program.outputs)
        exact = evaluate(program, inputs)[name].astype(np.float64)
        plain = reduction.plain(*terms_last(program, inputs))
        error = float(np.max(np.abs(plain - exact) / np.abs(exact)))
        return ErrorBound(exact, TIMES * max(error, FLOOR))

    def off(self, found: np.ndarray) -> float:
        """By how much a result is off, relative to what is exact."""
        return float(np.max(np.abs(found - self.exact) / np.abs(self.exact)))

    def complaint(self, found: np.ndarray) -> str:
        """What is wrong with a result; nothing if the text is empty."""
        error = self.off(found)
        if error <= self.error:
            return ""
        return f"off by {error / ULP:.3g} units of the result, of {self.error / ULP:.3g} allowed"


def terms_last(program: Program, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The inputs with the kept axis first, and all others as one."""
    (output,) = program.outputs
    kept = program.stage[output.name].axes
    return [_last(inputs[o.name], o.name, program, kept) for o in program.operands]


def _last(array: np.ndarray, name: str, program: Program, kept: tuple[str, ...]) -> np.ndarray:
    read = next(r for s in program.stages for r in s.body.reads if r.name == name)
    axis = next(d for d, index in enumerate(read.indices) if str(index) in kept)
    return np.ascontiguousarray(np.moveaxis(array, axis, 0)).reshape(array.shape[axis], -1)

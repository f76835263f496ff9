"""Operators over ranges of entries on a GPU: a graph with a power law, and the same in torch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
import torch
from torch import Tensor

from experiments.ragged.cases import (
    ATTENTION,
    BY_POINTERS,
    LINEAR,
    SKEW,
    WEIGHTED,
    Case,
    attended,
)

Tensors = Mapping[str, Tensor]
Call = Callable[[], Tensor]
ROWS, ENTRIES = 170_000, 957_000
HELD_OUT = 7
"""The seed of the graph."""
GREATEST = "top[r,c] = max[e](x[col[e],c]); y[r,c] = relu(top[r,c]); -> y"


def csr(given: Tensors, values: Tensor | None = None) -> Tensor:
    """Return the sparse matrix of the entries."""
    values, rows = given["val"] if values is None else values, given["ptr"].numel() - 1
    parts = given["ptr"], given["col"].int(), values
    return torch.sparse_csr_tensor(*parts, (rows, rows), check_invariants=False)


def weighted(given: Tensors) -> Mapping[str, Call]:
    """Multiply by a sparse matrix: cuSPARSE on a GPU."""
    matrix, x = csr(given), given["x"]
    return {"cusparse": lambda: matrix @ x}


def greatest(given: Tensors) -> Mapping[str, Call]:
    """Gather neighbours, and scatter their extremes, of which those below 0 do not count."""
    rows, columns, x = _rows(given), given["col"].long(), given["x"]
    index, count = rows[:, None].expand(-1, x.shape[1]), given["ptr"].numel() - 1

    def call() -> Tensor:
        return x.new_zeros(count, x.shape[1]).scatter_reduce_(0, index, x[columns], "amax")

    return {"gather, scatter": call}


def attention(given: Tensors) -> Mapping[str, Call]:
    """Attend to neighbours, by gathering and scattering."""
    rows, columns = _rows(given), given["col"].long()
    q, k, v = (given[name] for name in ("q", "k", "v"))
    count = given["ptr"].numel() - 1
    return {"gather, scatter": partial(attended, rows, columns, q, k, v, count)}


def linear(given: Tensors) -> Mapping[str, Call]:
    """Multiply rows of activations by a sparse weight: by the whole one, and by its entries."""
    matrix, a, val = csr(given), given["a"], given["val"]
    dense = val.new_zeros(matrix.shape)
    dense[_rows(given), given["col"].long()] = val
    return {"cublas, dense": lambda: a @ dense.T, "cusparse": lambda: (matrix @ a.T).T}


def _rows(given: Tensors) -> Tensor:
    """Return the row of each entry."""
    return torch.repeat_interleave(given["ptr"].diff().long())


@lru_cache
def _pruned(rows: int, entries: int) -> dict[str, np.ndarray]:
    """Return the tables of a square weight with equally many entries in each row, at random."""
    each, generator = entries // rows, np.random.default_rng(HELD_OUT)
    order = generator.random((rows, rows), np.float32).argpartition(each, axis=1)
    columns = np.sort(order[:, :each], axis=1).ravel()
    starts = np.arange(rows + 1) * each
    return {"ptr": starts.astype(np.int32), "col": columns.astype(np.uint16)}


@dataclass(frozen=True)
class GpuCase:
    """An operator whose arrays have elements of a ``kind``, rows of ``width`` of these, and what
    computes the same in torch. Graphs have a power law; rows of ``pruned`` weights are equally
    long."""

    body: str
    rivals: Callable[[Tensors], Mapping[str, Call]]
    width: int
    kind: str = "float32"
    rows: int = ROWS
    entries: int = ENTRIES
    arrays: tuple[str, ...] = field(default=("val", "x"))
    pruned: bool = False

    @property
    def text(self) -> str:
        """The program."""
        kinds = "".join(f"{name}: {self.kind}; " for name in (*self.arrays, "y"))
        skew = "" if self.pruned else f", skew={SKEW}"
        kind = "uint16" if self.pruned else "int32"
        tables = f"ptr: int32[r+1](sorted < e+1{skew}); col: {kind}[e](index < {self.rows}{skew}); "
        return f"{kinds}{tables}{BY_POINTERS}{self.body}"

    @property
    def extents(self) -> dict[str, int]:
        """The extents of its axes."""
        axes = {"r": self.rows, "e": self.entries} | dict.fromkeys("cdm", self.width)
        return {a: n for a, n in axes.items() if re.search(rf"\b{a}\b", self.body)}

    def tensors(self, device: str) -> dict[str, Tensor]:
        """Return a graph or a weight, and elements in [-1, 1)."""
        tables = _pruned(self.rows, self.entries) if self.pruned else self._graph()
        found = {name: torch.from_numpy(table).to(device) for name, table in tables.items()}
        generator = torch.Generator(device).manual_seed(HELD_OUT)
        for name in self.arrays:
            shapes = {"val": (self.entries,), "a": (self.width, self.rows)}
            shape = shapes.get(name, (self.rows, self.width))
            values = torch.rand(shape, device=device, generator=generator) * 2 - 1
            found[name] = values.to(getattr(torch, self.kind))
        return found

    def _graph(self) -> dict[str, np.ndarray]:
        case = Case(self.body, dict, self.rows, self.entries, self.width)
        rows, columns = case.entries_of(HELD_OUT)
        starts = np.searchsorted(rows, np.arange(self.rows + 1))
        return {"ptr": starts.astype(np.int32), "col": columns.astype(np.int32)}

    def exact(self, given: Tensors) -> Tensor:
        """Return the result in float64, of the first rival."""
        wide = {n: t.double() if t.is_floating_point() else t for n, t in given.items()}
        return next(iter(self.rivals(wide).values()))()


GPU_CASES = {
    **{
        f"weighted 170k x {width} {kind}": GpuCase(WEIGHTED, weighted, width, kind)
        for width in (128, 32)
        for kind in ("float32", "bfloat16")
    },
    **{
        f"linear 80 % x {rows} bfloat16": GpuCase(
            LINEAR, linear, rows, "bfloat16", 8192, 8192 * 1638, ("val", "a"), pruned=True
        )
        for rows in (8, 32)
    },
    "max 170k x 128": GpuCase(GREATEST, greatest, 128, arrays=("x",)),
    "attention 170k x 128": GpuCase(ATTENTION, attention, 128, arrays=("q", "k", "v")),
}

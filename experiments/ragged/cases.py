"""Operators over ranges of entries, the graphs they are timed on, and what others call for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy import sparse

Call = Callable[[], Any]
Arrays = Mapping[str, np.ndarray]
SKEW = 2.1
TABLES = f"row: int32[e](sorted < r, skew={SKEW}); col: int32[e](index < n, skew={SKEW}); "
ALIKE = "ptr: int32[r+1](sorted < e+1); col: uint16[e](index < n); "
BY_ROW, BY_POINTERS = "where row[e] == r; ", "where ptr[r] <= e and e < ptr[r + 1]; "


@dataclass(frozen=True)
class Case:
    """An operator, with ``rows``, columns of ``nodes`` and ``entries``; each row has ``width``
    elements. Graphs have a power law, pruned weights do not; these are also compared with the
    product ``dense`` of ours, if there is one."""

    body: str
    rivals: Callable[[Arrays], Mapping[str, Call]]
    rows: int
    entries: int
    width: int
    pruned: bool = False
    dense: bool = False

    @property
    def text(self) -> str:
        """The program."""
        head = ALIKE + BY_POINTERS if self.pruned else TABLES + BY_ROW
        if "y" not in self.body:
            head = TABLES.replace("sorted < r", f"index < {self.rows}")
        return head.replace("index < n", f"index < {self.rows}") + self.body

    @property
    def extents(self) -> dict[str, int]:
        """The extents of its axes."""
        axes = {"r": self.rows, "e": self.entries, "c": self.width, "d": self.width}
        axes["m"] = self.width
        return {a: n for a, n in axes.items() if re.search(rf"\b{a}\b", self.body)}

    def entries_of(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and columns of all entries, sorted by row, of another graph for each seed."""
        generator = np.random.default_rng(seed)
        if self.pruned:
            chosen = generator.choice(self.rows * self.rows, self.entries, replace=False)
            chosen.sort()
            return chosen // self.rows, chosen % self.rows
        weights = (1 - generator.random(self.rows)) ** (-1 / (SKEW - 1))
        weights /= weights.sum()
        rows = np.sort(generator.choice(self.rows, self.entries, p=weights))
        others = generator.permutation(weights)
        return rows, generator.choice(self.rows, self.entries, p=others)


def _matrix(arrays: Arrays) -> sparse.csr_matrix:
    rows = arrays["starts"].size - 1
    values = arrays.get("val", np.ones(arrays["col"].size, np.float32))
    return sparse.csr_matrix((values, arrays["col"], arrays["starts"]), (rows, rows))


def _torch_matrix(arrays: Arrays) -> torch.Tensor:
    matrix = _matrix(arrays)
    parts = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    return torch.sparse_csr_tensor(*parts, matrix.shape, check_invariants=False)


def weighted(arrays: Arrays) -> dict[str, Call]:
    """Multiply by a sparse matrix."""
    matrix, tensor, x = _matrix(arrays), _torch_matrix(arrays), arrays["x"]
    by_torch = torch.from_numpy(x)
    return {"scipy": lambda: matrix @ x, "torch": lambda: tensor @ by_torch}


def pruned(arrays: Arrays) -> dict[str, Call]:
    """Multiply by a sparse matrix, or by the dense one that it stands for."""
    dense = _matrix(arrays).toarray()
    return {**weighted(arrays), "numpy, dense": lambda: dense @ arrays["x"]}


def linear(arrays: Arrays) -> dict[str, Call]:
    """Multiply rows of activations by a sparse weight, as a layer does, or by the dense one."""
    matrix, tensor, a = _matrix(arrays), _torch_matrix(arrays), arrays["a"]
    rows, dense = torch.from_numpy(a), torch.from_numpy(_matrix(arrays).toarray())
    return {
        "scipy": lambda: np.ascontiguousarray((matrix @ a.T).T),
        "torch": lambda: (tensor @ rows.T).T.contiguous(),
        "torch, dense": lambda: rows @ dense.T,
    }


def dense_weight(arrays: Arrays) -> np.ndarray:
    """Return the whole weight ``w[n, k]``."""
    whole: np.ndarray = _matrix(arrays).toarray()
    return whole


def reduced(how: str) -> Callable[[Arrays], dict[str, Call]]:
    """Reduce neighbours."""

    def calls(arrays: Arrays) -> dict[str, Call]:
        tensor, x = _torch_matrix(arrays), torch.from_numpy(arrays["x"])
        return {"torch": lambda: torch.sparse.mm(tensor, x, how)}

    return calls


def scores(arrays: Arrays) -> dict[str, Call]:
    """Multiply rows of two matrices for each entry."""
    tensor = _torch_matrix({**arrays, "val": np.zeros(arrays["col"].size, np.float32)})
    q, k = torch.from_numpy(arrays["q"]), torch.from_numpy(arrays["k"])
    return {"torch": lambda: torch.sparse.sampled_addmm(tensor, q, k.T, beta=0.0).values()}


def attention(arrays: Arrays) -> dict[str, Call]:
    """Attend to neighbours, by gathering and scattering."""
    rows, columns = (torch.from_numpy(arrays[name].astype(np.int64)) for name in ("row", "col"))
    q, k, v = (torch.from_numpy(arrays[name]) for name in ("q", "k", "v"))
    return {"torch": partial(attended, rows, columns, q, k, v, arrays["starts"].size - 1)}


def attended(
    rows: torch.Tensor,
    columns: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    count: int,
) -> torch.Tensor:
    """Return the attention of each of ``count`` rows to the columns of its entries, by gathering
    and scattering."""
    score = (q[rows] * k[columns]).sum(-1)
    top = score.new_full((count,), -torch.inf).scatter_reduce_(0, rows, score, "amax")
    weight = torch.exp(score - top[rows])
    total = score.new_zeros(count).index_add_(0, rows, weight)
    terms = (weight / total[rows])[:, None] * v[columns]
    return v.new_zeros(count, v.shape[1]).index_add_(0, rows, terms)


WEIGHTED = "y[r,c] = sum[e](val[e] * x[col[e],c])"
LINEAR = "y[m,r] = sum[e](val[e] * a[m,col[e]])"
ATTENTION = "y[r,c] = sum[e](softmax[e](sum[d](q[r,d] * k[col[e],d])) * v[col[e],c])"
CASES = {
    "weighted 170k x 128": Case(WEIGHTED, weighted, 170_000, 960_000, 128),
    "weighted 170k x 32": Case(WEIGHTED, weighted, 170_000, 960_000, 32),
    "weighted 20k x 128": Case(WEIGHTED, weighted, 20_000, 307_000, 128),
    "weighted 90k x 80": Case(WEIGHTED, weighted, 90_000, 1_300_000, 80),
    "weighted 300k x 24": Case(WEIGHTED, weighted, 300_000, 900_000, 24),
    "weighted 50k x 1": Case("y[r] = sum[e](val[e] * x[col[e]])", weighted, 50_000, 1_000_000, 1),
    "mean 170k x 128": Case(
        "y[r,c] = mean[e](x[col[e],c])", reduced("mean"), 170_000, 960_000, 128
    ),
    "max 170k x 128": Case("y[r,c] = max[e](x[col[e],c])", reduced("amax"), 170_000, 960_000, 128),
    "scores 170k x 128": Case(
        "s[e] = sum[d](q[row[e],d] * k[col[e],d])", scores, 170_000, 960_000, 128
    ),
    "attention 170k x 128": Case(ATTENTION, attention, 170_000, 960_000, 128),
    "pruned 80 % x 8": Case(WEIGHTED, pruned, 4096, 3_355_443, 8, True),
    "pruned 80 % x 16": Case(WEIGHTED, pruned, 4096, 3_355_443, 16, True),
    **{
        f"linear {percent} % x {rows}": Case(
            LINEAR, linear, 4096, 4096 * 4096 * (100 - percent) // 100, rows, True, True
        )
        for percent, rows in ((50, 8), (80, 1), (80, 8), (80, 16), (90, 12), (95, 8), (95, 16))
    },
    "pruned 90 % x 64": Case(WEIGHTED, pruned, 4096, 1_677_721, 64, True),
}

"""Products with Clebsch-Gordan coefficients, and what computes the same in e3nn and torch.

    z[e, k, u] = sum of w[e, p, u] * C[p, i, j, k] * x[e, i, u] * y[e, j]

Each path p couples the parts of degrees l1 of x and l2 of y to the part of degree l3 of z, channel
by channel; it has a weight for each edge and channel, as in NequIP and MACE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import torch

from tilewright.spaces.language import Program, program
from tilewright.spaces.workloads.tables import with_tables

Arrays = Mapping[str, np.ndarray]
Call = Callable[[], Any]
TEXT = "z[e,k,u] = sum[p,i,j](C[p,i,j,k] * w[e,p,u] * x[e,i,u] * y[e,j])"


@dataclass(frozen=True)
class Coupling:
    """The degrees of both factors and of the product, and the channels."""

    left: Sequence[int]
    right: Sequence[int]
    result: Sequence[int]
    channels: int

    @property
    def paths(self) -> list[tuple[int, int, int]]:
        """The degrees that couple, by parity and the triangle's inequality."""
        return [
            (a, b, c)
            for a, b, c in product(self.left, self.right, self.result)
            if abs(a - b) <= c <= a + b and (a + b + c) % 2 == 0
        ]

    @cached_property
    def coefficients(self) -> np.ndarray:
        """The coefficients of all paths, [path, i, j, k]: Wigner's 3j symbols in e3nn's basis."""
        o3 = import_module("e3nn.o3")
        sizes = [_end(degrees) for degrees in (self.left, self.right, self.result)]
        found = np.zeros((len(self.paths), *sizes))
        for path, (a, b, c) in enumerate(self.paths):
            place = _part(self.left, a), _part(self.right, b), _part(self.result, c)
            found[(path, *place)] = o3.wigner_3j(a, b, c).numpy()
        return np.where(abs(found) < 1e-6, 0.0, found)

    def program(self, edges: int) -> Program:
        """Return the program of so many edges."""
        paths, i, j, k = self.coefficients.shape
        extents = {"e": edges, "k": k, "u": self.channels, "p": paths, "i": i, "j": j}
        return with_tables(program(TEXT, **extents), {"C": self.coefficients})

    def rivals(self, arrays: Arrays) -> Mapping[str, Call]:
        """Return the calls of libraries, each of arrays in the layout of its own."""
        return {"e3nn": self._e3nn(arrays), "torch.einsum": self._einsum(arrays)}

    def _einsum(self, arrays: Arrays) -> Call:
        """Return an outer product and a contraction with the coefficients, path by path."""
        x, y, w = (torch.from_numpy(arrays[name]) for name in "xyw")
        parts = []
        for path, (a, b, c) in enumerate(self.paths):
            place = _part(self.left, a), _part(self.right, b), _part(self.result, c)
            own = np.ascontiguousarray(self.coefficients[(path, *place)], np.float32)
            parts.append((path, *place, torch.from_numpy(own)))
        shape = (len(x), _end(self.result), self.channels)

        def run() -> np.ndarray:
            found = torch.zeros(shape)
            for path, i, j, k, own in parts:
                outer = torch.einsum("eiu,ej->eiju", x[:, i], y[:, j])
                found[:, k] += torch.einsum("eiju,ijk->eku", outer, own) * w[:, path, None]
            return found.numpy()

        return run

    def _e3nn(self, arrays: Arrays) -> Call:
        """Return e3nn's product, which has the channels before the components of a degree."""
        o3 = import_module("e3nn.o3")

        def irreps(degrees: Sequence[int], channels: int) -> Any:
            return o3.Irreps([(channels, (degree, (-1) ** degree)) for degree in degrees])

        places = [
            (self.left.index(a), self.right.index(b), self.result.index(c), "uvu", True)
            for a, b, c in self.paths
        ]
        made = o3.TensorProduct(
            irreps(self.left, self.channels),
            irreps(self.right, 1),
            irreps(self.result, self.channels),
            places,
            shared_weights=False,
            internal_weights=False,
            irrep_normalization="none",
            path_normalization="none",
        )
        x = torch.from_numpy(_channels_first(arrays["x"], self.left))
        y = torch.from_numpy(arrays["y"])
        w = torch.from_numpy(arrays["w"]).reshape(len(x), -1)

        def run() -> Turned:
            with torch.no_grad():
                return Turned(made(x, y, w).numpy(), self)

        return run


@dataclass(frozen=True)
class Turned:
    """A result of e3nn, which is turned only to be compared."""

    found: np.ndarray
    coupling: Coupling

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the result with channels last."""
        parts, start, channels = [], 0, self.coupling.channels
        for degree in self.coupling.result:
            size = channels * (2 * degree + 1)
            part = self.found[:, start : start + size].reshape(len(self.found), channels, -1)
            parts.append(part.transpose(0, 2, 1))
            start += size
        return np.concatenate(parts, 1)


def _channels_first(x: np.ndarray, degrees: Sequence[int]) -> np.ndarray:
    parts = (x[:, _part(degrees, degree)].transpose(0, 2, 1) for degree in degrees)
    return np.concatenate([part.reshape(len(x), -1) for part in parts], 1)


def _end(degrees: Sequence[int]) -> int:
    return sum(2 * degree + 1 for degree in degrees)


def _part(degrees: Sequence[int], degree: int) -> slice:
    """Return the components of a degree."""
    start = _end(degrees[: degrees.index(degree)])
    return slice(start, start + 2 * degree + 1)


CASES = {
    "l<=1, 64 channels": Coupling([0, 1], [0, 1], [0, 1], 64),
    "l<=2, 32 channels": Coupling([0, 1, 2], [0, 1, 2], [0, 1, 2], 32),
    "l<=2 by l<=3, 128 channels": Coupling([0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3], 128),
    "l<=2 by l<=2, 50 channels": Coupling([0, 1, 2], [0, 1, 2], [0, 1, 2], 50),
}

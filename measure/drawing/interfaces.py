"""The interface of draws of random problems, shared by all kinds of workloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from tilewright.spaces.workloads.workload import Workload

Bounds = tuple[np.ndarray, np.ndarray]
"""The least and the greatest value that each element of an array may have."""


class Draw(Protocol):
    """Inputs of one problem, and what kernels may make of them."""

    @property
    def workload(self) -> Workload:
        """The workload of the draw."""
        ...

    @property
    def inputs(self) -> Mapping[str, np.ndarray]:
        """An array for each input, in its dtype, shape and memory order."""
        ...

    @property
    def name(self) -> str:
        """Name the special property of these inputs; empty for random ones."""
        ...

    def allowed(self, out: Mapping[str, Bounds] | None = None) -> dict[str, Bounds]:
        """Return the least and the greatest value that each element of each output may have, of the
        output's shape and of :func:`spaces.numerics.allowance.bounds_dtype`, by its name.

        Both are NaN where the value must be; they are minus and plus infinity where it may be
        anything, and where nothing is known of it. ``out`` may hold the arrays to be filled.
        """
        ...


class FreshInputs(Protocol):
    """Random problems of one workload."""

    @property
    def workload(self) -> Workload:
        """The workload of the inputs."""
        ...

    def draw(self, seed: int, final: bool = False) -> Draw:
        """Return other inputs for another seed. Those of a ``final`` comparison have nothing in
        common with those before, and all elements of outputs are known then."""
        ...

"""Products of complex numbers for each of many modes, as Fourier layers have them, beside torch.

    y[b, o, m] = sum of x[b, i, m] * w[i, o, m]

What a transform leaves has modes last; the product of matrices wants them first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tilewright.spaces.language import Program, program

Call = Callable[[], Any]


@dataclass(frozen=True)
class Spectral:
    """The extents, and the axes of both factors from the slowest in memory to the fastest."""

    batch: int
    inputs: int
    outputs: int
    modes: int
    x: str = "bim"
    w: str = "iom"

    @property
    def y(self) -> str:
        """The axes of the result: modes are where those of ``x`` are."""
        return "mbo" if self.x.startswith("m") else "bom"

    def program(self, edges: int) -> Program:
        """Return the program; it has no edges."""
        x, w, y = (",".join(axes) for axes in (self.x, self.w, self.y))
        text = f"x: complex64[{x}]; w: complex64[{w}]; y[{y}] = sum[i](x[{x}] * w[{w}])"
        return program(text, b=self.batch, i=self.inputs, o=self.outputs, m=self.modes)

    def rivals(self, arrays: Mapping[str, np.ndarray]) -> Mapping[str, Call]:
        """Return torch's einsum of the same arrays, and its product of those with modes first,
        which are turned before."""
        x, w = (torch.view_as_complex(torch.from_numpy(arrays[name])) for name in "xw")
        rows, matrices = self._turned(x, self.x, "mbi"), self._turned(w, self.w, "mio")
        formula = f"{self.x},{self.w}->{self.y}"
        places = ["mbo".index(axis) for axis in self.y]
        return {
            "torch.einsum": lambda: torch.view_as_real(torch.einsum(formula, x, w)),
            "torch.bmm": lambda: torch.view_as_real(torch.bmm(rows, matrices).permute(places)),
        }

    def _turned(self, array: torch.Tensor, axes: str, to: str) -> torch.Tensor:
        return array.permute([axes.index(axis) for axis in to]).contiguous()


CASES = {
    "modes last, 16 x 64 x 64, 256 modes": Spectral(16, 64, 64, 256),
    "weights' modes first, 16 x 64 x 64, 256 modes": Spectral(16, 64, 64, 256, w="mio"),
    "modes first, 16 x 64 x 64, 256 modes": Spectral(16, 64, 64, 256, "mbi", "mio"),
    "modes last, 8 x 32 x 32, 1000 modes": Spectral(8, 32, 32, 1000),
    "modes first, 8 x 32 x 32, 1000 modes": Spectral(8, 32, 32, 1000, "mbi", "mio"),
}

"""Layers in training: the sum that the backward pass reads, beside its activation.

Feed-forward layers of GPT-2, BERT-Large and Llama 3, and few rows of the first one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiments.operators.families.case import Case
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.workload import Workload

TEXT = "t[i, j] = sum[k](x[i, k] * w[j, k]) + b[j]; y[i, j] = gelu(t[i, j]); -> t, y"
SHAPES = (
    (4096, 3072, 768),
    (2048, 4096, 1024),
    (2048, 14336, 4096),
    (512, 3072, 768),
    (16, 3072, 768),
    (4, 14336, 4096),
)
"""Rows, columns and terms."""
ROUNDED = 1.5e-2
"""The error allowed of sums that are rounded to bfloat16."""


@dataclass(frozen=True)
class Saved(Case):
    """A layer with both outputs."""

    @property
    def alone(self) -> tuple[Workload, Workload]:
        """The two kernels that it takes otherwise: the sum, and its activation."""
        words = dict(self.parameters)
        i, j, k, dtype = (words[name] for name in ("i", "j", "k", "dtype"))
        given = {"m": i, "n": j, "k": k, "dtype": dtype, "b": "col", "epilogue": "x + bias[n]"}
        return (
            workload("matmul", **given),
            workload("y[i, j] = gelu(t[i, j])", i=i, j=j, dtype=dtype),
        )


def _case(i: int, j: int, k: int) -> Saved:
    words = (("i", i), ("j", j), ("k", k), ("dtype", "bfloat16"))
    return Saved(TEXT, words, f"sum and gelu {i}x{j}x{k}", ROUNDED)


CASES = tuple(_case(*shape) for shape in SHAPES)


def reference(x: Any, w: Any, b: Any) -> Any:
    """Return the sums and their activations."""
    import torch

    total = torch.nn.functional.linear(x, w, b)
    return total, torch.nn.functional.gelu(total)

"""Operators of transformers, and the last layers of networks of images; see ``images``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from experiments.models.images import Call, Rivals, Tensors
from experiments.operators.families.case import Case
from experiments.operators.references import references
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.workload import Workload

EPILOGUES: Mapping[str, str] = {
    "": "",
    "scale": "x * 0.125",
    "bias": "x + bias[n]",
    "residual": "x + bias[n] + residual[m,n]",
    "gelu": "gelu(x + bias[n])",
    "gelu_tanh": "gelu_tanh(x + bias[n])",
    "tanh": "tanh(x + bias[n])",
}
"""Epilogues of products. Scores are scaled by ``1 / sqrt(64)``."""


@dataclass(frozen=True)
class Product:
    """``batch`` products of m x k by k x n, B as [k, n], or [n, k] if ``order`` is ``col``."""

    m: int
    n: int
    k: int
    follows: str
    dtype: str
    order: str = "row"
    batch: int = 0

    @property
    def name(self) -> str:
        """A name such as ``128x768x768 col, bias``."""
        batch = f"{self.batch} x " * bool(self.batch)
        order = " col" * (self.order == "col")
        follows = f", {self.follows}" * bool(self.follows)
        return f"{batch}{self.m}x{self.n}x{self.k}{order}{follows}"

    @property
    def weights(self) -> int:
        """The number of weights of the matrix and the bias; scores and contexts have none."""
        return 0 if self.batch else self.n * (self.k + ("bias" in EPILOGUES[self.follows]))

    @cached_property
    def workload(self) -> Workload:
        """The workload."""
        sizes = {"m": self.m, "n": self.n, "k": self.k}
        sizes |= {"batch": self.batch} if self.batch else {}
        words = {"b": self.order, "dtype": self.dtype, "epilogue": EPILOGUES[self.follows]}
        return workload("matmul", **sizes, **words)

    @property
    def rivals(self) -> Rivals:
        """The same by torch."""
        follows = self.follows

        def eager(**tensors: Any) -> Any:
            import torch

            apply = torch.nn.functional
            a, b = tensors["A"], tensors["B"]
            if "bias" not in tensors:
                found = torch.matmul(a, b)
                return found * 0.125 if follows == "scale" else found
            found = apply.linear(a, b.t(), tensors["bias"])
            if follows == "residual":
                return found + tensors["residual"]
            if follows.startswith("gelu"):
                return apply.gelu(found, approximate=follows[5:] or "none")
            return torch.tanh(found) if follows == "tanh" else found

        return {"eager": eager}

    def alone(self, tensors: Tensors) -> Call | None:
        """Return the product alone, without what follows it."""
        import torch

        return partial(torch.matmul, tensors["A"], tensors["B"]) if self.follows else None

    def others(self, tensors: Tensors) -> Mapping[str, Call]:
        """Matrices lie as they do."""
        return {}


@dataclass(frozen=True)
class Named:
    """An operator by its name in the language, and how many weights it has."""

    case: Case
    weights: int = 0

    @property
    def name(self) -> str:
        """A name such as ``layernorm 128x768 float32``."""
        return self.case.name

    @property
    def workload(self) -> Workload:
        """The workload."""
        return self.case.workload

    @property
    def rivals(self) -> Rivals:
        """The functions of torch that compute it."""
        return references(self.case)

    def alone(self, tensors: Tensors) -> None:
        """Return the operator itself, which nothing follows."""

    def others(self, tensors: Tensors) -> Mapping[str, Call]:
        """Rows lie as they do."""
        return {}


def named(operator: str, weights: int = 0, /, **parameters: int | str) -> Named:
    """Return an operator of these parameters."""
    return Named(Case(operator, tuple(parameters.items())), weights)

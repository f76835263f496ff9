"""Errors of gradients that read what a layer gives in the place of what it reads.

Norms are solved for their input by our kernels. GELU and SiLU are turned around in float64 by
bisection, on the side of their minimum that one bit names: what is lost then is lost by rounding
the value that is kept, whatever the algorithm.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from tilewright import best, gradient

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
FIRST, LAST, HALVINGS = -40.0, 60.0, 64
"""Ends of the interval in which the activations are turned around, and steps of that, after which
float64 has no number between the ends."""
POINTS = 1_000_000


def errors(points: int = POINTS) -> dict[str, dict[str, float]]:
    """Return the greatest errors, by what is solved and the dtype that it is kept in; those of
    activations at so many ``points``."""
    found = {}
    for kept in DTYPES:
        found[f"layernorm, {kept}"] = _norm(kept, weight=1.0, bias=0.1)
        found[f"layernorm, biases of 100 weights, {kept}"] = _norm(kept, weight=0.01, bias=1.0)
        for name, activation in (("gelu", functional.gelu), ("silu", functional.silu)):
            found[f"{name}, {kept}"] = _activation(activation, DTYPES[kept], points)
    return found


def _norm(
    kept: str, weight: float, bias: float, rows: int = 256, columns: int = 1024
) -> dict[str, float]:
    """Return the error of each derivative of a layernorm of x and of y, in parts of the greatest
    derivative."""
    torch.manual_seed(0)
    dtype = DTYPES[kept]
    x, dy = (torch.randn(rows, columns).to(dtype).double() for _ in range(2))
    w = (weight * (1 + 0.1 * torch.randn(columns))).to(dtype).double()
    b = (bias * torch.randn(columns)).to(dtype).double()
    given = [each.requires_grad_() for each in (x, w, b)]
    y = functional.layer_norm(x, (columns,), w, b)
    wanted = torch.autograd.grad(y, given, dy)
    mean, rstd = x.mean(1), (x.var(1, unbiased=False) + 1e-5).rsqrt()
    known = {"x": x, "weight": w, "bias": b, "dy": dy, "y": y.to(dtype), "mean": mean, "rstd": rstd}
    norm, wrt = f"layernorm r={rows} c={columns}", ("x", "weight", "bias")
    found = {}
    for way, saved, solved in (("of x", "mean,rstd", ""), ("of y", "y,rstd", "x")):
        program = gradient(norm, wrt, saved, solved=solved)
        function = best(program, "cpu:threads=1", None)
        made = function(*(known[o.name].detach().float() for o in program.operands))
        for name, own, other in zip(wrt, made, wanted, strict=True):
            found[f"d{name} {way}"] = float((own - other).abs().max() / other.abs().max())
    return found


def _activation(
    activation: Callable[[Tensor], Tensor], dtype: torch.dtype, points: int
) -> dict[str, float]:
    """Return the error of the derivative at so many normal numbers, and the share of them where it
    is more than four roundings."""
    torch.manual_seed(0)
    x = torch.randn(points).to(dtype).double()
    turn = _inverse(_derivative(activation), torch.zeros(1).double(), torch.ones(1) > 0, (-3, 0))
    right = x >= turn
    y = torch.maximum(activation(x).to(dtype).double(), activation(turn))
    ends = torch.where(right, turn, FIRST), torch.where(right, LAST, turn)
    solved = _inverse(activation, y, right, ends)
    derivative = _derivative(activation)
    apart = (derivative(solved) - derivative(x)).abs()
    rounding = torch.finfo(dtype).eps / 2
    return {
        "rounding": rounding,
        "most": float(apart.max()),
        "mean": float(apart.mean()),
        "share over 4 roundings": float((apart > 4 * rounding).double().mean()),
    }


def _derivative(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def derivative(x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        (found,) = torch.autograd.grad(function(x).sum(), x)
        return found

    return derivative


def _inverse(
    function: Callable[[Tensor], Tensor],
    value: Tensor,
    rises: Tensor,
    ends: tuple[Tensor | float, Tensor | float],
) -> Tensor:
    """Return where a function has some values, between two ends of an interval in which it rises or
    falls."""
    low, high = (torch.as_tensor(end).double().expand(value.shape) for end in ends)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        beyond = (function(middle) > value) == rises
        low, high = torch.where(beyond, low, middle), torch.where(beyond, middle, high)
    return (low + high) / 2

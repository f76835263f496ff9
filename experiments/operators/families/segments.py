"""Rows in segments, each with the matrix of its expert: what is compared on a CPU, and tables of
segments for GPUs, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.operators.families.case import Case

LAWS = ("uniform", "zipf")
FUSED = "silu(x + bias[expert[t], n]) * gate[t, n]"


@dataclass(frozen=True)
class Segmented(Case):
    """A grouped product whose rows experts get by a ``law``, one of :data:`LAWS`."""

    law: str = LAWS[0]

    def inputs(self) -> dict[str, np.ndarray]:
        """Random arrays with the table."""
        drawn = super().inputs()
        count = drawn["B"].shape[0]
        return drawn | {"expert": table(len(drawn["expert"]), count, self.law)}


def table(rows: int, experts: int, law: str) -> np.ndarray:
    """The expert of each row, sorted: all are as likely, or likely by Zipf's law in some order."""
    generator = np.random.default_rng(0)
    weights = np.ones(experts)
    if law == "zipf":
        weights = generator.permutation(1 / np.arange(1, experts + 1))
    chosen = generator.choice(experts, rows, p=weights / weights.sum())
    return np.sort(chosen).astype(np.int32)


def by_groups(expert: Any, A: Any, B: Any, bias: Any = None, gate: Any = None) -> Any:  # noqa: N803
    """Return a product of torch's for each expert that has rows, and what is fused to ours."""
    import torch

    counts = torch.bincount(expert, minlength=B.shape[0]).tolist()
    products = [a @ b for a, b in zip(A.split(counts), B, strict=True) if len(a)]
    found = torch.cat(products)
    if bias is None:
        return found
    return torch.nn.functional.silu(found + bias[expert.long()]) * gate


def _case(experts: int, depth: int, columns: int, rows: int, law: str, fused: bool) -> Segmented:
    words: dict[str, int | str] = {"t": rows, "n": columns, "k": depth, "experts": experts}
    words |= {"b": "row" if fused else "col"} | ({"epilogue": FUSED} if fused else {})
    title = f"{experts} x {depth}x{columns}, {rows} rows, {law}{', fused' if fused else ''}"
    return Segmented("grouped_matmul", tuple(words.items()), title, law)


CASES = tuple(
    _case(*layer, rows, law, fused)
    for layer, fused in (((8, 512, 1024), False), ((64, 256, 256), False), ((8, 512, 1024), True))
    for rows in (64, 512, 4096)
    for law in LAWS
)
"""Weights as ``nn.Linear`` has them where nothing is fused, one row of inputs after the other where
something is."""

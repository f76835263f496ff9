"""What is compared, and the schedules that are tried in any case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spaces.operators import workload
from spaces.schedule import Value
from spaces.workloads.workload import Workload


@dataclass(frozen=True)
class AttentionCase:
    """``heads`` of ``depth`` over ``length`` positions, each of which sees all or those before."""

    batch: int
    heads: int
    kv_heads: int
    length: int
    depth: int
    causal: bool
    dtype: str

    @property
    def name(self) -> str:
        """Names the case in results."""
        kind = "causal" if self.causal else "plain"
        heads = f"b{self.batch} h{self.heads}/{self.kv_heads} d{self.depth}"
        return f"{kind} {heads} {self.length} {self.dtype}"

    @property
    def workload(self) -> Workload:
        """As the tuner knows it."""
        return workload(
            "attention", b=self.batch, h=self.heads, kv=self.kv_heads, i=self.length,
            j=self.length, d=self.depth, mask="causal" if self.causal else "none",
            dtype=self.dtype,
        )  # fmt: skip

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Those of the operands."""
        kv = (self.batch, self.kv_heads, self.length, self.depth)
        return {"q": (self.batch, self.heads, self.length, self.depth), "k": kv, "v": kv}

    @property
    def flops(self) -> float:
        """Operations of both products, half of them where later positions are hidden."""
        whole = 4.0 * self.batch * self.heads * self.length**2 * self.depth
        return whole / 2 if self.causal else whole


CASES = tuple(
    AttentionCase(1, 16, 16, length, depth, causal, dtype)
    for dtype, lengths in (("bfloat16", (4096, 16384, 1024)), ("float16", (4096, 1024, 16384)))
    for length in lengths
    for depth in (128, 64)
    for causal in (False, True)
)
_USUAL: dict[str, Value] = {
    "residency": 1, "overlap": 1, "queries": "shared", "query_buffers": 2, "stages": 2,
    "ping_pong": 1, "rescale": "late", "blocks": "persistent", "section": 1,
}  # fmt: skip
_WIDE: dict[str, Value] = {"warpgroups": 3, "keys": 80}
_LOW: dict[str, Value] = {"warpgroups": 2, "keys": 128, "queries": "registers"}
FIXED: tuple[dict[str, Value], ...] = tuple(
    _USUAL | changes | walk
    for changes in (
        _WIDE,
        _WIDE | {"stages": 3},
        _LOW,
        {"warpgroups": 2, "keys": 128},
        {"warpgroups": 2, "keys": 176, "query_buffers": 1},
        {"warpgroups": 3, "keys": 128},
        {"warpgroups": 3, "keys": 128, "overlap": 0},
        {"warpgroups": 4, "keys": 64, "stages": 4},
        {"warpgroups": 2, "keys": 128, "rescale": "always"},
    )
    for walk in (
        {"blocks": "persistent"},
        {"blocks": "tickets", "section": 16},
        {"blocks": "tickets", "section": 4},
        {"blocks": "grid", "query_buffers": 1, "section": 16},
    )
)
"""Schedules that were good in a sketch, and some that show what a decision gives; those that break
a rule of a case are left out."""

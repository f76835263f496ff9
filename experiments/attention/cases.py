"""Attention cases: ten operators at several lengths, and the schedules that are tried first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.template import Template
from tilewright.spaces.workloads.workload import Workload

WINDOW = 1024
PAGE = 16
SOFTCAP = 50.0


@dataclass(frozen=True)
class AttentionCase:
    """``queries``, the last of ``length`` positions, of heads of ``depth``. ``form`` says which
    positions they see, what becomes of scores and where keys are: words of ``causal``, ``alibi``,
    ``softcap``, ``window`` and ``pages``, of sixteen positions, which a table names. Operands in
    float8 have a scale for each head, and a bfloat16 output."""

    form: str
    batch: int
    heads: int
    kv_heads: int
    queries: int
    length: int
    depth: int
    dtype: str

    def has(self, word: str) -> bool:
        """Tell whether the form has a word."""
        return word in self.form.split()

    @property
    def name(self) -> str:
        """Names the case in results."""
        heads = f"b{self.batch} h{self.heads}/{self.kv_heads} d{self.depth}"
        rows = "" if self.queries == self.length else f"{self.queries}x"
        return f"{self.form or 'plain'} {heads} {rows}{self.length} {self.dtype}"

    @cached_property
    def workload(self) -> Workload:
        """The case as the tuner knows it."""
        if self.has("pages"):
            return self._paged
        if self.is_float8:
            return self._scaled
        return workload(
            "attention", b=self.batch, h=self.heads, kv=self.kv_heads, i=self.queries,
            j=self.length, d=self.depth, mask="causal" if self.has("causal") else "none",
            window=WINDOW if self.has("window") else 0, alibi=int(self.has("alibi")),
            softcap=SOFTCAP if self.has("softcap") else 0.0, dtype=self.dtype,
        )  # fmt: skip

    @property
    def is_float8(self) -> bool:
        """Tell whether both products are of float8."""
        return self.dtype.startswith("float8")

    @property
    def _scaled(self) -> Workload:
        head = f"h // {self.heads // self.kv_heads}"
        where = f"where j <= i + {self.length - self.queries}\n" if self.has("causal") else ""
        score = f"sum[d](q[b,h,i,d] * k[b,{head},j,d]) * qs[h] * ks[{head}]"
        text = (
            f"qs: float32[h]\nks: float32[{self.kv_heads}]\nvs: float32[{self.kv_heads}]\n"
            f"k: {self.dtype}[b,{self.kv_heads},j,d]\nv: {self.dtype}[b,{self.kv_heads},j,e]\n"
            f"y: bfloat16[b,h,i,e]\n{where}y[b,h,i,e] = sum[j](softmax[j]({score} * "
            f"{1 / math.sqrt(self.depth)!r}) * v[b,{head},j,e]) * vs[{head}]"
        )
        return workload(
            text, dtype=self.dtype, b=self.batch, h=self.heads, i=self.queries, j=self.length,
            d=self.depth, e=self.depth,
        )  # fmt: skip

    @property
    def _paged(self) -> Workload:
        pages, group = self.batch * self.length // PAGE, self.heads // self.kv_heads
        cache = f"{self.dtype}[{pages},{PAGE},{self.kv_heads},{self.depth}]"
        place = f"t[b,j // {PAGE}],j % {PAGE},h // {group}"
        scores = f"sum[d](q[b,h,i,d] * k[{place},d]) * {1 / math.sqrt(self.depth)!r}"
        text = (
            f"t: int32[b,{self.length // PAGE}](index < {pages})\nk: {cache}\nv: {cache}\n"
            f"y[b,h,i,e] = sum[j](softmax[j]({scores}) * v[{place},e])"
        )
        return workload(
            text, dtype=self.dtype, b=self.batch, h=self.heads, i=self.queries, j=self.length,
            d=self.depth, e=self.depth,
        )  # fmt: skip

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shapes of the operands."""
        return {array.name: array.shape for array in self.workload.inputs}

    @property
    def flops(self) -> float:
        """Operations of both products, for the positions that queries see."""
        return float(self.workload.flops)


def _prefill(
    form: str,
    length: int,
    kv: int = 32,
    depth: int = 128,
    dtype: str = "bfloat16",
    batch: int = 1,
) -> AttentionCase:
    heads = 32 * 128 // depth
    return AttentionCase(form, batch, heads, kv * heads // 32, length, length, depth, dtype)


def _decode(
    form: str, length: int, kv: int = 32, batch: int = 1, dtype: str = "bfloat16"
) -> AttentionCase:
    return AttentionCase(form, batch, 32, kv, 1, length, 128, dtype)


def _ten(length: int) -> tuple[AttentionCase, ...]:
    """Return ten operators at a length: six of all positions, four of one more."""
    return (
        _prefill("", length),
        _prefill("causal", length),
        _prefill("causal", length, kv=8),
        _prefill("causal alibi", length),
        _prefill("causal softcap", length, kv=8),
        _prefill("causal softcap window", length, kv=8),
        _decode("", length),
        _decode("", length, kv=8),
        _decode("alibi", length),
        _decode("softcap", length, kv=8),
    )


_BATCHED = (
    _decode("", 4096, kv=8, batch=64),
    _decode("", 65536, kv=8),
    AttentionCase("", 16, 128, 1, 1, 4096, 128, "bfloat16"),
)
_WINDOWED = _prefill("causal window", 4096, kv=8)
_PAGED = _decode("pages", 4096, kv=8, batch=64)
_FLOAT16 = tuple(_prefill(form, 4096, dtype="float16") for form in ("", "causal"))
_HEAD_64 = tuple(_prefill(form, 4096, depth=64) for form in ("", "causal"))
_BATCHES = tuple(_prefill(form, 8192, batch=n) for n in (8, 32) for form in ("", "causal"))
_FLOAT8 = (
    *(_prefill(form, 4096, dtype="float8_e4m3fn") for form in ("", "causal")),
    _decode("", 4096, kv=8, batch=64, dtype="float8_e4m3fn"),
    _decode("", 65536, kv=8, dtype="float8_e4m3fn"),
)
CASES = tuple(
    dict.fromkeys(
        (
            *_ten(4096),
            *_BATCHED,
            _PAGED,
            _WINDOWED,
            *_HEAD_64,
            *_FLOAT16,
            *(case for length in (1024, 16384, 512, 8192, 256, 2048, 128) for case in _ten(length)),
            *_BATCHES,
            *_FLOAT8,
        )
    )
)
"""Cases in the order in which they are measured, the most telling first."""

_USUAL: dict[str, Value] = {
    "blocks_per_sm": 1, "overlap": 1, "chain_overlap": 0, "query_storage": "shared",
    "query_buffers": 2, "stages": 2,
    "ping_pong": 1, "rescale": "late", "tile_scheduler": "persistent", "head_group": 1,
    "skip_per_warpgroup": 0,
    "splits": 1,
}  # fmt: skip
_WIDE: dict[str, Value] = {"warpgroups": 3, "keys": 80}
_LOW: dict[str, Value] = {"warpgroups": 2, "keys": 128, "query_storage": "registers"}
_TILES: tuple[dict[str, Value], ...] = (
    _WIDE,
    _WIDE | {"chain_overlap": 1},
    _WIDE | {"stages": 4, "query_buffers": 1, "ping_pong": 0, "chain_overlap": 1},
    _WIDE | {"keys": 112, "overlap": 0, "rescale": "moved", "query_buffers": 1},
    _LOW,
    _LOW | {"chain_overlap": 1, "rescale": "always"},
    _LOW | {"chain_overlap": 2},
    _LOW | {"chain_overlap": 2, "rescale": "always"},
    _LOW | {"keys": 64},
    {"warpgroups": 3, "keys": 64},
    {"warpgroups": 3, "keys": 128},
    {"warpgroups": 4, "keys": 64, "stages": 4},
)
_FLOAT8_USUAL: dict[str, Value] = _USUAL | {"warpgroups": 2, "rescale": "moved"}
_FLOAT8_TILES: tuple[dict[str, Value], ...] = (
    {"keys": 128},
    {"keys": 128, "chain_overlap": 1},
    {"keys": 128, "chain_overlap": 2},
    {"keys": 128, "stages": 3},
    {"keys": 128, "stages": 3, "chain_overlap": 1, "query_buffers": 1},
    {"keys": 128, "ping_pong": 0, "stages": 3},
    {"keys": 128, "rescale": "always", "chain_overlap": 1},
    {"keys": 128, "overlap": 0, "query_buffers": 1},
    {"keys": 96, "query_storage": "registers", "chain_overlap": 1},
    {"keys": 96, "query_storage": "registers", "chain_overlap": 2, "stages": 3},
    {"keys": 96, "chain_overlap": 1, "stages": 4},
    {"keys": 64, "stages": 4},
)
_WALKS: tuple[dict[str, Value], ...] = (
    {"tile_scheduler": "persistent"},
    {"tile_scheduler": "tickets", "head_group": 16},
    {"tile_scheduler": "tickets", "head_group": 4},
    {"tile_scheduler": "tickets", "head_group": 16, "skip_per_warpgroup": 1},
    {"tile_scheduler": "tickets", "head_group": 4, "skip_per_warpgroup": 1},
    {"tile_scheduler": "grid", "query_buffers": 1, "head_group": 16},
)
_FEW_ROWS = _USUAL | {"ping_pong": 0, "query_buffers": 1, "tile_scheduler": "grid"}
_FEW_TILES: tuple[dict[str, Value], ...] = (
    {"warpgroups": 1, "keys": 128},
    {"warpgroups": 1, "keys": 64, "stages": 3},
    {"warpgroups": 1, "keys": 64, "stages": 3, "overlap": 0, "blocks_per_sm": 2},
    {"warpgroups": 2, "keys": 64, "stages": 3},
    {"warpgroups": 2, "keys": 128},
    {"warpgroups": 2, "keys": 128, "ping_pong": 1},
)
_WARPS: dict[str, Value] = {
    "query_storage": "registers", "row_fragments": 1, "keys": 64, "warps": 4, "stages": 2,
    "blocks_per_sm": 2, "rescale": "late", "splits": 1, "merge": "kernel", "order": "rows",
}  # fmt: skip
_BLOCKS: tuple[dict[str, Value], ...] = (
    {},
    {"order": "rows down"},
    {"query_storage": "shared", "keys": 32, "blocks_per_sm": 3},
    {"warps": 1, "keys": 64, "blocks_per_sm": 3},
    {"warps": 1, "keys": 32, "stages": 4, "blocks_per_sm": 3},
    {"warps": 1, "keys": 32, "stages": 3, "blocks_per_sm": 4},
)
_FLOAT8_WARPS: dict[str, Value] = _WARPS | {"weight_dtype": "float8_e4m3fn", "rescale": "moved"}
_FLOAT8_BLOCKS: tuple[dict[str, Value], ...] = (
    {},
    {"order": "rows down"},
    {"keys": 128},
    {"keys": 128, "order": "rows down"},
    {"query_storage": "shared"},
    {"warps": 8, "blocks_per_sm": 1},
    {"warps": 8, "blocks_per_sm": 1, "keys": 128, "order": "rows down"},
    {"row_fragments": 2, "blocks_per_sm": 1},
    {"row_fragments": 2, "blocks_per_sm": 1, "keys": 32, "order": "rows down"},
)
_FEW_WARPS: dict[str, Value] = _WARPS | {"warps": 1, "query_storage": "shared"}
_TEAMS: tuple[dict[str, Value], ...] = (
    {"warp_splits": 4, "keys": 32, "stages": 3, "blocks_per_sm": 1},
    {"warp_splits": 8, "keys": 16, "stages": 3, "blocks_per_sm": 1},
    {"warp_splits": 2, "keys": 64, "stages": 3, "blocks_per_sm": 1},
    {"warp_splits": 4, "keys": 16, "stages": 4, "blocks_per_sm": 1},
    {"warp_splits": 2, "keys": 32, "stages": 2, "blocks_per_sm": 2},
)
_MERGED = (
    (1, "kernel"),
    (4, "kernel"),
    (6, "kernel"),
    (8, "kernel"),
    (8, "early"),
    (12, "kernel"),
    (16, "kernel"),
    (16, "early"),
    (32, "kernel"),
    (16, "last"),
    (4, "cluster"),
    (8, "cluster"),
)
FIXED: Mapping[str, tuple[Mapping[str, Value], ...]] = {
    "chained_hopper": (
        *(_USUAL | tile | walk for tile in _TILES for walk in _WALKS),
        *(_FLOAT8_USUAL | tile | walk for tile in _FLOAT8_TILES for walk in _WALKS),
        *(_FEW_ROWS | tile | {"splits": n} for tile in _FEW_TILES for n in (1, 4, 16)),
        *(
            _FEW_ROWS | tile | {"splits": n, "merge": merge}
            for tile in _FEW_TILES
            for n, merge in (
                (2, "kernel"),
                (4, "kernel"),
                (4, "early"),
                (8, "kernel"),
                (8, "early"),
                (16, "kernel"),
                (16, "early"),
                (4, "cluster"),
                (8, "cluster"),
            )
        ),
    ),
    "chained": (
        *(_WARPS | each | {"splits": n} for each in _BLOCKS for n in (1, 4, 16, 32)),
        *(_FEW_WARPS | each | {"splits": n, "merge": m} for each in _TEAMS for n, m in _MERGED),
        *(_FLOAT8_WARPS | each for each in _FLOAT8_BLOCKS),
    ),
}
"""Schedules of each template that are tried in any case; those that break a rule of a case are left
out, and a decision that one does not name has its last value."""


EARLIER: Mapping[str, Value] = {"warp_splits": 1}
"""Values of decisions that recorded schedules did not have yet."""


def completed(template: Template, chosen: Mapping[str, Value]) -> Schedule | None:
    """Return the schedule of some values, others the last of their decisions; None if one is no
    value, or of no decision."""
    given = {**EARLIER, **chosen}
    values = {d.name: given.get(d.name, d.values[-1]) for d in template.decisions}
    known = all(values[d.name] in d.values for d in template.decisions)
    if not known or chosen.keys() - values.keys():
        return None
    return Schedule(template.name, tuple(values.items()))

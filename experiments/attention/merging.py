"""Time the ways to merge parts of keys: kernels that differ in that alone, in turns.

    python -m experiments.attention.merging [--out FILE]

A second kernel, one that begins early, the last block, or the blocks of a cluster merge what blocks
have found of their part: of 128 heads that share one of keys, of decodes, and of short prefills.
Needs a GPU.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from experiments.attention.cases import AttentionCase
from experiments.attention.side_by_side import trial_of
from experiments.gpu_matmul.timing import interleave
from experiments.resuming import resume, write
from tilewright.spaces.cuda.chains.splits.splitting import CLUSTER, EARLY, MERGES
from tilewright.spaces.schedule import Value

Values = Mapping[str, Value]
ALL = (*MERGES, EARLY, CLUSTER)
HOPPER: Values = {
    "warpgroups": 1, "blocks_per_sm": 1, "splits": 4, "merge": EARLY, "keys": 128, "overlap": 1,
    "chain_overlap": 0, "query_storage": "shared", "tile_scheduler": "grid", "query_buffers": 1,
    "stages": 2,
    "ping_pong": 0, "rescale": "late", "head_group": 1, "skip_per_warpgroup": 0,
}  # fmt: skip
DECODE: Values = {
    "query_storage": "shared", "columns": 128, "row_fragments": 1, "keys": 32, "warps": 1,
    "warp_splits": 4,
    "stages": 3, "blocks_per_sm": 1, "rescale": "late", "splits": 8, "merge": EARLY,
    "order": "rows",
}  # fmt: skip
WHOLE: Values = {
    **DECODE, "columns": 64, "warps": 4, "warp_splits": 1, "stages": 4,
    "query_storage": "registers",
    "splits": 1, "merge": MERGES[0],
}  # fmt: skip
SHOWN = ("merge", "splits", "warpgroups", "warps", "warp_splits", "blocks_per_sm", "keys", "stages")


@dataclass(frozen=True)
class Compared:
    """Kernels of one template for a case."""

    case: AttentionCase
    template: str
    schedules: Sequence[Values]


def merged_by(names: Sequence[str], base: Values, **changes: Value) -> list[Values]:
    """Return a schedule with each of these ways of merging."""
    return [{**base, **changes, "merge": name} for name in names]


def compared() -> list[Compared]:
    """Return all that is."""
    both = (EARLY, CLUSTER)
    two = {"blocks_per_sm": 2, "keys": 64, "overlap": 0}
    shared = AttentionCase("", 16, 128, 1, 1, 4096, 128, "bfloat16")
    groups = AttentionCase("", 1, 32, 8, 1, 4096, 128, "bfloat16")
    heads = AttentionCase("", 1, 32, 32, 1, 4096, 128, "bfloat16")
    short = AttentionCase("causal", 1, 12, 12, 128, 128, 64, "float16")
    return [
        Compared(shared, "chained_hopper", [
            *merged_by(ALL, HOPPER),
            *merged_by(both, HOPPER, keys=64, stages=3),
            *merged_by(both, HOPPER, **two),
            *merged_by(both, HOPPER, **two, splits=8),
            *merged_by(both, HOPPER, warpgroups=2, splits=8),
            *merged_by(both, HOPPER, warpgroups=2),
            *merged_by(both, HOPPER, splits=2),
        ]),
        Compared(groups, "chained", [
            *merged_by(ALL, DECODE),
            *merged_by(ALL, DECODE, warp_splits=2, stages=4),
            *merged_by(ALL, DECODE, warp_splits=2, blocks_per_sm=2, stages=2),
        ]),
        Compared(heads, "chained", [
            *merged_by(ALL, DECODE, warp_splits=2, blocks_per_sm=2, stages=2),
            *merged_by(ALL, DECODE, warp_splits=2, blocks_per_sm=2, stages=2, splits=4),
        ]),
        Compared(short, "chained", [
            WHOLE,
            *merged_by(ALL, WHOLE, splits=2),
            *merged_by(ALL, WHOLE, splits=4, warps=2),
        ]),
        Compared(short, "chained_hopper", [
            {**HOPPER, "splits": 1, "merge": MERGES[1], "keys": 64},
            *merged_by(ALL, HOPPER, keys=64, splits=2),
        ]),
    ]  # fmt: skip


def measure(each: Compared) -> list[dict[str, Any]]:
    """Time each right kernel: its schedule, and the median of its times in microseconds."""
    trial = trial_of(each.case, each.template)
    trial.run_known(each.schedules, len(each.schedules))
    calls = {str(n): trial.calls[schedule] for n, schedule in enumerate(trial.best)}
    times = interleave(calls, rounds=30, seconds=0.5, heat=0.4)
    return [
        {"us": 1e6 * statistics.median(times[str(n)]), "schedule": schedule.to_json()}
        for n, schedule in enumerate(trial.best)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.attention.merging")
    parser.add_argument("--out", type=Path, default=Path("merging.json"))
    options = parser.parse_args()
    facts = {"torch": torch.__version__, "device": torch.cuda.get_device_name()}
    results = resume(options.out, "experiments.attention.merging", facts)
    for each in compared():
        name = f"{each.case.name}, {each.template}"
        results["cases"][name] = rows = measure(each)
        write(options.out, results)
        print(name)
        for row in sorted(rows, key=lambda row: row["us"]):
            values = row["schedule"]["decisions"]
            print(f"  {row['us']:7.2f} us", {k: values[k] for k in SHOWN if k in values})
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A tiny template with physical quantities, and a machine to imagine it on."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tilewright.costmodel.interfaces import Example
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.operators import workload
from tilewright.spaces.quantities import QUANTITIES
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Population, Space
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision, Rule, Template
from tilewright.spaces.workloads.workload import Workload


class TileTemplate(Template):
    """Square-ish register tiles of a product, blocked along the reduction."""

    name: ClassVar[str] = "tile"
    decisions = (
        Decision("rows", (1, 2, 4, 6, 8, 12, 16)),
        Decision("vectors", (1, 2, 3, 4)),
        Decision("block", (32, 64, 128, 256, 512)),
        Decision("unroll", (1, 2, 4)),
        Decision("order", ("mn", "nm")),
        Decision("pack", (False, True)),
    )
    rules = (
        Rule(
            "registers",
            ("rows", "vectors"),
            lambda c: c["rows"] * c["vectors"] + c["vectors"] + 1 <= 32,
            lambda v: f"{v['rows']} x {v['vectors']} accumulators leave no registers",
        ),
    )

    @classmethod
    def refuses(cls, workload: Workload, target: Target) -> str | None:
        return None

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        m, n, k = self.workload.extents.values()
        rows, vectors, block = (
            np.asarray(columns[name], dtype=float) for name in ("rows", "vectors", "block")
        )
        wide = 16 * vectors
        padded_m, padded_n = np.ceil(m / rows) * rows, np.ceil(n / wide) * wide
        terms = padded_m * padded_n * k
        visits = np.ceil(k / block)
        near = block * wide * 4
        packing = np.where(columns["pack"], 8.0 * n * k, 0.0)
        plain = np.ones_like(rows)
        result = dict.fromkeys(QUANTITIES, plain)
        result |= {
            "flops": 2 * terms,
            "useful_flops": plain * self.workload.flops,
            "instructions": terms / 16 * (1 + 1 / rows + 1 / vectors),
            "register_bytes": 4 * terms * (1 / rows + 1 / (16 * vectors)),
            "near_bytes": 4 * terms / rows / 8 + 8 * m * n * visits,
            "middle_bytes": 4 * terms / 512,
            "main_bytes": plain * self.workload.least_bytes,
            "packing_bytes": packing,
            "epilogue_elements": padded_m * padded_n,
            "registers": rows * vectors + vectors + 1,
            "register_fraction": (rows * vectors + vectors + 1) / 32,
            "near_footprint": near,
            "near_fraction": near / 32768,
            "middle_fraction": block * 256 * 4 / 2**20,
            "far_fraction": plain * 0.1,
            "independent_chains": rows * vectors,
            "vector_fraction": n / padded_n,
            "intensity": rows * vectors / (rows + vectors),
            "main_loop_trips": block / columns["unroll"],
            "tile_visits": visits,
            "synchronisations": 0 * plain,
        }
        return result

    def lower(self, schedule: Schedule) -> Kernel:
        raise NotImplementedError("a toy has no kernel")


def toy_space(work: Workload, machine: Target) -> Space:
    return Space(work, machine, [TileTemplate(work, machine)])


def product(m: int = 512, n: int = 512, k: int = 512, **more: Any) -> Workload:
    return workload("matmul", m=m, n=n, k=k, **more)


def points(space: Space, count: int, seed: int = 0) -> Population:
    rows = np.unique(space.sample(np.random.default_rng(seed), count), axis=0)
    return np.random.default_rng(seed).permutation(rows)


def true_latency(space: Space, population: Population) -> np.ndarray:
    """Return an invented machine, unlike the roofline: latency of FMAs, packing, spills past L1."""
    q = space.quantities(population)
    d = space.decision_columns(population)
    time = q["flops"] * np.maximum(1.0, 10 / q["independent_chains"]) ** 0.8
    time = time * (1 + 0.3 * (q["near_fraction"] > 1)) * (1 + 0.2 / d["tile.unroll"])
    time = time * np.where(d["tile.pack"] > 0, 0.9, 1.0) + 30 * q["near_bytes"]
    return time / 1e11


def examples(space: Space, population: Population, failing: int = 0) -> list[Example]:
    """Simulated measurements of ``population``; every ``failing``-th schedule fails."""
    return [
        Example(
            space.workload,
            space.target,
            space.schedule(row),
            None if failing and i % failing == 0 else float(seconds),
        )
        for i, (row, seconds) in enumerate(
            zip(population, true_latency(space, population), strict=True)
        )
    ]

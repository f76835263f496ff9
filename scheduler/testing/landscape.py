"""A made-up space with rules, and a made-up machine on it: ground truth for searches.

The decisions and rules are those of a blocked matrix product; the latency is a formula with
optima inside the space, interactions, and a ripple that no feature explains.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.costmodel.dataset import Group
from tilewright.costmodel.model import XGBoostModel
from tilewright.spaces.kernel import Call, Kernel, Source
from tilewright.spaces.operators import workload
from tilewright.spaces.quantities import QUANTITIES
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Population, Space
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision, Rule, Template
from tilewright.spaces.testing.targets import made_up_cpu
from tilewright.spaces.workloads.workload import Workload

MACHINE = made_up_cpu()
LANES, REGISTERS = MACHINE.vector_bytes // 4, MACHINE.vector_registers
NEAR, MIDDLE = MACHINE.l1_bytes, MACHINE.l2_bytes


class Hills(Template):
    """Register tile, cache blocks, packing, and some decisions that hardly matter."""

    name = "hills"
    decisions = (
        Decision("rows", tuple(range(1, 15))),
        Decision("vectors", (1, 2, 3, 4, 6)),
        Decision("kc", (32, 64, 128, 192, 256, 384, 512)),
        Decision("mc", (16, 32, 48, 64, 96, 128, 192, 256, 512)),
        Decision("nc", (64, 128, 256, 512, 1024)),
        Decision("pack", ("none", "b", "both")),
        Decision("order", ("jr", "ir")),
        Decision("unroll", (1, 2, 4, 8)),
        Decision("prefetch", (0, 4, 8)),
    )
    rules = (
        Rule(
            "registers",
            ("rows", "vectors"),
            lambda c: c["rows"] * c["vectors"] + c["vectors"] + 1 <= REGISTERS,
            lambda v: f"{v['rows']}x{v['vectors']} accumulators leave no register for operands",
        ),
        Rule(
            "near",
            ("vectors", "kc"),
            lambda c: c["vectors"] * LANES * c["kc"] * 4 <= NEAR * 3 // 2,
            lambda v: f"a panel of {v['kc']} rows does not fit next to the units",
        ),
        Rule(
            "middle",
            ("mc", "kc"),
            lambda c: c["mc"] * c["kc"] * 4 <= MIDDLE,
            lambda v: f"a block of {v['mc']}x{v['kc']} does not fit the middle cache",
        ),
        Rule(
            "whole tiles",
            ("rows", "mc"),
            lambda c: c["mc"] >= c["rows"],
            lambda v: f"mc={v['mc']} is less than rows={v['rows']}",
        ),
    )

    @classmethod
    def refuses(cls, workload: Workload, target: Target) -> str | None:
        """Serves all."""
        return None

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return the few physical quantities that a model needs here; all others are one."""
        rows, vectors = np.asarray(columns["rows"]), np.asarray(columns["vectors"])
        kc, mc = np.asarray(columns["kc"]), np.asarray(columns["mc"])
        known = {
            "registers": rows * vectors + vectors + 1,
            "intensity": rows * vectors / (rows + vectors),
            "near_fraction": vectors * LANES * kc * 4 / NEAR,
            "middle_fraction": mc * kc * 4 / MIDDLE,
            "flops": np.ceil(512 / rows) * rows,
        }
        rest = np.ones(len(rows))
        return {name: np.asarray(known.get(name, rest), dtype=float) for name in QUANTITIES}

    def lower(self, schedule: Schedule) -> Kernel:
        """Return a kernel in name only."""
        entry = f"k{zlib.crc32(schedule.key.encode()):x}"
        return Kernel(Source("none", "", schedule.key), Call(entry, ()))


class Knolls(Hills):
    """The same with few values each: small enough to exhaust."""

    name = "knolls"
    decisions = (
        Decision("rows", (4, 8, 12)),
        Decision("vectors", (2, 3)),
        Decision("kc", (128, 256)),
        Decision("mc", (96, 512)),
        Decision("nc", (512,)),
        Decision("pack", ("none", "b")),
        Decision("order", ("jr",)),
        Decision("unroll", (1,)),
        Decision("prefetch", (0,)),
    )


class Mounds(Knolls):
    """A second template, so that a space has two."""

    name = "mounds"


def knolls() -> Space:
    """Return a small space of two templates."""
    problem = workload("matmul", m=512, n=512, k=512)
    return Space(problem, MACHINE, [Knolls(problem, MACHINE), Mounds(problem, MACHINE)])


def hills(size: int = 512) -> Space:
    """Return the space of a product of ``size`` cubed."""
    problem = workload("matmul", m=size, n=size, k=size)
    return Space(problem, MACHINE, [Hills(problem, MACHINE)])


def hills_latency(values: Mapping[str, Any]) -> float:
    """Return seconds; the best schedules take about 1 ms and a random one 2 to 20."""
    rows, vectors, kc, mc = (int(values[n]) for n in ("rows", "vectors", "kc", "mc"))
    chains = min(1.0, rows * vectors / 12)
    loads = min(1.0, 0.55 + 0.16 * rows * vectors / (rows + vectors))
    waste = 512 / (np.ceil(512 / rows) * rows)
    near = np.exp(-0.5 * (np.log2(vectors * LANES * kc * 4 / NEAR) + 0.4) ** 2 / 2.0**2)
    middle = np.exp(-0.5 * (np.log2(mc * kc * 4 / MIDDLE) + 1.0) ** 2 / 2.5**2)
    pack = {"none": 0.7 if kc > 128 else 0.95, "b": 1.0, "both": 0.93}[values["pack"]]
    outer = 1.0 - 0.04 * abs(np.log2(values["nc"] / 512))
    trim = 1.0 - 0.01 * (values["order"] == "ir") - 0.01 * (values["unroll"] == 1)
    ripple = 1.0 - 0.04 * (zlib.crc32(repr(sorted(values.items())).encode()) % 1000) / 1000
    return float(
        1e-3 / (chains**1.5 * loads * waste * near * middle * pack * outer * trim * ripple)
    )


def trees(space: Space) -> XGBoostModel:
    """Return the product's model, made to learn this space."""
    return XGBoostModel(space_for=lambda workload, target: space)


class Guess:
    """A prior that knows the register tile's part of the truth only, as a roofline does."""

    unseen = np.zeros(0)

    def fit_groups(self, groups: Sequence[Group]) -> None:
        """Learns nothing."""

    def predict(self, space: Space, population: Population) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores from intensity and waste."""
        q = space.quantities(population)
        score = np.minimum(1.0, 0.5 + 0.17 * q["intensity"]) * 512 / q["flops"]
        return score, np.full(len(population), 0.2)

"""What rules out a schedule of a Hopper contraction, and the sentence that says so.

Resources come first: shared memory, registers. Then what roles and layouts ask for. Then merit
and identity: tiles larger than the output, blocks without work, decisions that say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spaces.cuda.foresight import foresee
from spaces.cuda.hopper_grid import MOST_IN_TABLE
from spaces.cuda.hopper_plan import GROUP, group_registers, launch_registers
from spaces.cuda.hopper_store import CHUNK
from spaces.cuda.hopper_tile import BLOCK, WIDEST_SWIZZLE, why_no_tensor_map
from spaces.cuda.target import CudaTarget
from spaces.cuda.tile_grid import grid_rules
from spaces.integers import ceil_div, round_up
from spaces.product import Product
from spaces.template import Decision, Rule

FEW_ROWS = 256
"""Rows of the output up to which it may pay to compute it transposed."""
MOST_TILES = 64
"""Tiles a multiprocessor walks over, where larger tiles would make it fewer."""
INSTRUCTION_REGISTERS = 26
"""What ptxas needs beside the sums that one wgmma writes (its message C7602); it counts the
registers a thread has at launch, before setmaxnreg."""
SPARE_REGISTERS, SPARE_FOR_EPILOGUE = 40, 8
"""What a multiplying thread needs beside its sums, and what more where there is an epilogue:
measured on hundreds of kernels, the least that lets them all but one compile without spills."""


@dataclass(frozen=True)
class HopperSizes:
    """Extents and resources of schedules, from columns of their decisions."""

    product: Product

    @property
    def element(self) -> int:
        """Bytes of an element of the operands."""
        return self.product.left.element.bytes

    @property
    def spare(self) -> int:
        """Registers that a multiplying thread needs beside its results."""
        fused = self.product.workload.epilogue is not None
        return SPARE_REGISTERS + fused * SPARE_FOR_EPILOGUE

    def block(self, c: Any) -> tuple[Any, Any]:
        """Rows and columns of the output in a tile."""
        m, n, swapped = c["block_m"], c["block_n"], c["swapped"]
        return np.where(swapped, n, m), np.where(swapped, m, n)

    def cluster(self, c: Any) -> tuple[Any, Any]:
        """Tiles of a cluster along m and n."""
        m, n = 1 + (c["cluster"] == "2x1"), 1 + (c["cluster"] == "1x2")
        return m, n

    def sides(self, c: Any) -> tuple[Any, Any]:
        """Extents of the product along m and n."""
        rows, columns, swapped = self.product.rows, self.product.columns, c["swapped"]
        return np.where(swapped, columns, rows), np.where(swapped, rows, columns)

    def blocks(self, c: Any) -> Any:
        """Blocks of 64 along m that one warpgroup computes."""
        sharing = np.where(c["schedule"] == "pingpong", 1, c["consumers"])
        return c["block_m"] // BLOCK // sharing

    def sums(self, c: Any) -> Any:
        """Sums that each multiplying thread keeps."""
        return self.blocks(c) * c["block_n"] // 2

    def results(self, c: Any) -> Any:
        """Sums, and where they are kept apart from wgmma's, those too."""
        apart = c["promotion"] > 0 if promotes(self.product) else 0
        return self.sums(c) * (1 + apart)

    def threads(self, c: Any) -> Any:
        """Threads of a block."""
        return c["consumers"] * GROUP + np.where(c["producer_registers"] > 0, GROUP, 32)

    def launch_registers(self, c: Any) -> Any:
        """Registers of each thread at launch."""
        return np.vectorize(launch_registers, otypes=[np.int64])(self.threads(c))

    def group_registers(self, c: Any) -> Any:
        """Registers of a multiplying thread; see :func:`hopper_plan.group_registers`."""
        return np.vectorize(group_registers, otypes=[np.int64])(
            c["consumers"], c["producer_registers"]
        )

    def buffer_bytes(self, c: Any) -> Any:
        """Bytes of a staging buffer."""
        bytes_out = self.product.output.element.bytes
        most = np.where(c["swapped"], CHUNK, min(CHUNK, WIDEST_SWIZZLE // bytes_out))
        return BLOCK * np.gcd(c["block_n"], most) * bytes_out

    def stage_bytes(self, c: Any) -> Any:
        """Bytes of a stage."""
        return (c["block_m"] + c["block_n"]) * c["depth"] * self.element

    def shared_bytes(self, c: Any) -> Any:
        """Shared memory of a block: stages, staging buffers, two barriers a stage, a word for
        each warpgroup."""
        staging = c["consumers"] * c["staging"] * self.buffer_bytes(c)
        return c["stages"] * (self.stage_bytes(c) + 16) + staging + 4 * c["consumers"]


def promotes(product: Product) -> bool:
    """Whether sums can be kept apart from wgmma's: where its own lose bits."""
    return product.left.element.bytes == 1


def hopper_rules(
    product: Product, target: CudaTarget, decisions: Sequence[Decision]
) -> tuple[Rule, ...]:
    """All rules of the Hopper template."""
    sizes = HopperSizes(product)
    resources = [*_role_rules(sizes), *_resource_rules(sizes, target)]
    return (
        *resources,
        *_foresight_rules(resources, {decision.name: decision for decision in decisions}),
        *(_promotion_rules() if promotes(product) else ()),
        *_store_rules(sizes),
        *_merit_rules(sizes, target),
        *grid_rules(
            product, ("block_m", "block_n", "swapped"), sizes.block, target.multiprocessors
        ),
    )


def _foresight_rules(rules: Sequence[Rule], decisions: Mapping[str, Decision]) -> list[Rule]:
    """A tile needs registers in some warpgroups, and shared memory in some form."""
    roles = ["block_m", "block_n", "schedule", "consumers", "producer_registers"]
    memory = ["block_m", "block_n", "stages", "consumers", "depth", "staging", "swapped"]
    if "promotion" in decisions:
        roles.append("promotion")
    return [
        *(foresee([decisions[name] for name in roles], rules, known) for known in (2, 3, 4)),
        foresee([decisions[name] for name in memory], rules, 3),
    ]


def _role_rules(sizes: HopperSizes) -> list[Rule]:
    return [
        Rule(
            "shared_rows",
            ("block_m", "consumers", "schedule"),
            lambda c: (c["schedule"] == "pingpong") | (c["block_m"] // BLOCK % c["consumers"] == 0),
            lambda c: (
                f"{c['block_m']} rows are no whole number of blocks of {BLOCK} for each of "
                f"{c['consumers']} warpgroups"
            ),
        ),
        Rule(
            "turns",
            ("consumers", "schedule"),
            lambda c: (c["schedule"] == "cooperative") | (c["consumers"] > 1),
            lambda c: "one warpgroup has nobody to take turns with; 2 or 3 can",
        ),
        Rule(
            "given_registers",
            ("consumers", "producer_registers"),
            lambda c: (c["producer_registers"] == 0) | (c["consumers"] > 1),
            lambda c: (
                "one multiplying warpgroup has all the registers a thread can have; "
                "none need to be moved to it"
            ),
        ),
        Rule(
            "kept_registers",
            ("consumers", "producer_registers"),
            lambda c: (
                (c["producer_registers"] == 0)
                | (sizes.group_registers(c) > sizes.group_registers(_keeping_more(c)))
            ),
            lambda c: (
                f"keeping {c['producer_registers']} registers for loading gives the others "
                f"{sizes.group_registers(c)}, as keeping 8 more does"
            ),
        ),
    ]


def _resource_rules(sizes: HopperSizes, target: CudaTarget) -> list[Rule]:
    roles = ["block_m", "block_n", "consumers", "schedule", "producer_registers"]
    if promotes(sizes.product):
        roles.append("promotion")
    return [
        Rule(
            "shared_memory",
            ("block_m", "block_n", "depth", "consumers", "stages", "staging", "swapped"),
            lambda c: sizes.shared_bytes(c) <= target.shared_per_block,
            lambda c: (
                f"{c['stages']} stages of {sizes.stage_bytes(c)} bytes and the staging buffers "
                f"take {sizes.shared_bytes(c)} bytes of shared memory; a block may have "
                f"{target.shared_per_block}"
            ),
        ),
        Rule(
            "registers",
            tuple(roles),
            lambda c: sizes.results(c) + sizes.spare <= sizes.group_registers(c),
            lambda c: (
                f"a thread keeps {sizes.results(c)} sums and products and needs "
                f"{sizes.spare} registers more; it may have {sizes.group_registers(c)}"
            ),
        ),
        Rule(
            "instruction",
            ("block_n", "consumers", "producer_registers"),
            lambda c: c["block_n"] // 2 + INSTRUCTION_REGISTERS <= sizes.launch_registers(c),
            lambda c: (
                f"a wgmma of {c['block_n']} columns takes "
                f"{c['block_n'] // 2 + INSTRUCTION_REGISTERS} registers; "
                f"{sizes.threads(c)} threads start with {sizes.launch_registers(c)}"
            ),
        ),
    ]


def _promotion_rules() -> list[Rule]:
    return [
        Rule(
            "promotion",
            ("promotion", "in_flight"),
            lambda c: (c["promotion"] == 0) | (c["in_flight"] == 0),
            lambda c: "products that are added to sums have to be done; none can be in flight",
        ),
    ]


def _store_rules(sizes: HopperSizes) -> list[Rule]:
    output = sizes.product.output
    reason = why_no_tensor_map(output)
    if output.element.bytes not in (2, 4):
        reason = f"{output.name} is {output.dtype}; elements of 2 or 4 bytes are staged"
    return [
        Rule(
            "staging",
            ("staging",),
            lambda c: (c["staging"] == 0) | (reason is None),
            lambda c: f"the output cannot go through shared memory: {reason}",
        ),
    ]


def _merit_rules(sizes: HopperSizes, target: CudaTarget) -> list[Rule]:
    product = sizes.product

    def count(c: Any) -> Any:
        rows, columns = sizes.block(c)
        return ceil_div(product.rows, rows) * ceil_div(product.columns, columns)

    fewest = count({"block_m": 256, "block_n": 256, "swapped": False})
    most = max(MOST_TILES * target.multiprocessors, int(fewest))
    tile = ("block_m", "block_n", "swapped")
    return [
        Rule(
            "swap",
            ("swapped",),
            lambda c: np.logical_not(c["swapped"]) | (product.rows <= FEW_ROWS),
            lambda c: (
                f"computing {product.rows} rows transposed gains nothing; "
                f"it may with up to {FEW_ROWS}"
            ),
        ),
        Rule(
            "tile_height",
            ("block_m", "swapped"),
            lambda c: c["block_m"] <= round_up(sizes.sides(c)[0], BLOCK),
            lambda c: f"a tile of {c['block_m']} is higher than the product's {sizes.sides(c)[0]}",
        ),
        Rule(
            "tile_width",
            ("block_n", "swapped"),
            lambda c: c["block_n"] <= round_up(sizes.sides(c)[1], 16),
            lambda c: f"a tile of {c['block_n']} is wider than the product's {sizes.sides(c)[1]}",
        ),
        Rule(
            "many_tiles",
            tile,
            lambda c: count(c) <= most,
            lambda c: f"tiles so small are {count(c)}; larger ones are {most} or fewer",
        ),
        Rule(
            "cluster",
            (*tile, "cluster"),
            lambda c: _cluster_fits(sizes, c),
            lambda c: f"the output has no {c['cluster']} tiles of {c['block_m']}x{c['block_n']}",
        ),
        Rule(
            "hilbert",
            (*tile, "raster"),
            lambda c: (c["raster"] != "hilbert") | (count(c) <= MOST_IN_TABLE),
            lambda c: f"a table of {count(c)} tiles is too long; {MOST_IN_TABLE} are allowed",
        ),
        Rule(
            "bands",
            ("raster", "group"),
            lambda c: (c["raster"] != "hilbert") | (c["group"] == 1),
            lambda c: "a Hilbert curve has no bands to group",
        ),
    ]


def _cluster_fits(sizes: HopperSizes, c: Any) -> Any:
    m, n = sizes.sides(c)
    cluster_m, cluster_n = sizes.cluster(c)
    return (ceil_div(m, c["block_m"]) >= cluster_m) & (ceil_div(n, c["block_n"]) >= cluster_n)


def _keeping_more(c: Any) -> dict[str, Any]:
    return {**c, "producer_registers": c["producer_registers"] + 8}

"""What one schedule of a chained kernel on Hopper comes to: boxes, shared memory, names.

Shared memory has the rows of each warpgroup, then stages of keys, then stages of the matrix, then
barriers, then the tickets that the loading thread hands to the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from spaces.cuda.chained_hopper.keys import KeyRange
from spaces.cuda.chained_hopper.sizes import MOVED, ChainedSizes
from spaces.cuda.chained_hopper.tiles import PANEL_BYTES, Boxes, RowTiles
from spaces.cuda.target import CudaTarget
from spaces.derivation.chained.view import Chained, ChainedOutput
from spaces.language.tree import Expression, Read
from spaces.schedule import Value

ELEMENTS = {"float16": "f16", "bfloat16": "bf16"}
"""What wgmma multiplies with its left operand in registers, and how it spells it."""


@dataclass(frozen=True)
class ChainedPlan:
    """The kernel of ``sizes.chained`` under the decisions ``values``."""

    sizes: ChainedSizes
    target: CudaTarget
    values: Mapping[str, Value]

    @property
    def chained(self) -> Chained:
        """The program."""
        return self.sizes.chained

    @property
    def tiles(self) -> RowTiles:
        """Rows and heads."""
        return self.sizes.tiles

    def number(self, name: str) -> int:
        """An integer decision."""
        return int(self.values[name])

    @cached_property
    def warpgroups(self) -> int:
        """Warpgroups that multiply, of 64 rows each."""
        return self.number("warpgroups")

    @cached_property
    def keys(self) -> int:
        """Keys of a tile."""
        return self.number("keys")

    @cached_property
    def stages(self) -> int:
        """Stages of keys, and of the matrix."""
        return self.number("stages")

    @cached_property
    def buffers(self) -> int:
        """Rows that each warpgroup has at a time."""
        return self.number("query_buffers")

    @property
    def in_registers(self) -> bool:
        """Whether rows are multiplied from registers."""
        return self.values["queries"] == "registers"

    @property
    def registers(self) -> tuple[int, int] | None:
        """Registers of a multiplying thread and of a loading one, if they are moved."""
        return MOVED.get(self.warpgroups)

    @property
    def blocks(self) -> int:
        """Blocks of the launch."""
        total = int(self.sizes.tile_count(self.values))
        if self.values["blocks"] == "grid":
            return total
        return min(total, self.target.multiprocessors * self.number("residency"))

    @cached_property
    def names(self) -> Mapping[str, str]:
        """C variables of the parts that number heads and rows."""
        parts = (*self.chained.batch, *self.chained.rows)
        return {part.name: f"p{n}" for n, part in enumerate(parts)}

    @cached_property
    def range(self) -> KeyRange:
        """Which keys count."""
        return KeyRange(self.tiles, self.names)

    # -- arrays ----------------------------------------------------------------------------------

    @cached_property
    def rows_box(self) -> Boxes:
        """Rows of the left operand."""
        return left_boxes(self.tiles)

    @cached_property
    def keys_box(self) -> Boxes:
        """Rows of the right operand, a tile of keys."""
        return key_boxes(self.tiles, self.chained.right, self.chained.depth.name, self.keys)

    @cached_property
    def values_box(self) -> Boxes:
        """Rows of the matrix, a tile of keys."""
        matrix = self.chained.weighings[0].matrix
        return key_boxes(self.tiles, matrix, self.chained.width.name, self.keys)

    @cached_property
    def output_box(self) -> Boxes:
        """Rows of the wide output."""
        return output_boxes(self.tiles, wide_output(self.chained))

    @property
    def element(self) -> str:
        """What is multiplied, as wgmma spells it."""
        return ELEMENTS[self.rows_box.array.dtype]

    @property
    def score_product(self) -> str:
        """The wgmma of scores."""
        source = "rs" if self.in_registers else "ss"
        return f"tw::wgmma_m64n{self.keys}k16_f32_{self.element}_{self.element}_{source}"

    @property
    def sum_product(self) -> str:
        """The wgmma of sums; rows of the matrix run along its columns."""
        width = self.sizes.width
        return f"tw::wgmma_m64n{width}k16_f32_{self.element}_{self.element}_rs_nt"

    # -- shared memory -----------------------------------------------------------------------------

    @property
    def region_bytes(self) -> int:
        """Bytes of a warpgroup's rows."""
        return self.sizes.region_bytes

    @property
    def keys_at(self) -> int:
        """Offset of the stages of keys."""
        return self.buffers * self.warpgroups * self.region_bytes

    @property
    def key_bytes(self) -> int:
        """Bytes of a stage of keys."""
        return self.keys * PANEL_BYTES * self.sizes.depth_panels

    @property
    def values_at(self) -> int:
        """Offset of the stages of the matrix."""
        return self.keys_at + self.stages * self.key_bytes

    @property
    def value_bytes(self) -> int:
        """Bytes of a stage of the matrix."""
        return self.keys * PANEL_BYTES * self.sizes.width_panels

    @cached_property
    def barriers(self) -> Mapping[str, tuple[int, int, int]]:
        """Of each kind of barrier its offset, how many there are, and their arrivals."""
        rows, warps = self.buffers * self.warpgroups, 4 * self.warpgroups
        wanted = {
            "rows_full": (rows, 1),
            "rows_empty": (rows, 1),
            "keys_full": (self.stages, 1),
            "keys_empty": (self.stages, warps),
            "values_full": (self.stages, 1),
            "values_empty": (self.stages, warps),
            "ticket_full": (2, 1),
            "ticket_empty": (2, warps),
        }
        found, at = {}, self.values_at + self.stages * self.value_bytes
        for name, (count, arrivals) in wanted.items():
            found[name] = (at, count, arrivals)
            at += 8 * count
        return found

    @property
    def tickets_at(self) -> int:
        """Offset of two tickets."""
        at, count, _ = self.barriers["ticket_empty"]
        return at + 8 * count

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.tickets_at + 8

    @property
    def workspace_bytes(self) -> int:
        """The counter from which blocks take tickets."""
        return 4 if self.values["blocks"] == "tickets" else 0


def left_boxes(tiles: RowTiles) -> Boxes:
    """Boxes of the left operand."""
    chained = tiles.chained
    left = _read(chained.left)
    operand = chained.program.operand[left.name]
    return Boxes(operand, chained.places[left].offset, chained.depth, tiles.box, tiles.heads)


def key_boxes(tiles: RowTiles, matrix: Expression, columns: str, keys: int) -> Boxes:
    """Boxes of ``keys`` of the right operand, or of a matrix that has a row for each key."""
    chained, read = tiles.chained, _read(matrix)
    part = chained.depth if columns == chained.depth.name else chained.width
    operand = chained.program.operand[read.name]
    return Boxes(operand, chained.places[read].offset, part, ((chained.key, keys),), tiles.heads)


def output_boxes(tiles: RowTiles, output: ChainedOutput) -> Boxes:
    """Boxes of a wide output."""
    return Boxes(output.array, output.offset, tiles.chained.width, tiles.box, tiles.heads)


def wide_output(chained: Chained) -> ChainedOutput:
    """The output that has a row for each row."""
    return next(output for output in chained.outputs if output.wide)


def _read(expression: Expression) -> Read:
    assert isinstance(expression, Read)
    return expression

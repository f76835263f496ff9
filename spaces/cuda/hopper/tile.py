"""One operand of a Hopper contraction in shared memory: how TMA brings it, where wgmma finds it.

A tile has ``extent`` rows (of the left operand, say, or columns of the right one) of one step of
depth. Where the operand runs deep in memory, each row is one swizzled row of shared memory.
Where it runs along the rows, the tile is cut into panels as wide as the swizzle, and each holds
one swizzled row for every term.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from spaces.algebra.index import index
from spaces.algebra.mapping import repeat
from spaces.contraction import Operand
from spaces.cuda.tensor_map import TensorMapSpec

ATOM = 8
"""Rows after which a swizzle repeats."""
STEP_BYTES = 32
"""Bytes of depth that one wgmma multiplies."""
WIDEST_SWIZZLE = 128
BLOCK = 64
"""Rows of the output that one wgmma computes."""
MOST_WRITTEN_OUT = 4
"""Panels loaded without a loop; more would not leave registers enough to a loading thread."""


def why_no_tensor_map(operand: Operand) -> str | None:
    """Why TMA cannot read or write ``operand``, a matrix, in words; None if it can."""
    pitch = max(operand.strides) * operand.element.bytes
    if pitch % 16 == 0:
        return None
    return (
        f"rows of {operand.name} are {pitch} bytes apart in memory; "
        "TMA needs a multiple of 16 bytes"
    )


@dataclass(frozen=True)
class OperandTile:
    """Tiles of ``extent`` elements along ``axis`` and ``depth_bytes`` along the axis ``depth``.

    ``sharers`` blocks of a cluster want the same tile: each loads its share of it for all.
    """

    operand: Operand
    axis: str
    depth: str
    extent: int
    depth_bytes: int
    sharers: int

    @property
    def runs_deep(self) -> bool:
        """Whether neighbours in memory are terms of one sum."""
        return self.operand.stride(self.depth) == 1

    @property
    def terms(self) -> int:
        """Elements along the depth."""
        return self.depth_bytes // self.operand.element.bytes

    @property
    def bytes(self) -> int:
        """Bytes of the tile."""
        return self.extent * self.depth_bytes

    @property
    def swizzle(self) -> int:
        """Bytes of a swizzled row."""
        if self.runs_deep:
            return self.depth_bytes
        return gcd(self.extent * self.operand.element.bytes, WIDEST_SWIZZLE)

    @property
    def panel(self) -> int:
        """Elements along ``axis`` in a panel; all of them where the operand runs deep."""
        return self.extent if self.runs_deep else self.swizzle // self.operand.element.bytes

    @property
    def panel_bytes(self) -> int:
        """Bytes of a panel."""
        return self.panel * self.depth_bytes

    @property
    def tensor_map(self) -> TensorMapSpec:
        """What one load moves: a panel, or one sharer's share of it."""
        extents = dict(zip(self.operand.axes, self.operand.shape, strict=True))
        fast, slow = (self.depth, self.axis) if self.runs_deep else (self.axis, self.depth)
        box = (self.swizzle // self.operand.element.bytes, self._slow_rows // self.sharers)
        pitch = self.operand.stride(slow) * self.operand.element.bytes
        return TensorMapSpec(
            self.operand.name,
            self.operand.dtype,
            (extents[fast], extents[slow]),
            (pitch,),
            box,
            self.swizzle,
        )

    @property
    def _slow_rows(self) -> int:
        """Swizzled rows of a panel."""
        return self.extent if self.runs_deep else self.terms

    def load(self, to: str, tensor_map: str, barrier: str, start: str, depth: str) -> list[str]:
        """Lines by which one thread loads the tile at (start, depth) to the address ``to``.

        Sharers, numbered ``rank``, load as many rows each and cast them to all.
        """
        share = self._slow_rows // self.sharers
        offset, ahead = "", ""
        if self.sharers > 1:
            offset, ahead = f" + rank * {share * self.swizzle}", f" + (int)rank * {share}"
        call = f"tma_multicast_2d({{}}, &{tensor_map}, {barrier}, {(1 << self.sharers) - 1}, {{}})"
        if self.sharers == 1:
            call = f"tma_load_2d({{}}, &{tensor_map}, {barrier}, {{}})"

        def line(panel: tuple[object, ...]) -> list[str]:
            number = index(panel[0])  # type: ignore[arg-type]
            place = index(to) + number * self.panel_bytes
            along = (index(start) + number * self.panel).text
            at = f"{depth}, {along}{ahead}" if self.runs_deep else f"{along}, {depth}{ahead}"
            return [f"tw::{call.format(place.text + offset, at)};"]

        count = self.extent // self.panel
        return repeat(count).emit(
            0,
            line,
            prefix=f"{tensor_map}_",
            unroll=True if count <= MOST_WRITTEN_OUT else 1,
            integer="int",
            language="cuda",
        )

    def descriptor(self, address: str) -> str:
        """C expression of the wgmma descriptor of the tile, or of a block of it, at ``address``."""
        leading = 16 if self.runs_deep else self.panel_bytes
        stride = ATOM * self.swizzle
        return f"tw::wgmma_descriptor<{self.swizzle}>({address}, {leading}, {stride})"

    @property
    def block_bytes(self) -> int:
        """Distance of blocks of :data:`BLOCK` elements along ``axis``."""
        return BLOCK * self.depth_bytes

    @property
    def step_bytes(self) -> int:
        """Distance of the parts of the tile that successive wgmma multiply."""
        terms = STEP_BYTES // self.operand.element.bytes
        return STEP_BYTES if self.runs_deep else terms * self.swizzle

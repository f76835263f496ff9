"""The stream of the large operand from memory into registers.

Where warps read its rows whole, vectors pass through slabs of shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.mapping import TaskMapping, repeat
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.blocks.unrolled import unrolled
from tilewright.spaces.cuda.thin.multiply import ThinMultiply
from tilewright.spaces.cuda.thin.tile import ThinTile
from tilewright.spaces.kernels.text import CUDA


@dataclass(frozen=True)
class LargeOperand:
    """A thread's reads of the large operand, into the registers that ``multiply`` takes.

    ``integer`` is the C type of positions; the variables ``column0`` and ``depth0`` are those of
    the step.
    """

    tile: ThinTile
    multiply: ThinMultiply
    integer: str

    @property
    def stages(self) -> list[str]:
        """Suffixes of the registers of each step that is held at a time."""
        return [str(i) for i in range(self.tile.number("in_flight"))]

    def declare(self, stage: str) -> list[str]:
        """Print the declaration of the registers of a stage."""
        return [f"{self.multiply.kind} held{stage}[{self.multiply.held}];"]

    def start(self) -> list[str]:
        """Print the pointer to a thread's first vector."""
        thin = self.tile.thin
        column, term = self._position(Index())
        place = column * thin.column_stride + term * thin.large_depth_stride
        kind = C_TYPES[thin.large.dtype]
        return [f"const {kind} *from = {thin.large_name} + {place.text};"]

    def load(self, stage: str) -> list[str]:
        """Print how the step at ``depth0`` is read into the registers of ``stage``."""
        return unrolled(self._reads, 0, lambda at: self._read(stage, *at), "v", None, self.integer)

    def advance(self) -> list[str]:
        """Print how pointers go on to the next step."""
        stride = self.tile.depth * self.tile.thin.large_depth_stride
        return [f"from += {stride};", f"depth0 += {self.tile.depth};"]

    # -- a vector ------------------------------------------------------------------------------

    @property
    def _reads(self) -> TaskMapping:
        """A thread's vectors along columns and depth; by rows, one after the other."""
        vectors = self.tile.vectors
        return repeat(vectors[0] * vectors[1]) if self.tile.by_rows else repeat(*vectors)

    def _position(self, *vector: Index) -> tuple[Index, Index]:
        """Return the column and the term, in the operand, of a thread's vector."""
        tile = self.tile
        if tile.by_rows:
            (column, term), corner = tile.row_read(vector[0]), tile.corner()
            column, term = corner[0] + column, corner[1] + term
        else:
            c, d = vector if len(vector) > 1 else (Index(), Index())
            column, term = tile.column(c), tile.term(d)
        return index("column0") + column, index("depth0") + term

    def _read(self, stage: str, *vector: Index) -> list[str]:
        """Print how one vector is read, as zeros where it lies outside of the operand."""
        thin, tile = self.tile.thin, self.tile
        words = max(tile.vector) // (1 + self.multiply.pairs)
        place = self._held_at(*vector)
        ahead = self.tile.number("fetch")
        load = (
            f"tw::load_stream<{words}, {ahead}>(held{stage} + {place}, {self._address(*vector)});"
        )
        limits = ((thin.column_end, tile.columns), (thin.terms, tile.depth))
        tests = [
            f"{position.text} < {end}"
            for position, (end, unit) in zip(self._position(*vector), limits, strict=True)
            if isinstance(end, str) or end % unit
        ]
        if not tests:
            return [load]
        zeros = [f"held{stage}[{(place + w).text}] = {{}};" for w in range(words)]
        return CUDA.when(" && ".join(tests), [load], zeros)

    def _held_at(self, *vector: Index) -> Index:
        """Return the place of a thread's vector among its registers."""
        wide, deep = self.tile.vector
        if self.tile.by_rows:
            return vector[0] * (deep // 2)
        return self.multiply.word(vector[0] * wide, vector[1] * deep)

    def _address(self, *vector: Index) -> str:
        """Return C text of a vector's address, relative to the thread's first vector."""
        thin, tile = self.tile.thin, self.tile
        if tile.by_rows:
            columns, deep = vector[0] * tile.columns_at_once, Index()
        else:
            columns = vector[0] * (tile.lanes[0] * tile.vector[0])
            terms = vector[1] * tile.vector[1]
            deep = terms // tile.run * (tile.lanes[1] * tile.run) + terms % tile.run
        offset = columns * thin.column_stride + deep * thin.large_depth_stride
        text = "from" if offset.value == 0 else f"from + {offset.text}"
        return f"(const u32 *)({text})" if self.multiply.pairs else text

    # -- the slab ------------------------------------------------------------------------------

    def put(self) -> list[str]:
        """Print how all vectors that were read are stored to the slab."""
        return unrolled(self._reads, 0, lambda at: self._put(*at), "v")

    def take(self, c: Index, run: Index) -> list[str]:
        """Print how a vector of a run for ``mma.sync`` is loaded from the slab."""
        tile = self.tile
        column, term = (
            c * tile.lanes[0] + tile.lane[0],
            (run * tile.lanes[1] + tile.lane[1]) * tile.run,
        )
        place = column * tile.slab_pitch + term * self.tile.thin.large.element.bytes
        return [f"tw::load_shared<4>(own + {c * 4}, slab + {place});"]

    def _put(self, vector: Index) -> list[str]:
        """Print how one vector that was read is stored to the slab."""
        column, term = self.tile.row_read(vector)
        place = column * self.tile.slab_pitch + term * self.tile.thin.large.element.bytes
        return [f"tw::store_shared<4>(slab + {place}, held0 + {self._held_at(vector)});"]

"""The CUDA C++ of a map: a tile of a plane for each block.

Arrays to transpose are read along rows, as they lie in memory, and pass through shared memory,
swizzled so that lanes which read along columns have no bank conflicts. All other arrays go straight
through registers. As task mappings:

    blocks (outer loops, row tiles, column tiles)
        * repeat(rows, columns) * spatial(warps) * spatial(lanes along rows, lanes along columns)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.mapping import TaskMapping, repeat, spatial
from tilewright.spaces.algebra.mapping_emit import each
from tilewright.spaces.cuda import whole_numbers
from tilewright.spaces.cuda.abi import C_TYPES, entry
from tilewright.spaces.cuda.blocks.unrolled import THREAD, TURNS
from tilewright.spaces.cuda.maps.context import OWN, MapContext
from tilewright.spaces.cuda.maps.lines import AHEAD, Lines
from tilewright.spaces.cuda.maps.sizes import loops_inside, shared_loops, width
from tilewright.spaces.cuda.maps.transposing import Transposing
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.maps.nest import Loop
from tilewright.spaces.derivation.maps.order import ROWS
from tilewright.spaces.derivation.maps.plane import ALONG, SAME, TRANSPOSED
from tilewright.spaces.derivation.maps.view import Access
from tilewright.spaces.kernel import Call, Kernel, Launch, OpenGrid, Source
from tilewright.spaces.kernels.body import Body, names_in

HELPERS = """\
template <int V, int W, class T, class I>
TW_INLINE void tw_take(T (&to)[V], const T *from, I left) {
  if (left >= V) {
#pragma unroll
    for (int i = 0; i < V; i += W) tw::load_global<W>(to + i, from + i);
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) to[i] = i < left ? tw::load_global(from + i) : T{};
  }
}
template <int V, int W, class T, class I>
TW_INLINE void tw_give(T *to, const T (&from)[V], I left) {
  if (left >= V) {
#pragma unroll
    for (int i = 0; i < V; i += W) tw::STORE<W>(to + i, from + i);
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) if (i < left) tw::store_global(to + i, from[i]);
  }
}
"""
"""C functions that move vectors whose last elements may not exist."""


@dataclass(frozen=True)
class MapCode:
    """The kernel named ``entry`` of a map."""

    context: MapContext
    entry: str

    @property
    def _transposing(self) -> Transposing:
        return Transposing(self.context)

    def kernel(self, prelude: str) -> Kernel:
        """Return the kernel with its launch; ``prelude`` defines the functions that are called."""
        launch = Launch(
            (self.context.sizes.tiles, 1, 1),
            (self.context.sizes.threads, 1, 1),
            shared_bytes=self.context.sizes.shared_bytes,
            open_grid=self._open_grid,
        )
        call = Call(self.entry, self.context.arguments, launches=(launch,))
        return Kernel(Source("cuda", prelude, self.source), call)

    @property
    def source(self) -> str:
        """The CUDA C++ of the helpers and the entry."""
        store = "store_stream" if self.context.values["stores"] == "stream" else "store_global"
        helpers = HELPERS.replace("STORE", store) + whole_numbers.HELPERS
        return helpers + entry(
            self.entry,
            self.context.sizes.threads,
            self.context.arguments,
            self._blocks,
            is_open=self.context.open_loop is not None,
        )

    @property
    def _open_grid(self) -> OpenGrid | None:
        """The dependence of the grid on the turns of an open loop."""
        context, rank = self.context, self.context.open_rank
        if rank is None:
            return None
        assert context.turns_each
        *outer, _, _ = context.sizes.counts
        step = (*[1] * len(outer), context.sizes.rows, context.sizes.columns)[rank]
        others = context.sizes.tiles // context.sizes.counts[rank]
        return OpenGrid(step, others, context.turns_each)

    # -- a tile --------------------------------------------------------------------------------

    def _blocks(self, body: Body) -> None:
        """Write the entry: each block has a tile."""
        blocks = spatial(*self.context.sizes.counts, order=self._order)
        tile = partial(self._tile, body)
        each(body, blocks, "blockIdx.x", tile, integer=self.context.integer)

    @property
    def _order(self) -> tuple[int, ...]:
        """The ranks of the grid of tiles from the slowest on; that of an open loop is the slowest,
        so that blocks have the same tiles whatever its extent."""
        *outer, row, column = range(len(self.context.sizes.counts))
        inner = (column, row) if self.context.values["order"] == ROWS else (row, column)
        order = (*outer, *inner)
        first = self.context.open_rank
        return order if first is None else (first, *(rank for rank in order if rank != first))

    def _tile(self, body: Body, at: Sequence[Index]) -> None:
        """Write the work of a block on its tile."""
        plane, kind = self.context.plane, f"const {self.context.integer}"
        *outer, row, column = at
        for loop, place in zip(shared_loops(plane), outer, strict=True):
            body.let(kind, loop.name, place)
        if plane.rows:
            body.let(kind, "row0", row * self.context.sizes.rows)
        body.let(kind, "column0", column * self.context.sizes.columns)
        if plane.transposed:
            body.let("const u32", "shared", "tw::shared_base()")
            body.let("const int", "thread", "threadIdx.x")
            for access in plane.transposed:
                self._transposing.read(body, access)
            for access in plane.transposed:
                self._transposing.write(body, access)
            body.call("tw::sync_block")
        columns = partial(self._columns, body)
        each(body, self._mapping, THREAD, columns, prefix="c", unroll=TURNS, integer="int")

    # -- what is computed ----------------------------------------------------------------------

    @property
    def _mapping(self) -> TaskMapping:
        """The mapping from threads to vectors of columns: lanes side by side, then warps, then
        turns."""
        high, wide = (
            self.context.sizes.rows,
            self.context.sizes.columns // self.context.sizes.vector,
        )
        lanes = int(self.context.sizes.lane_columns)
        lane_rows = WARP // lanes
        warps = self.context.sizes.threads // WARP
        across = min(warps, wide // lanes)
        down = warps // across
        turns = repeat(high // (lane_rows * down), wide // (lanes * across))
        return turns * spatial(down, across) * spatial(lane_rows, lanes)

    def _columns(self, body: Body, at: Sequence[Index]) -> None:
        """Write one vector of columns of each output."""
        plane, context = self.context.plane, self.context
        row, chunk = at
        vector, output = context.sizes.vector, plane.view.outputs[0]
        lines = Lines(context, output, plane.columns, "column0", vector)
        column = lines.place(chunk, context.sizes.columns // vector) * vector
        if AHEAD in column.names:
            context.at_row(body, row)
            lines.ahead(body, column)
            context.at_column(body, column)
        else:
            context.at_column(body, column)
            context.at_row(body, row)
        with body.where(context.within()):
            left = context.left(plane.columns, vector)
            body.let(f"const {context.integer}", "left", left)
            self._turns(body, loops_inside(plane), row, column)

    def _turns(self, body: Body, loops: Sequence[Loop], row: Index, column: Index) -> None:
        """Write reads and stores at all turns of the loops that a block does by itself."""
        view = self.context.plane.view
        if loops:
            loop, *inner = loops
            with body.loop(self.context.integer, loop.name, loop.extent, unroll=True):
                self._turns(body, inner, row, column)
            return
        for access in view.loaded:
            self._load(body, access, row, column)
        for n in range(len(view.outputs)):
            self._store(body, n)

    def _load(self, body: Body, access: Access, row: Index, column: Index) -> None:
        plane, name = self.context.plane, self.context.names[access]
        kind, place = C_TYPES[access.array.dtype], self.context.place(access)
        how = plane.kind(access)
        if how == SAME:
            body.let(f"const {kind}", name, f"tw::load_global({place})")
            return
        body.let(kind, name, count=self.context.sizes.vector)
        if how == TRANSPOSED:
            self._transposing.load(body, access, row, column)
        elif how == ALONG:
            step = width(plane, access, self.context.sizes.vector)
            body.call(f"tw_take<{self.context.sizes.vector}, {step}>", name, place, "left")
        else:
            element = self.context.place(access, self.context.elements)
            self._each(body, name, f"tw::load_global({element})", ["i < left"])

    def _each(self, body: Body, name: str, value: str, tests: Sequence[str] = ()) -> None:
        """Write how each element of a vector is set, if the ``tests`` hold."""
        with body.loop("int", "i", self.context.sizes.vector, unroll=True):
            if OWN in names_in(value):
                own = f"{self.context.plane.columns.name} + i"
                body.let(f"const {self.context.integer}", OWN, own)
            with body.where(tests, brief=True):
                body.assign(f"{name}[i]", value)

    def _store(self, body: Body, number: int) -> None:
        view = self.context.plane.view
        output, value = view.outputs[number], view.values[number]
        kind = C_TYPES[output.array.dtype]
        step = width(self.context.plane, output, self.context.sizes.vector)
        written = f"tw::from_float<{kind}>({self.context.elements.of(value)})"
        if moved := view.moved(number):
            written = self.context.element(moved)
        name = body.let(kind, f"y{number}", count=self.context.sizes.vector)
        self._each(body, name, written)
        give = f"tw_give<{self.context.sizes.vector}, {step}>"
        body.call(give, self.context.place(output), name, "left")

"""The CUDA C++ of reductions along rows and of elementwise maps.

A thread reads its vectors of a row from memory, joins them to the states of a pass (a reduction, or
several that run together), and merges these with the states of the row's other threads; after the
last pass it computes and stores its share of the outputs. A decision says where elements stay
between passes: in registers, in shared memory (each thread finds there what it copied itself, so
that no barrier is needed), or in memory, to be read again. Blocks may be persistent and go over
many tiles: then tiles can be copied ahead, and operands that all rows share can stay in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, islice

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.abi import function, open_tiles
from tilewright.spaces.cuda.rows.beside import Beside
from tilewright.spaces.cuda.rows.column_sums import ColumnSums
from tilewright.spaces.cuda.rows.context import Context
from tilewright.spaces.cuda.rows.long_sums import per_row
from tilewright.spaces.cuda.rows.merging import EXCHANGE_WAITS, Merging, exchange_begins
from tilewright.spaces.cuda.rows.outputs import ElementOutputs, row_outputs
from tilewright.spaces.cuda.rows.prelude import prelude
from tilewright.spaces.cuda.rows.reducers import States
from tilewright.spaces.cuda.rows.sweep import Level, Sweep, copies, hold, shared_by_rows
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.rows.passes import Pass
from tilewright.spaces.kernel import Call, Kernel, Launch, OpenGrid, Source, arguments
from tilewright.spaces.kernels.text import CUDA


@dataclass(frozen=True)
class RowsCode:
    """The kernel named ``entry`` of the program of ``context``.

    Persistent blocks are at most ``most_blocks``, which is a whole number of clusters.
    """

    context: Context
    entry: str
    most_blocks: int

    def kernel(self) -> Kernel:
        """Return the kernel with its launch and the functions that it calls."""
        program = self.context.rows.program
        cluster = self.context.number("cluster")
        launch = Launch(
            (self.blocks, 1, 1),
            (self.threads, 1, 1),
            cluster=(cluster, 1, 1),
            shared_bytes=self.shared_bytes,
            open_grid=self._open_grid,
        )
        given = arguments(program.operands, self.context.rows.written)
        text, launches, workspace = self.source, [launch], 0
        if self._sums is not None:
            joining = f"{self.entry}_totals"
            text += self._sums.joining(joining)
            launches = [replace(launch, entry=self.entry), self._sums.launch(joining)]
            workspace = self._sums.workspace_bytes
        source = Source("cuda", prelude(self.context.rows), text)
        return Kernel(source, Call(self.entry, given, workspace, launches=tuple(launches)))

    @cached_property
    def _sums(self) -> ColumnSums | None:
        """The sums over all rows, if there are any."""
        context, values = self.context, self.context.values
        if not context.rows.summed:
            return None
        walks = self.blocks // context.number("cluster")
        rows = ceil_div(self.tiles, walks) * context.at_once
        return ColumnSums(context, walks * int(values["block_rows"]), rows)

    @property
    def _open_grid(self) -> OpenGrid | None:
        """The dependence of the grid on the rows of a call; persistent blocks are no more than
        :attr:`blocks`."""
        context, rows_each = self.context, self.context.rows_each
        if rows_each is None:
            return None
        chunks = int(context.tile.chunks(context.values))
        step = int(context.tile.tile_rows(context.values))
        return OpenGrid(step, chunks * context.number("cluster"), rows_each, most=self.blocks)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return int(self.context.tile.threads(self.context.values))

    @property
    def _held_bytes(self) -> int:
        return self.context.held_bytes * self.context.buffers

    @property
    def _prefetches(self) -> bool:
        """True if tiles are copied while earlier ones are worked on."""
        return self.context.number("stages") > 1

    @property
    def _across(self) -> bool:
        return self.context.values["lanes"] == "rows"

    @property
    def tiles(self) -> int:
        """Tiles of the problem."""
        return int(self.context.tile.tiles(self.context.values))

    @property
    def _is_open(self) -> bool:
        """True if calls give the number of rows."""
        return self.context.rows_each is not None

    @property
    def tile_count(self) -> str:
        """C text of the tiles of a call."""
        return "tiles" if self._is_open else str(self.tiles)

    def _count_tiles(self) -> list[str]:
        """Print the declaration of :attr:`tile_count`, unless it is a number."""
        context, tile = self.context, self.context.tile
        if context.rows_each is None:
            return []
        step, chunks = int(tile.tile_rows(context.values)), int(tile.chunks(context.values))
        count = open_tiles(step, context.rows.row_count, context.rows_each) * chunks
        return [f"const int tiles = {count.text};"]

    @property
    def blocks(self) -> int:
        """Blocks of the launch: one for each tile (times the cluster), or as many as run at a
        time."""
        cluster = self.context.number("cluster")
        if self.context.values["tile_scheduler"] == "tiles":
            return self.tiles * cluster
        return min(self.tiles * cluster, self.most_blocks)

    @cached_property
    def passes(self) -> list[tuple[States, Merging]]:
        """The states of each pass and how they are merged; each merge has slots of its own."""
        context, place = self.context, self._held_bytes
        found: list[tuple[States, Merging]] = []
        for pass_ in context.use.passes:
            counts = context.elements, context.steps, context.block_steps
            states = States(pass_, context.scope, context.at_once, *counts)
            merging = Merging(
                states,
                self.context.number("row_threads"),
                self.context.number("block_rows"),
                self.context.number("cluster"),
                self._across,
                place,
            )
            place += merging.bytes
            found.append((states, merging))
        return found

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block: the elements it holds, then the slots of merges."""
        return self._held_bytes + sum(merging.bytes for _, merging in self.passes)

    @property
    def source(self) -> str:
        """The CUDA C++ of the entry."""
        bounds, lines = f"{self.threads}, {self.context.number('blocks_per_sm')}", self._threads()
        sums = self._sums
        lines += [*sums.begun(), *self._loop(), *sums.ended()] if sums else self._loop()
        return "\n".join(function(self.entry, bounds, self.context.parameters, lines)) + "\n"

    def _threads(self) -> list[str]:
        """Print the declarations of ``group``, the row of the tile, and ``part``, the thread in
        it."""
        row_threads, cluster = self.context.number("row_threads"), self.context.number("cluster")
        rank = f" + (int)tw::cluster_rank() * {row_threads}" if cluster > 1 else ""
        fast, slow = ("group", "part") if self._across else ("part", "group")
        wide = self.context.number("block_rows") if self._across else row_threads
        return [
            *(["const u32 shared = tw::shared_base();"] if self.shared_bytes else []),
            *(exchange_begins([m for _, m in self.passes]) if self._exchanges else []),
            f"const int {fast} = (int)threadIdx.x % {wide}{rank};",
            f"const int {slow} = (int)threadIdx.x / {wide};",
        ]

    @property
    def _exchanges(self) -> bool:
        """True if the blocks of a cluster merge their states."""
        return self.context.number("cluster") > 1 and bool(self.passes)

    def _loop(self) -> list[str]:
        """Print the loop over the tiles of a block, with copies ahead if there are any."""
        cluster = self.context.number("cluster")
        first = f"(int)blockIdx.x / {cluster}" if cluster > 1 else "(int)blockIdx.x"
        common = shared_by_rows(self.context)
        if self.tiles * cluster == self.blocks:
            lines = [f"const int tile = {first};", *common, *self._tile()]
            return CUDA.block(*lines)
        count = self._count_tiles()
        stride = self.blocks // cluster
        each = partial(CUDA.loop, "tile", self.tile_count, first=first, step=stride)
        least = 1 if self._across else WARP
        waits = self.passes and self.context.number("row_threads") > least
        again = ["tw::sync_block();"] if waits else []
        again += ["round++;"] if self._exchanges else []
        if not self._prefetches:
            return [*count, *common, *each([*self._tile(), *again])]
        ahead, buffers = self.context.number("stages") - 1, self.context.buffers
        before = [line for i in range(ahead) for line in self._prefetch(first, i * stride, str(i))]
        further = self._prefetch("tile", ahead * stride, f"((buffer + {ahead}) % {buffers})")
        beside = self._beside.come(stride, self.tile_count)
        if (
            self.context.values["row_storage"] == "registers"
        ):  # which free the buffer for the next tile
            body = self._work([f"tw::cp_async_wait<{ahead - 1}>();"], further)
        else:
            body = self._work([*further, f"tw::cp_async_wait<{ahead}>();"])
        body = [*self._place(), *beside, *body, *again]
        body += [f"buffer = (buffer + 1) % {buffers};"]
        before += [*common, *self._beside.before(first), "int buffer = 0;"]
        return [*count, *before, *each(body)]

    def _prefetch(self, tile: str, distance: int, buffer: str) -> list[str]:
        """Print how the tile ``distance`` later is copied to ``buffer``, if there is one.

        The copies of a tile are one group of ``cp.async``.
        """
        lines = [*self._place("next"), *self._beside.places(), *self._beside.pointers()]
        lines += copies(self.context, buffer)
        test = f"const int next = {tile} + {distance}; next < {self.tile_count}"
        return [*CUDA.when(test, lines), "tw::cp_async_commit();"]

    def _tile(self) -> list[str]:
        """Print the work on a tile that is not copied ahead."""
        return [*self._place(), *self._beside.read(), *self._work()]

    def _work(self, arrived: Sequence[str] = (), further: Sequence[str] = ()) -> list[str]:
        """Print the work on the rows of a tile, from their first element to their last output.

        ``arrived`` are lines that wait for copies; ``further`` come once registers hold what they
        keep.
        """
        context = self.context
        passes = [line for states, merging in self.passes for line in self._pass(states, merging)]
        elements = ElementOutputs(context)
        return [
            *self._beside.pointers(),
            *arrived,
            *hold(context, self._prefetches),
            *further,
            *self._results(),
            *passes,
            *row_outputs(context),
            *(elements.lines() if elements.outputs else []),
            *(self._sums.tile_ends() if self._sums else []),
        ]

    def _place(self, tile: str = "tile") -> list[str]:
        """Print where the tile is; rows past the last one are replaced by the last one."""
        context, rows = self.context, self.context.rows
        chunks = int(context.tile.chunks(context.values))
        across = f"{tile} / {chunks}" if chunks > 1 else tile
        tile_rows = int(context.tile.tile_rows(context.values))
        row = f"row0 + k * {self.context.number('block_rows')}"
        inside = f"{row} < {context.row_count} ? {row} : {context.last_row}"
        chunk = context.steps * context.unroll * context.turn
        column = f"({context.integer})({tile} % {chunks}) * {chunk}" if chunks > 1 else "0"
        return [
            f"const int row0 = {across} * {tile_rows} + group;",
            *([f"const {context.integer} column0 = {column};"] if rows.is_map else []),
            f"int row[{context.at_once}];",
            *per_row(context.at_once, [f"row[k] = {inside if context.valid else row};"]),
        ]

    @property
    def _beside(self) -> Beside:
        return Beside(self.context, self._place)

    # -- passes --------------------------------------------------------------------------------

    def _results(self) -> list[str]:
        """Print the declarations of the results of all passes."""
        context, lines = self.context, []
        for states, _ in self.passes:
            for r in states.pass_:
                kind = "int" if states.is_argument(r) else context.real
                lines.append(f"{kind} {context.results[r.name]}[{context.at_once}];")
        return lines

    def _pass(self, states: States, merging: Merging) -> list[str]:
        """Print a pass: sweep, merge, and final results."""
        context = self.context
        threads = self.context.number("row_threads") * self.context.number("cluster")
        results = [
            f"{context.results[r.name]}[k] = {states.result(r, threads)};" for r in states.pass_
        ]
        body = [
            *states.declare(),
            *self._swept(states),
            *(EXCHANGE_WAITS if self._exchanges and merging is self.passes[0][1] else []),
            *merging.lines(),
            *per_row(context.at_once, [*states.settle(threads), *results]),
        ]
        return CUDA.block(*body)

    def _swept(self, states: States) -> list[str]:
        corrects = states.corrected and self.context.steps > 1
        levels = []
        for reductions in states.levels:
            before = [line for r in reductions for line in states.correct(r)] if corrects else []
            fresh = tuple(r for r in reductions if not states.is_known(r))
            levels.append(self._level(states, fresh, before))
        begin = states.remember() if corrects else []
        sweep = Sweep(self.context, levels, begin, states.step_ends())
        return [*sweep.lines(), *states.blocks_joined()]

    def _level(self, states: States, reductions: Pass, before: list[str]) -> Level:
        context = self.context
        factors = [states.factors(r) for r in reductions]

        def use(texts: Sequence[str]) -> list[str]:
            rest = iter(texts)
            return [
                states.join(r, list(islice(rest, len(own))), context.rank(r.name))
                for r, own in zip(reductions, factors, strict=True)
            ]

        kept = states.kept() if before else []
        scope = states.within(reference=True)
        return Level(scope, list(chain(*factors)), use, [*kept, *before])

"""The CUDA C++ of scans: a block has a tile of a row, or several rows, in registers.

Threads run along their elements, and the lanes of a warp and the warps of a block join what these
come to. A block walks along its rows and carries the states on from tile to tile; or each tile of a
row has a block, which leaves its own states for those behind it, and joins those of all before
(after Merrill and Garland, Single-pass parallel prefix scan with decoupled look-back, 2016; here
blocks wait for nothing but tiles, so that results do not depend on time). Blocks take their tiles
in the order of tickets: all before have begun, and wait for none behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.spaces.cuda.abi import function
from tilewright.spaces.cuda.blocks.last_to_come import TICKET, TICKETS, LastToCome
from tilewright.spaces.cuda.rows.beside import Beside
from tilewright.spaces.cuda.rows.outputs import ElementOutputs
from tilewright.spaces.cuda.rows.prelude import prelude
from tilewright.spaces.cuda.rows.sweep import Level, Sweep, hold
from tilewright.spaces.cuda.scalar_code import literal
from tilewright.spaces.cuda.scan.context import ScanContext
from tilewright.spaces.cuda.scan.prelude import scan_functions
from tilewright.spaces.cuda.scan.sizes import BUFFERS, ROWS, ScanSizes
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction
from tilewright.spaces.kernel import Call, Kernel, Launch, Source, arguments
from tilewright.spaces.kernels.body import Body
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.functions import REDUCERS


@dataclass(frozen=True)
class ScanCode:
    """The kernel named ``entry`` of the scan of ``context``."""

    context: ScanContext
    entry: str

    def kernel(self) -> Kernel:
        """Return the kernel with its launch and the functions that it calls."""
        view, sizes = self.context.rows, self.sizes
        program = view.program
        launch = Launch(
            (int(sizes.blocks), 1, 1),
            (int(sizes.threads), 1, 1),
            shared_bytes=int(sizes.shared_bytes),
        )
        functions = scan_functions((r.reducer for r in view.running), self.context.real)
        call = Call(
            self.entry,
            arguments(program.operands, program.outputs),
            int(sizes.workspace_bytes),
            int(sizes.zeroed_bytes),
            (launch,),
        )
        return Kernel(Source("cuda", prelude(view) + functions, self.source), call)

    @property
    def sizes(self) -> ScanSizes:
        """The tiles."""
        return self.context.sizes

    @property
    def _splits(self) -> bool:
        """True if blocks share the columns of a row."""
        return bool(self.sizes.splits)

    @property
    def _carries(self) -> bool:
        """True if a block has several tiles of a row."""
        return not self._splits and int(self.sizes.chunks) > 1

    @property
    def source(self) -> str:
        """The CUDA C++ of the entry."""
        given = self.context.parameters + ", u8 *__restrict__ workspace" * self._splits
        lines = [*self._threads(), *self._tiles()]
        return "\n".join(function(self.entry, int(self.sizes.threads), given, lines)) + "\n"

    # -- places --------------------------------------------------------------------------------

    def _threads(self) -> list[str]:
        """Print the declarations of ``group``, the row of the tile, of ``order``, the place of the
        thread in the scan of it, and of ``part``, that of its elements in memory."""
        rows, columns = self.context.number("block_rows"), self.context.number("row_threads")
        across = self.context.values["lanes"] == ROWS
        fast, slow, wide = ("group", "order", rows) if across else ("order", "group", columns)
        part = f"{columns - 1} - order" if self.context.rows.backwards else "order"
        return [
            *(["const u32 shared = tw::shared_base();"] if self.sizes.shared_bytes else []),
            f"const int {fast} = (int)threadIdx.x % {wide};",
            f"const int {slow} = (int)threadIdx.x / {wide};",
            f"const int part = {part};",
        ]

    def _tiles(self) -> list[str]:
        """Print the work of a block: on one tile, or on all tiles of its rows."""
        sizes, row_tiles = self.sizes, int(self.sizes.row_tiles)
        if self._splits:
            return [
                *CUDA.written(self._ticket("workspace").take),
                f"const int number = {self._ticket('workspace').number};",
                f"const int tile = number % {row_tiles}, chunk = number / {row_tiles};",
                *self._rows(),
                *self._tile(),
            ]
        if not self._carries:
            return ["const int tile = (int)blockIdx.x, chunk = 0;", *self._rows(), *self._tile()]
        carried = [line for n, r in self._states for line in self._carry_begins(n, r)]
        walk = CUDA.loop("chunk", int(sizes.chunks), self._tile(), unroll=1)
        return ["const int tile = (int)blockIdx.x;", *self._rows(), *carried, *walk]

    def _ticket(self, place: str) -> LastToCome:
        word = f"shared + {int(self.sizes.shared_bytes) - TICKET}"
        return LastToCome(f"(u32 *)({place})", word)

    def _rows(self) -> list[str]:
        """Print where the row of a thread is, which is the last one for rows past it."""
        context = self.context
        row = f"row0 < {context.rows.row_count} ? row0 : {context.rows.row_count - 1}"
        beside = Beside(context, self._no_tile)
        return [
            f"const int row0 = tile * {context.number('block_rows')} + group;",
            f"const int row[1] = {{{row if context.valid else 'row0'}}};",
            *beside.read(),
            *beside.pointers(),
        ]

    @staticmethod
    def _no_tile(name: str) -> list[str]:
        return []

    def _tile(self) -> list[str]:
        """Print the work on a tile, from its first element to its last output."""
        context, chunks = self.context, int(self.sizes.chunks)
        chunk = f"({chunks - 1} - chunk)" if context.rows.backwards else "chunk"
        place = f"({context.integer}){chunk} * {int(self.sizes.tile)}"
        return [
            f"const {context.integer} column0 = {place};",
            *hold(context, is_copied=False),
            *(line for n, r in self._states for line in self._state(n, r)),
            *(self._reset() if self._splits else []),
            *ElementOutputs(context).lines(),
        ]

    # -- states --------------------------------------------------------------------------------

    @property
    def _states(self) -> Sequence[tuple[int, ChainReduction]]:
        return list(enumerate(self.context.rows.running))

    def _state(self, n: int, r: ChainReduction) -> list[str]:
        """Print how ``s0``, ... becomes the state at each element of a thread."""
        context, sizes, view = self.context, self.sizes, self.context.rows
        real, count, structure = context.real, int(sizes.elements), f"tw_of_{r.reducer}"
        lanes, groups = int(sizes.lanes), int(sizes.groups)
        nothing = ", ".join([literal(REDUCERS[r.reducer].identity, real)] * count)
        sizes_of = f"{context.unroll}, {context.number('vector')}, {lanes}"
        way = ", ".join(str(b).lower() for b in (view.backwards, r.name in view.exclusive))
        level = Level(context.scope, [r.element], self._set(n))
        run = f"tw_run<{structure}, {sizes_of}, {way}>(s{n}, order % {lanes})"
        lines = [f"{real} all{n} = {run};"]
        before = ""
        if groups > 1:
            slots = self._slots(n, "(chunk & 1)" if self._carries else "0")
            lines += self._groups(n, structure, slots, f"all{n}")
            before = f"before{n}"
        if self._splits:
            lines += self._before(n, structure)
        if self._splits or self._carries:
            before = f"{structure}::join(carry{n}, {before})" if before else f"carry{n}"
        if before:
            lines.append(f"tw_onto<{structure}>(s{n}, {before});")
        if self._carries:
            lines.append(self._carry(n, r))
        return [f"{real} s{n}[{count}] = {{{nothing}}};", *Sweep(context, [level]).lines(), *lines]

    def _set(self, n: int) -> Callable[[Sequence[str]], Sequence[str]]:
        element = self.context.element(n)
        return lambda texts: [f"{element} = {texts[0]};"]

    def _groups(self, n: int, structure: str, slots: str, name: str) -> list[str]:
        """Print how groups of a row leave their states in shared memory, and join those before
        theirs, and all."""
        lanes, rows = int(self.sizes.lanes), self.context.number("block_rows")
        own = f"{slots} + (order / {lanes} * {rows} + group) * 8"
        first = f"order % {lanes} == 0"
        call = f"({slots} + group * 8, {8 * rows}, order / {lanes}, before{n}, {name})"
        return [
            *CUDA.when(first, f"tw::store_shared({own}, {name});"),
            "tw::sync_block();",
            f"{self.context.real} before{n};",
            f"tw_groups<{structure}, {int(self.sizes.groups)}>{call};",
        ]

    def _slots(self, n: int, buffer: str) -> str:
        size = int(self.sizes.slot_bytes)
        return f"shared + {n * BUFFERS * size} + {buffer} * {size}"

    # -- tiles of a row --------------------------------------------------------------------------

    def _carry_begins(self, n: int, r: ChainReduction) -> list[str]:
        nothing = literal(REDUCERS[r.reducer].identity, self.context.real)
        names = [f"carry{n} = {nothing}", *[f"excess{n} = 0"] * (r.reducer == "sum")]
        return [f"{self.context.real} {', '.join(names)};"]

    def _carry(self, n: int, r: ChainReduction) -> str:
        """Return the statement that takes the state of a tile into that of all before."""
        if r.reducer == "sum":
            return f"tw_add_block(carry{n}, excess{n}, all{n});"
        return f"carry{n} = tw_of_{r.reducer}::join(carry{n}, all{n});"

    def _before(self, n: int, structure: str) -> list[str]:
        """Print how a block leaves the state of its tile, and joins those of all tiles before."""
        real, sizes, context = self.context.real, self.sizes, self.context
        chunks, rows, tiles = int(sizes.chunks), context.rows.row_count, int(sizes.row_tiles)
        threads = context.number("row_threads")
        left = f"({real} *)(workspace + {int(sizes.zeroed_bytes)}) + (i64){n * chunks} * {rows}"
        flags = f"(u32 *)(workspace + {TICKETS}) + {n * chunks * tiles} + tile"
        tests = ["order == 0", *[f"row0 < {rows}"] * bool(context.valid)]
        found = f"tw::load_global(left{n} + (i64)other * {rows})"
        join = f"carry{n} = {structure}::join(carry{n}, {found});"
        wait = f"tw::wait_global(flags{n} + other * {tiles}, 1u);"
        nothing = f"{structure}::nothing()"
        store = f"tw::store_global(left{n} + (i64)chunk * {rows}, all{n});"
        signal = f"tw::signal_global(flags{n} + chunk * {tiles}, 1u);"
        lines = [
            f"{real} *const left{n} = {left} + row[0];",
            f"u32 *const flags{n} = {flags};",
            *CUDA.when(" && ".join(tests), [store, "tw::fence_global();"]),
            "tw::sync_block();",
            *CUDA.when("threadIdx.x == 0", signal),
            f"{real} carry{n} = {nothing};",
            *CUDA.loop("other", "chunk", [wait, join], first="order", step=threads),
            f"carry{n} = tw_whole<{structure}, {int(sizes.lanes)}>(carry{n});",
        ]
        if int(sizes.groups) == 1:
            return lines
        joined = self._groups(n, structure, self._slots(n, "1"), f"carry{n}")
        return [*lines, *CUDA.block(*joined)]

    def _reset(self) -> list[str]:
        """Print how the last block to have joined what it needs clears all flags and tickets."""
        done = self._ticket("workspace + 4")

        def write(body: Body) -> None:
            body.call("tw::sync_block")
            done.take(body)
            with body.when(f"{done.number} == {int(self.sizes.blocks) - 1}"):
                body.call("tw::fence_global")
                first, step = "(int)threadIdx.x", int(self.sizes.threads)
                with body.loop("int", "flag", int(self.sizes.flags), first=first, step=step) as at:
                    place = f"(u32 *)(workspace + {TICKETS}) + {at}"
                    body.call("tw::store_global", place, "0u")
                done.reset(body)
                self._ticket("workspace").reset(body)

        return CUDA.written(write)

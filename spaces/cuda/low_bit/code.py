"""The CUDA C++ of a product with packed codes: a stream of words, and what they meet.

    blocks (rows, columns, splits of the depth) * warps (columns, depth) * tiles of codes

A block lays activations of a part of the depth into shared memory. Its warps read whole tiles of
codes, each word once, decode them in registers and multiply them, as :mod:`.scalar` or
:mod:`.matrix` has it. Then sums of warps are added up, and those of the blocks of a split, of which
the last to come finds the sums of all in the workspace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import index
from tilewright.spaces.algebra.mapping import spatial
from tilewright.spaces.algebra.mapping_emit import only_task
from tilewright.spaces.cuda.abi import function, parameters
from tilewright.spaces.cuda.low_bit.decoding import Decoding, Lines
from tilewright.spaces.cuda.low_bit.elements import Elements
from tilewright.spaces.cuda.low_bit.sizes import FLOAT, CodedSizes
from tilewright.spaces.cuda.low_bit.sums import BlockSums
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.products.coded import CodedProduct
from tilewright.spaces.kernel import Argument, Call, Kernel, Launch, Source
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.low_bit.order import DEPTH, HALVES, ROWS, tile_bytes


@dataclass(frozen=True)
class CodedCode(ABC):
    """The kernel called ``entry`` of a product; integers are those of ``sizes``."""

    sizes: CodedSizes
    decoding: Decoding
    arguments: tuple[Argument, ...]
    entry: str

    def kernel(self, prelude: str) -> Kernel:
        """Return the whole kernel; ``prelude`` defines the functions that expressions call."""
        sizes = self.sizes
        launch = Launch(
            (int(sizes.blocks), 1, 1),
            (int(sizes.threads), 1, 1),
            shared_bytes=int(sizes.shared_bytes),
        )
        call = Call(
            self.entry,
            self.arguments,
            int(sizes.workspace_bytes),
            int(sizes.ticket_bytes),
            (launch,),
        )
        return Kernel(Source("cuda", prelude, self.source), call)

    @property
    def source(self) -> str:
        """The functions of elements, and the entry."""
        given = parameters(self.elements.named, self._splits > 1)
        entry = function(self.entry, int(self.sizes.threads), given, self._body())
        return self.decoding.helper() + "\n".join([*self.elements.functions(), *entry]) + "\n"

    @property
    def product(self) -> CodedProduct:
        """The product that is computed."""
        return self.sizes.product

    @cached_property
    def elements(self) -> Elements:
        """The functions of activations, zero points, scales and the output."""
        return Elements(self.product, self.arguments, self.entry)

    # -- numbers -----------------------------------------------------------------------------------

    def _number(self, name: str) -> int:
        return int(self.sizes.values[name])

    @property
    def _splits(self) -> int:
        return self._number("splits")

    @property
    def _rows(self) -> int:
        return int(self.sizes.rows)

    @property
    def _columns(self) -> int:
        return int(self.sizes.columns)

    @property
    def _late_parts(self) -> bool:
        """Tell whether sums of parts of the depth are kept apart until their scales multiply
        them."""
        return bool(self.sizes.late) and self.sizes.is_grouped

    @property
    @abstractmethod
    def _has_zero(self) -> bool:
        """Tell whether zero points are subtracted of decoded values."""

    @property
    @abstractmethod
    def _zeros_above(self) -> float:
        """The number by which zero points are raised, like values."""

    @property
    def _is_early(self) -> bool:
        """Tell whether scales multiply decoded values."""
        return self.product.scale is not None and not self.sizes.late

    @property
    def _shared_by_part(self) -> Sequence[str]:
        """The names of what values of a part of the depth share."""
        is_late = self.product.scale is not None and self._late_parts
        return ["zero"] * self._has_zero + ["scale"] * (is_late or self._is_early)

    # -- the block ---------------------------------------------------------------------------------

    def _body(self) -> Lines:
        return [
            *self._place(),
            *self._table(),
            f"float s{self._each} = {{}};",
            *self._chunks(),
            "tw::sync_block();",
            *self._leave(),
            "tw::sync_block();",
            *self._sums.finish(),
        ]

    @property
    def _depth(self) -> int:
        return self._number("block_depth")

    @property
    @abstractmethod
    def _each(self) -> str:
        """C dimensions of the sums of a thread."""

    @abstractmethod
    def _chunks(self) -> Lines:
        """Lay the activations of each chunk of the depth into shared memory, and multiply them."""

    @abstractmethod
    def _multiply(self) -> Lines:
        """Multiply a tile of codes, whose words are ``w[f]``."""

    @abstractmethod
    def _leave(self) -> Lines:
        """Leave the sums of each warp in shared memory."""

    def _place(self) -> Lines:
        """Return C declarations of the place of a thread's work."""
        sizes, names = self.sizes, self.elements.names
        grid = spatial(int(sizes.row_blocks), int(sizes.column_blocks), self._splits)
        row, column, split = only_task(grid, index("block", int(sizes.blocks)))
        part, tiles = self._number("warp_depth"), self._number("warp_tiles")
        share, deep = int(sizes.share), sizes.deep
        ahead = f"first + {share} < {deep} ? first + {share} : {deep}"
        q = names[self.product.codes.name]
        if self.product.matrix is not None:
            size = sizes.deep * sizes.tiles * tile_bytes(self.decoding.bits)
            q += f" + {self.elements.call('matrix', 'row0')} * {size}"
        return [
            "const int block = blockIdx.x;",
            f"const int lane = threadIdx.x % {WARP}, part = threadIdx.x / {WARP} % {part};",
            f"const int own = threadIdx.x / {WARP * part};",
            f"const i64 row0 = {(row * self._rows).text};",
            f"const int tile0 = {(column * int(sizes.block_tiles)).text} + own * {tiles};",
            f"const i64 column0 = {(column * self._columns).text};",
            f"const int first = {(split * share).text}, last = {ahead};",
            "const u32 shared = tw::shared_base();",
            f"const u8 *const q = {q};",
        ]

    def _table(self) -> Lines:
        """Lay the table that codes choose from into shared memory."""
        if self.product.table is None:
            return []
        entry = f"tw::store_shared(table + {FLOAT} * n, {self.elements.call('entry', 'n')});"
        return [
            f"const u32 table = shared + {int(self.sizes.table_at)};",
            *self._sums.strided(self.decoding.codes, [entry]),
        ]

    # -- the stream of codes -----------------------------------------------------------------------

    def _stream(self) -> Lines:
        """Load the words of several tiles along the depth, then multiply them."""
        apart, flight = self._number("warp_depth"), self._number("in_flight")
        tiles, bits = self._number("warp_tiles"), self.decoding.bits
        loads = [line for tile in range(tiles) for line in self._load(tile)]

        def each(body: Lines) -> Lines:
            place = f"const int k = start + f * {apart};"
            return CUDA.loop("f", flight, [place, *CUDA.when("k < end", body)], unroll=True)

        body = [f"u32 w[{flight}][{tiles}][{bits}];", *each(loads), *each(self._multiply())]
        return CUDA.loop("start", "end", body, first="chunk + part", step=apart * flight)

    def _load(self, tile: int) -> Lines:
        most, size = self.sizes.tiles - 1, tile_bytes(self.decoding.bits)
        return CUDA.block(
            f"const int tile = tile0 + {tile} < {most} ? tile0 + {tile} : {most};",
            f"const u8 *const p = q + ((i64)k * {most + 1} + tile) * {size};",
            *self.decoding.loads(f"w[f][{tile}]", "p"),
        )

    def _where_whole(self, body: Lines) -> Lines:
        """Run lines in all tiles but the last one."""
        return CUDA.when(f"k < {self.sizes.deep - 1}", body) if body else []

    def _shared(self, part: int) -> Lines:
        """Declare what the values of a part of a tile's depth share."""
        lines = []
        for tile, half in self._halves():
            column = (
                f"tw_whole_min(column0 + {self._column(tile, half)}, {self.product.columns - 1})"
            )
            depth = f"(i64)k * {DEPTH} + {part * DEPTH // self.sizes.parts}"
            for name in self._shared_by_part:
                value = self.elements.call(name, "row0", column, depth)
                if name == "zero" and self._zeros_above:
                    value += f" + {self._zeros_above}f"
                lines.append(f"const float {name}{tile}_{half} = {value};")
        return lines

    def _halves(self) -> Iterator[tuple[int, int]]:
        """Yield the tiles of a warp along the columns, and both halves of each."""
        for tile in range(self._number("warp_tiles")):
            for half in range(HALVES):
                yield tile, half

    def _column(self, tile: int, half: int) -> str:
        """C expression: the column, within the block, of a lane in a half of a tile."""
        first = self._number("warp_tiles") * ROWS
        return f"own * {first} + {tile * ROWS + half * ROWS // HALVES} + lane / 4"

    # -- the sums ----------------------------------------------------------------------------------

    @cached_property
    def _sums(self) -> BlockSums:
        sizes = self.sizes
        return BlockSums(
            elements=self.elements,
            rows=self._rows,
            columns=self._columns,
            pitch=self._columns,
            parts=self._number("warp_depth"),
            splits=self._splits,
            threads=int(sizes.threads),
            inside=f"row < {self.product.row_count} && column < {self.product.columns}",
            scale=bool(sizes.late) and not sizes.is_grouped,
            word_at=int(sizes.word_at),
            ticket_bytes=int(sizes.ticket_bytes),
        )

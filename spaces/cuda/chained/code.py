"""The CUDA C++ of a chained kernel by ``mma.sync``: scores, chain and sums of a block of rows.

A block has the rows of one product that its warps share, slices of sixteen for each warp. Tiles of
keys come to a ring in shared memory, some steps ahead. For each one, a warp multiplies scores into
registers, turns them to weights there, corrects its sums, and multiplies the weights into them:
what the first product leaves on a lane is what the second one takes from it. Tiles outside of all
rows' keys are not visited; those within test nothing. As task mappings:

    spatial(products, row tiles, slices of the width) * repeat(tiles of keys)
        * spatial(warps) * repeat(slices) * (the fragments of a warp)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from spaces.algebra.index import Index
from spaces.algebra.mapping import repeat
from spaces.algebra.mapping_emit import indented
from spaces.cuda import scalar_math
from spaces.cuda.blocks.unrolled import unrolled
from spaces.cuda.chained import access, chain
from spaces.cuda.chained.access import Access
from spaces.cuda.chained.chain import ROWS, FragmentChain, Written
from spaces.cuda.chained.finish import Finish
from spaces.cuda.chained.merging import PartMerging
from spaces.cuda.chained.sizes import ChainedSizes
from spaces.cuda.chained.spans import Spans
from spaces.cuda.chained.tiles import BYTES, SharedTile, Side
from spaces.cuda.mma.code import INSTRUCTIONS
from spaces.cuda.mma.fragments import FRAGMENT, Fragments
from spaces.derivation.chained.text import split
from spaces.derivation.chained.view import Chained
from spaces.derivation.products.splitting import Part
from spaces.kernel import Argument, Call, Kernel, Launch, Source
from spaces.language.tree import Expression
from spaces.schedule import Value

_WIDE = 8  # columns of an accumulator


@dataclass(frozen=True)
class ChainedCode:
    """The kernel called ``entry`` under the decisions ``values``; products are multiplied in
    ``dtype``."""

    sizes: ChainedSizes
    values: Mapping[str, Value]
    dtype: str
    entry: str

    def kernel(self, arguments: tuple[Argument, ...], functions: frozenset[str]) -> Kernel:
        """The kernel as a whole, of a program that calls ``functions``."""
        launch = Launch(
            (int(self.sizes.blocks(self.values)), 1, 1),
            (self.threads, 1, 1),
            shared_bytes=int(self.sizes.shared_bytes(self.values)),
        )
        called = {*functions, "floor"}
        prelude = scalar_math.prelude(called) + chain.HELPERS + access.HELPERS
        merging = self._merging
        call = Call(
            self.entry,
            arguments,
            merging.workspace_bytes,
            merging.zeroed_bytes,
            (launch,),
        )
        return Kernel(Source("cuda", prelude, self.source), call)

    # -- extents -----------------------------------------------------------------------------------

    def _number(self, name: str) -> int:
        return int(self.values[name])

    @property
    def chained(self) -> Chained:
        """The program, its scores bare."""
        return self.sizes.chained.bare

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return int(self.sizes.threads(self.values))

    @property
    def slices(self) -> int:
        """Slices of sixteen rows of a warp."""
        return self._number("slices")

    @property
    def keys(self) -> int:
        """Keys of a tile."""
        return self._number("keys")

    @property
    def columns(self) -> int:
        """Columns of a block's sums."""
        return self._number("columns") if self.chained.weighings else 0

    @property
    def split(self) -> int:
        """Blocks that share the keys of a tile of rows."""
        return self._number("split")

    @property
    def _rows(self) -> int:
        return int(self.sizes.rows(self.values))

    @property
    def _holds_rows(self) -> bool:
        return self.values["queries"] == "registers"

    # -- names -------------------------------------------------------------------------------------

    @cached_property
    def _batch(self) -> Access:
        """What is known of a block's product."""
        return Access(self.chained, {p.name: f"b{i}" for i, p in enumerate(self.chained.batch)})

    @cached_property
    def _row(self) -> Access:
        """What is known of row ``r`` of a lane."""
        rows = enumerate(self.chained.rows)
        return self._batch.knowing({part.name: f"p{i}[r]" for i, part in rows})

    @property
    def _integer(self) -> str:
        return self._batch.integer

    @cached_property
    def _chain(self) -> FragmentChain:
        own = self._row.knowing({self.chained.key.name: "key"})

        def row_leaf(node: Expression) -> str | None:
            return None if self.chained.reads_key(node) else self._row.leaf(node)

        def key_leaf(node: Expression) -> str | None:
            reads = self.chained.key.name in self.chained.indexing.reads(node)
            return own.leaf(node) if reads else None

        return FragmentChain(
            self.chained,
            self.keys // 2,
            ROWS * self.slices,
            f"{ROWS} * f + h",
            lambda e: f"s[f][{e} / 4][{e} % 4]",
            row_leaf,
            key_leaf,
            self._spans.ends(self.keys),
            str(self.values["rescale"]),
        )

    @cached_property
    def _spans(self) -> Spans:
        return Spans(self._batch)

    # -- operands ----------------------------------------------------------------------------------

    def _tile(self, value: Expression, slow: Side, fast: Side) -> SharedTile:
        return SharedTile(self._batch, value, slow, fast, self.dtype, self.threads)

    def _keys_side(self, tile: str) -> Side:
        key = self.chained.key
        return Side((key,), self.keys, tile, ends=key.extent % self.keys > 0)

    def _side(self, part: Part, extent: int, first: str = "0") -> Side:
        return Side((part,), extent, first, ends=part.extent % extent > 0)

    @cached_property
    def _left(self) -> SharedTile:
        rows = Side(self.chained.rows, self._rows, "first_row", ends=False)
        depth = self._side(self.chained.depth, self.sizes.depth)
        return self._tile(self.chained.left, rows, depth)

    def _right(self, tile: str) -> SharedTile:
        depth = self._side(self.chained.depth, self.sizes.depth)
        return self._along(self.chained.right, self._keys_side(tile), depth)

    def _matrix(self, matrix: Expression, tile: str) -> SharedTile:
        width = self._side(self.chained.width, self.columns, "block_column")
        return self._along(matrix, self._keys_side(tile), width)

    def _along(self, value: Expression, keys: Side, other: Side) -> SharedTile:
        """Keys slow, or fast where the array lies along them."""
        usual = self._tile(value, keys, other)
        turned = self._tile(value, other, keys)
        return turned if not usual.vector and turned.vector else usual

    def _operand(self, name: str, tile: SharedTile, keys_are_columns: bool) -> Fragments:
        """The right operand of a product of all warps."""
        keys_slow = tile.slow.parts == (self.chained.key,)
        count = (self.keys if keys_are_columns else self.columns) // FRAGMENT
        deep = keys_slow == keys_are_columns
        return Fragments(name, 1, (self._number("warps"), 1), count, tile.layout, deep, BYTES)

    @property
    def _stage_bytes(self) -> int:
        return int(self.sizes.stage_bytes(self.values))

    # -- text --------------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        """The entry."""
        bounds = f"__launch_bounds__({self.threads}, {self._number('residency')})"
        loop, finish = self._loop(), self._finish()  # these say what is known of rows before
        body = [
            "const u32 shared = tw::shared_base();",
            "const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;",
            *self._place(),
            *self._begin_rows(),
            *self._spans.block_lines("first_row", self._rows, "first_key", "last_key"),
            *self._warp_spans(),
            *self._load_rows(),
            *self._declare(),
            *loop,
            *finish,
        ]
        parameters = self._batch.parameters()
        parameters += ", u8 *__restrict__ workspace" if self.split > 1 else ""
        lines = [
            f'extern "C" __global__ void {bounds} {self.entry}({parameters}) {{',
            f"  constexpr int TW_KEYS = {self.keys};",
            *indented(body),
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _place(self) -> list[str]:
        """Which product, rows and columns a block has."""
        tiles, slices = int(self.sizes.row_tiles(self.values)), int(self.sizes.slices(self.values))
        order = str(self.values["order"])
        batches, integer = self.chained.batches, self._integer
        if order.startswith("rows"):
            tile, batch = f"block % {tiles}", f"block / {tiles}"
        else:
            tile, batch = f"block / {batches}", f"block % {batches}"
        if order.endswith("down"):
            tile = f"{tiles - 1} - {tile}"
        row = f"first_row + warp * {self.slices * FRAGMENT}"
        number = "(int)blockIdx.x"
        parts = []
        if self.split > 1:
            parts = [f"const int part = {number} % {self.split};"]
            parts.append(f"const int tile_number = {number} / {self.split};")
            number = "tile_number"
        return [
            *parts,
            f"const int block = {number} / {slices};",
            f"const int block_column = {number} % {slices} * {self.columns};",
            f"const int first_row = ({tile}) * {self._rows}, warp_row = {row};",
            f"const {integer} batch = {batch};",
            *split("batch", self.chained.batch, self._batch.names, integer),
        ]

    def _begin_rows(self) -> list[str]:
        """What a lane knows of each of its rows before the first tile."""
        count, chained, integer = ROWS * self.slices, self.chained, self._integer
        local = {part.name: f"q{i}" for i, part in enumerate(chained.rows)}
        last = chained.row_count - 1
        body = [
            "const int own = warp_row + r / 2 * 16 + r % 2 * 8 + lane / 4;",
            f"const {integer} row = tw_least(own, {last});",
            *split("row", chained.rows, local, integer),
            *(f"p{i}[r] = q{i};" for i in range(len(local))),
            f"{integer} begin, end;",
            *self._row.forms.bounds(chained.bounds, chained.key, "begin", "end"),
            "low[r] = (int)begin;",
            "high[r] = (int)tw_most(end, 0);",
            *self._chain.of_rows(),
        ]
        return [
            *(f"{integer} p{i}[{count}];" for i in range(len(local))),
            f"int low[{count}], high[{count}];",
            *self._chain.declared(),
            "#pragma unroll",
            f"for (int r = 0; r < {count}; r++) {{",
            *indented(body),
            "}",
        ]

    def _warp_spans(self) -> list[str]:
        rows = self.slices * FRAGMENT
        return [
            *self._spans.block_lines("warp_row", rows, "own_first", "own_last"),
            *self._spans.whole_lines("warp_row", rows, "whole_first", "whole_last"),
        ]

    def _load_rows(self) -> list[str]:
        """The block's rows of the left operand, and into registers if they are to stay there."""
        place = "shared" if self._holds_rows else f"shared + {self._ring_bytes}"
        lines = [*self._left.copy(place), "tw::cp_async_commit();"]
        if not self._holds_rows:
            return lines
        steps = self.sizes.depth // FRAGMENT

        def load(indices: tuple[Index, ...]) -> list[str]:
            (k,) = indices
            return replace(self._rows_operand, name=f"q[{k.text}]").load("shared", k)

        return [
            *lines,
            f"u32 q[{steps}][{self.slices}][4];",
            "tw::cp_async_wait<0>();",
            "tw::sync_block();",
            *unrolled(repeat(steps), 0, load, "k"),
            "tw::sync_block();",
        ]

    @property
    def _ring_bytes(self) -> int:
        return self._number("stages") * self._stage_bytes

    @property
    def _rows_operand(self) -> Fragments:
        warps = (self._number("warps"), 1)
        return Fragments("a", 0, warps, self.slices, self._left.layout, True, BYTES)

    def _declare(self) -> list[str]:
        pairs = self.columns // _WIDE
        sums = (f"sums{i}" for i in range(len(self.chained.weighings)))
        return [f"float {name}[{self.slices}][{pairs}][4] = {{}};" for name in sums]

    def _load_keys(self, tile: str, stage: str) -> list[str]:
        """Start to move a tile of keys, and of what matrices have for them."""
        right = self._right(tile)
        lines, place = right.copy(stage), right.bytes
        for weighing in self.chained.weighings:
            matrix = self._matrix(weighing.matrix, tile)
            lines += matrix.copy(f"{stage} + {place}")
            place += matrix.bytes
        return lines

    def _loop(self) -> list[str]:
        """All tiles of keys, some steps behind their copies."""
        stages, size = self._number("stages"), self._stage_bytes
        ahead = stages - 1
        return [
            f"int begin_key = (int)first_key / {self.keys} * {self.keys};",
            *self._own_part(),
            "#pragma unroll",
            f"for (int step = 0; step < {ahead}; step++) {{",
            f"  const int next_tile = begin_key + step * {self.keys};",
            "  if (next_tile < last_key) {",
            f"    const u32 to = shared + step * {size};",
            *indented(indented(self._load_keys("next_tile", "to"))),
            "  }",
            "  tw::cp_async_commit();",
            "}",
            "int step = 0;",
            f"for (int tile = begin_key; tile < last_key; tile += {self.keys}, step++) {{",
            f"  tw::cp_async_wait<{ahead - 1}>();",
            "  tw::sync_block();",
            f"  const int next_tile = tile + {ahead * self.keys};",
            "  if (next_tile < last_key) {",
            f"    const u32 to = shared + (step + {ahead}) % {stages} * {size};",
            *indented(indented(self._load_keys("next_tile", "to"))),
            "  }",
            "  tw::cp_async_commit();",
            f"  if (tile < own_last && tile + {self.keys} > own_first) {{",
            f"    const u32 stage = shared + step % {stages} * {size};",
            *indented(indented(self._work())),
            "  }",
            "}",
        ]

    def _own_part(self) -> list[str]:
        """An equal share of the tiles, if keys are split."""
        if self.split == 1:
            return []
        keys = self.keys
        return [
            f"const int all = ((int)last_key - begin_key + {keys - 1}) / {keys};",
            f"const int share = (all + {self.split - 1}) / {self.split} * {keys};",
            "begin_key += part * share;",
            "last_key = tw_least(last_key, begin_key + share);",
        ]

    def _work(self) -> list[str]:
        """One tile of keys: scores, chain, sums."""
        accumulators = self.keys // _WIDE
        whole = f"tile >= whole_first && tile + {self.keys} <= whole_last"
        branches = ["{", *indented(self._weigh(masked=True)), "}"]
        if self._spans.can_be_whole:
            unmasked = indented(self._weigh(masked=False))
            branches = [f"if ({whole}) {{", *unmasked, "} else", *branches]
        return [
            f"float s[{self.slices}][{accumulators}][4] = {{}};",
            *self._scores(),
            "const int first = tile + lane % 4 * 2;",
            *branches,
        ]

    def _scores(self) -> list[str]:
        steps = self.sizes.depth // FRAGMENT
        tile = self._right("tile")
        right = self._operand("b", tile, keys_are_columns=True)
        left = self._rows_operand

        def step(indices: tuple[Index, ...]) -> list[str]:
            (k,) = indices
            held = f"q[{k.text}]" if self._holds_rows else "a"
            lines = [f"u32 b[{right.count}][4];", *right.load("stage", k)]
            if not self._holds_rows:
                lines.append(f"u32 a[{self.slices}][4];")
                lines += left.load(f"shared + {self._ring_bytes}", k)
            body = self._multiply("s", held, "b")
            return [*lines, *unrolled(repeat(self.slices, right.count * 2), 0, body, "t")]

        return unrolled(repeat(steps), 0, step, "k")

    def _multiply(self, sums: str, left: str, right: str):  # type: ignore[no-untyped-def]
        def body(indices: tuple[Index, ...]) -> list[str]:
            i, j = indices
            block, half = (j // 2).text, j % 2 * 2
            pair = f"{right}[{block}][{half.text}], {right}[{block}][{(half + 1).text}]"
            call = f"tw::{INSTRUCTIONS[self.dtype]}"
            return [
                f"const u32 pair[2] = {{{pair}}};",
                f"{call}({sums}[{i.text}][{j.text}], {left}[{i.text}], pair);",
            ]

        return body

    def _weigh(self, masked: bool) -> list[str]:
        """Scores to weights, and weights into the sums."""
        chain = self._chain.tile(masked)
        packed = self._packed()
        slices = [
            *packed.declared,
            "#pragma unroll",
            f"for (int f = 0; f < {self.slices}; f++) {{",
            *indented([*chain.lines, *self._correct(chain), *packed.lines]),
            "}",
        ]
        place = self._right("tile").bytes
        for n, weighing in enumerate(self.chained.weighings):
            slices += self._sum(n, weighing.matrix, packed.names[n], place)
            place += self._matrix(weighing.matrix, "tile").bytes
        return slices

    def _correct(self, chain: Written) -> list[str]:
        """Sums of states that moved."""
        factors = enumerate(chain.factors)
        scaled = [f"sums{n}[f][j][e] *= {name}[e / 2];" for n, name in factors if name]
        if not scaled:
            return []
        lines = [
            "#pragma unroll",
            f"for (int j = 0; j < {self.columns // _WIDE}; j++)",
            "  #pragma unroll",
            f"  for (int e = 0; e < 4; e++) {{ {' '.join(scaled)} }}",
        ]
        return [f"if ({chain.moved}) {{", *indented(lines), "}"] if chain.moved else lines

    def _packed(self) -> _Packed:
        """Weights as the left operand of the second products."""
        places = dict.fromkeys(self._chain.weights[w.weight]("e") for w in self.chained.weighings)
        arrays = {place: f"weights{i}" for i, place in enumerate(places)}
        names = [arrays[self._chain.weights[w.weight]("e")] for w in self.chained.weighings]
        steps = self.keys // FRAGMENT
        kind = {"float16": "f16", "bfloat16": "bf16"}[self.dtype]
        lines = []
        for weight, place in self._chain.weights.items():
            array = arrays.get(place("e"))
            if array is None:
                continue
            low = self._chain.weights[weight]("(k * 8 + i * 2)")
            high = self._chain.weights[weight]("(k * 8 + i * 2 + 1)")
            lines += [
                "#pragma unroll",
                f"for (int k = 0; k < {steps}; k++)",
                "  #pragma unroll",
                "  for (int i = 0; i < 4; i++) "
                f"{array}[k][f][i] = tw::pack2<{kind}>({low}, {high});",
            ]
        declared = [f"u32 {name}[{steps}][{self.slices}][4];" for name in arrays.values()]
        return _Packed(declared, lines, names)

    def _sum(self, n: int, matrix: Expression, weights: str, place: int) -> list[str]:
        """Weights times what a matrix has for the keys."""
        tile = self._matrix(matrix, "tile")
        right = self._operand("v", tile, keys_are_columns=False)

        def step(indices: tuple[Index, ...]) -> list[str]:
            (k,) = indices
            body = self._multiply(f"sums{n}", f"{weights}[{k.text}]", "v")
            return [
                f"u32 v[{right.count}][4];",
                *right.load(f"stage + {place}", k),
                *unrolled(repeat(self.slices, right.count * 2), 0, body, "t"),
            ]

        return ["{", *indented(unrolled(repeat(self.keys // FRAGMENT), 0, step, "k")), "}"]

    def _finish(self) -> list[str]:
        """Join what lanes have, merge parts, and store the outputs of each row."""
        own = f"warp_row + r / 2 * 16 + r % 2 * 8 + lane / 4 < {self.chained.row_count}"
        sums = [f"sums{n}[r / 2][j][r % 2 * 2 + e]" for n in range(len(self.chained.weighings))]
        finish = Finish(self._chain, self._row, sums, self.columns // _WIDE)
        stored = finish.lines()
        return [
            "const int column0 = block_column + lane % 4 * 2;",
            "const bool is_first = lane % 4 == 0 && block_column == 0;",
            *self._each_row([*self._chain.joined_rows(), *self._catch_up()]),
            *self._merging.lines(own),
            *self._each_row([f"if ({own}) {{", *indented(stored), "}"]),
        ]

    def _each_row(self, body: Sequence[str]) -> list[str]:
        head = f"for (int r = 0; r < {ROWS * self.slices}; r++) {{"
        return ["#pragma unroll", head, *indented(body), "}"]

    def _catch_up(self) -> list[str]:
        """Bring the sums of row ``r`` from the base of its totals to its results."""
        lines = []
        for n, last in enumerate(self._chain.last_factors):
            if last:
                lines += [
                    "#pragma unroll",
                    f"for (int j = 0; j < {self.columns // _WIDE}; j++) {{",
                    f"  sums{n}[r / 2][j][r % 2 * 2] *= {last};",
                    f"  sums{n}[r / 2][j][r % 2 * 2 + 1] *= {last};",
                    "}",
                ]
        return lines

    @cached_property
    def _merging(self) -> PartMerging:
        pairs = self.columns // _WIDE
        return PartMerging(
            self._chain,
            self.split,
            int(self.sizes.blocks(self.values)) // self.split,
            self.threads,
            [_sum_of(n, pairs) for n in range(len(self.chained.weighings))],
            self.slices * pairs * 4,
            lambda i: f"{i} / {4 * pairs} * 2 + {i} % 4 / 2",
        )


def _sum_of(n: int, pairs: int) -> Callable[[str], str]:
    return lambda i: f"sums{n}[{i} / {4 * pairs}][{i} / 4 % {pairs}][{i} % 4]"


@dataclass(frozen=True)
class _Packed:
    declared: list[str]
    lines: list[str]
    names: list[str]

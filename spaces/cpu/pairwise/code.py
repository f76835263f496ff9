"""The C of a pairwise kernel: each tile of keys meets the blocks of rows that see some of its keys.

Workers share the products, or parts of their tiles of keys: then each part has sums of rows of its
own, which are added up in the order of the parts. As task mappings:

    spatial(workers) * repeat(parts of a worker)       and for each tile of keys and block of rows
    repeat(panels, score tiles)                        each score
    repeat(rows)                                       scores to weights
    repeat(sum tiles)                                  weights times matrices: each sum

Weights of hidden keys are zero, and what they are multiplied by is nearly always finite. If a sum
turns out not to be, the product is computed again, and hidden keys are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.algebra.layout import strided
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.abi import LINE, buffer_variables, entry_function, worker_function
from tilewright.spaces.cpu.blocked.packing import RightBlock
from tilewright.spaces.cpu.chained.access import Access, copied_row
from tilewright.spaces.cpu.chained.hiding import HIDDEN
from tilewright.spaces.cpu.chained.tiles import sums, tile, tiles_of
from tilewright.spaces.cpu.pairwise.blocks import Blocks
from tilewright.spaces.cpu.pairwise.weights import Weights
from tilewright.spaces.cpu.rows.scopes import VectorScope
from tilewright.spaces.cpu.tiles.register_tile import RegisterTile
from tilewright.spaces.cpu.tiles.steps import Stream
from tilewright.spaces.derivation.chained.text import split
from tilewright.spaces.derivation.pairwise.view import PairSum, Pairwise, Scalar, Score
from tilewright.spaces.kernels.text import C
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class PairwiseCode:
    """The kernel called ``entry``; ``operands`` are its arguments in order."""

    pairwise: Pairwise
    operands: Sequence[Array]
    blocks: Blocks
    workers: int
    splits: int
    entry: str

    @property
    def source(self) -> str:
        """The C text of all functions of the kernel, the entry last."""
        packs = (b.function(name) for b, name in self._packs.items())
        tiles = (each.source() for each in self._tiles)
        functions = [line for lines in (*packs, *tiles) for line in lines]
        runs = {self._worker: self.workers}
        if self._merges:
            functions += self._merge()
            runs[self._merger] = self.workers
        return "\n".join([*functions, *self._work(), *entry_function(self.entry, runs)]) + "\n"

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the scratch memory of all workers."""
        parts = self._merges * self.pairwise.batches * self.splits
        return 4 * (self.workers * self._scratch + parts * self._part)

    @property
    def _worker(self) -> str:
        return f"{self.entry}_work"

    @property
    def _merger(self) -> str:
        return f"{self.entry}_merge"

    @property
    def _row_sums(self) -> list[tuple[str, int]]:
        return [(name, round_up(int(size), LINE)) for name, size in self.blocks.row_sums()]

    @property
    def _merges(self) -> bool:
        """True if several parts of a product add to sums of rows."""
        return self.splits > 1 and bool(self._row_sums)

    @property
    def _part(self) -> int:
        """Floats of the sums of rows of a part."""
        return sum(size for _, size in self._row_sums)

    @property
    def _parts(self) -> list[tuple[str, int]]:
        sums = () if self._merges else self.blocks.row_sums()
        own = (*self.blocks.near(), *sums, *self.blocks.of_product())
        return [(name, round_up(int(size), LINE)) for name, size in own]

    @property
    def _scratch(self) -> int:
        """Floats of a worker's scratch memory, a whole number of cache lines."""
        return sum(size for _, size in self._parts) + LINE

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """The C variables of the parts that number the batch and the rows."""
        parts = (*self.pairwise.batch, *self.pairwise.rows)
        return {part.name: f"p{i}" for i, part in enumerate(parts)}

    @cached_property
    def _access(self) -> Access[Pairwise]:
        buffers = {operand.name: f"b{i}" for i, operand in enumerate(self.operands)}
        return Access(self.pairwise, buffers, self._names)

    # -- functions ---------------------------------------------------------------------------------

    @property
    def _tiles(self) -> Iterable[RegisterTile]:
        """All register tiles, each once."""
        found = [self._score_tile(score) for score in self.pairwise.scores]
        return dict.fromkeys(chain(found, *map(self._sum_tiles, self.pairwise.sums)))

    @cached_property
    def _packs(self) -> Mapping[RightBlock, str]:
        """All packed tiles of keys, each once, with the names of the functions that pack them."""
        found = dict.fromkeys(map(self._packed, self.pairwise.scores))
        return {block: f"{self.entry}_pack{n}" for n, block in enumerate(found)}

    def _packed(self, score: Score) -> RightBlock:
        b = self.blocks
        steps = (1, b.stride(score.depth))
        source = Stream(strided((score.depth.extent, b.keys), steps), "float32", True, apart=0)
        return RightBlock(
            b.keys // b.panel, b.panel, b.whole(score.depth), b.lanes, "float32", source
        )

    def _score_tile(self, score: Score) -> RegisterTile:
        b, depth = self.blocks, score.depth.extent
        name, shape = f"{self.entry}_score{depth}", (b.score_rows, b.panel, depth)
        return tile(name, b.lanes, shape, (b.stride(score.depth), 1), b.panel, b.pair_stride)

    def _sum_tile(self, each: PairSum, columns: int) -> RegisterTile:
        b, stride = self.blocks, self.blocks.stride(each.width)
        terms, steps = (b.rows, (1, b.pair_stride)) if each.of_key else (b.keys, (b.pair_stride, 1))
        side = "key" if each.of_key else "row"
        name = f"{self.entry}_{side}{each.width.extent}_{columns}"
        return tile(name, b.lanes, (b.sum_rows, columns, terms), steps, stride, stride)

    def _sum_tiles(self, each: PairSum) -> list[RegisterTile]:
        return tiles_of(each.width.extent, self.blocks.columns, partial(self._sum_tile, each))

    # -- the loops ---------------------------------------------------------------------------------

    def _work(self) -> list[str]:
        is_split = self.splits > 1
        number = f"const long batch = item / {self.splits}, part = item % {self.splits};"
        body = [
            *[number] * is_split,
            *split("batch", self.pairwise.batch, self._names),
            *(self._sums_of_part("item") if self._merges else []),
            *self._product(),
            *([] if self._merges else self._stored_rows()),
        ]
        items = self.pairwise.batches * self.splits
        loop = self._share("item" if is_split else "batch", items, body)
        return worker_function(self._worker, [*self._memory(), *loop])

    def _share(self, name: str, items: int, body: Sequence[str]) -> list[str]:
        """Return a loop over a worker's share of so many items, each called by the ``name``."""
        share = ceil_div(items, self.workers)
        end = f"tw_least({items}, (worker + 1L) * {share})"
        return C.loop(name, end, body, first=f"worker * {share}L")

    def _sums_of_part(self, item: str, constant: str = "") -> list[str]:
        """Return the declarations of the sums of rows of a part."""
        start = f"(float *)call->workspace + {self.workers * self._scratch}L"
        place, lines = f"{start} + ({item}) * {self._part}L", []
        for name, size in self._row_sums:
            lines.append(f"{constant}float *{name} = {place};")
            place = f"{name} + {size}L"
        return lines

    def _merge(self) -> list[str]:
        """Write the function that adds up the sums of rows of all parts, in their order."""
        rows, buffers = self.pairwise.row_count, self._access.buffers
        sums = [(n, each) for n, each in enumerate(self.pairwise.sums) if not each.of_key]
        body = [
            f"const long batch = item / {rows}, r = item % {rows};",
            *split("batch", self.pairwise.batch, self._names),
            *split("r", self.pairwise.rows, self._names),
            *self._sums_of_part(f"batch * {self.splits}", "const "),
            *(line for n, each in sums for line in self._merged(n, each)),
        ]
        written = {each.output.array.name for _, each in sums}
        variables = buffer_variables(self.operands, buffers, written)
        loop = self._share("item", self.pairwise.batches * rows, body)
        return worker_function(self._merger, [*variables, *loop])

    def _merged(self, n: int, each: PairSum) -> list[str]:
        """Return the lines that add up row ``r`` of all parts of a sum, and store it."""
        place = f"sums{n} + part * {self._part}L + r * {self.blocks.stride(each.width)} + e"
        body = [
            "vf total = tw_set(0.0f);",
            *C.loop("part", self.splits, f"total += tw_load_float32({place});"),
            self._access.store(each.output, "total", "e", each.width),
        ]
        return C.loop("e", each.width.extent, body, step=self.blocks.lanes)

    def _memory(self) -> list[str]:
        written = {each.output.array.name for each in self.pairwise.sums}
        lines = buffer_variables(self.operands, self._access.buffers, written)
        place = f"(float *)call->workspace + worker * {self._scratch}L"
        for name, size in self._parts:
            lines.append(f"float *{name} = {place};")
            place = f"{name} + {size}L"
        return [*lines, f"const long pair_stride = {self.blocks.pair_stride};"]

    def _product(self) -> list[str]:
        """Write the computation of all sums of a product; those of its keys are stored, too."""
        sums = [(n, each) for n, each in enumerate(self.pairwise.sums) if not each.of_key]
        begun = [
            *(self._cleared(n, each) for n, each in sums),
            *self._scalars(of_key=False),
            *self._key_tiles(),
        ]
        if not self.pairwise.is_bounded:
            return begun
        found = [self._noticed(n, each, f"{self.pairwise.row_count}") for n, each in sums]
        return [
            "int careful = 0, hidden, finite;",
            "do {",
            "  hidden = 0;",
            "  finite = 1;",
            *indented([*begun, *found]),
            "} while (!careful && hidden && !finite && (careful = 1));",
        ]

    def _cleared(self, n: int, each: PairSum) -> str:
        size = int(self.blocks.length(each)) * self.blocks.stride(each.width)
        return f"for (long x = 0; x < {size}L; x++) sums{n}[x] = 0.0f;"

    def _noticed(self, n: int, each: PairSum, rows: str) -> str:
        """Return the line that notes whether a sum is finite."""
        stride, width = self.blocks.stride(each.width), each.width.extent
        return f"finite = finite && tw_all_finite(sums{n}, {rows}, {stride}, {width});"

    def _key_tiles(self) -> list[str]:
        b = self.blocks
        sums = [(n, each) for n, each in enumerate(self.pairwise.sums) if each.of_key]
        found = [self._noticed(n, each, "count") for n, each in sums]
        body = [
            f"const long count = tw_least({b.keys}, {self.pairwise.key.extent} - tile);",
            *self._key_matrices(),
            *self._scalars(of_key=True),
            *(self._cleared(n, each) for n, each in sums),
            *self._row_blocks(),
            *(found if self.pairwise.is_bounded else []),
            *self._stored_keys(),
        ]
        if self.splits == 1:
            return C.loop("tile", self.pairwise.key.extent, body, step=b.keys)
        first, step = f"part * {b.keys}", b.keys * self.splits
        return C.loop("tile", self.pairwise.key.extent, body, first=first, step=step)

    def _row_blocks(self) -> list[str]:
        b, count = self.blocks, self.pairwise.row_count
        body = [f"const long rows = tw_least({b.rows}, {count} - first_row);"]
        if self.pairwise.bounds:
            body += self._access.block_bounds("first_key", "last_key")
            unseen = "last_key <= tile || first_key >= tile + count"
            body.append(f"if ({unseen}) continue;")
        body += [*self._row_matrices(), *self._scores(), *self._weights(), *self._sums()]
        return C.loop("first_row", count, body, step=b.rows)

    # -- what rows and keys have -------------------------------------------------------------------

    def _rows(self, body: Sequence[str]) -> list[str]:
        """Write a loop over rows of a block, with the index of each part."""
        parts = split("(first_row + r)", self.pairwise.rows, self._names)
        return C.loop("r", "rows", [*parts, *body])

    def _row_matrices(self) -> list[str]:
        b, lines = self.blocks, []
        for n, (matrix, part) in enumerate(self.pairwise.row_matrices):
            to = f"rows{n} + r * {b.stride(part)}"
            lines += C.block(*copied_row(self._access, matrix, part, to, b.lanes))
        return self._rows(lines)

    def _key_matrices(self) -> list[str]:
        b, lines = self.blocks, ["const long key = tile + k;"]
        for n, (matrix, part) in enumerate(self.pairwise.key_matrices):
            to = f"keys{n} + k * {b.stride(part)}"
            lines += C.block(*copied_row(self._access.at_key("key"), matrix, part, to, b.lanes))
        packing = [
            f"{self._packs[self._packed(score)]}(keys{self._of_key(score)}, packed{n}, "
            f"{score.depth.extent}, count);"
            for n, score in enumerate(self.pairwise.scores)
        ]
        return [*C.loop("k", "count", lines), *packing]

    def _of_key(self, score: Score) -> int:
        return self.pairwise.key_matrices.index((score.right, score.depth))

    def _scalars(self, of_key: bool) -> list[str]:
        """Write the computation of the scalars of all rows, or of a tile's keys."""
        found = [(n, s) for n, s in enumerate(self.pairwise.scalars) if s.of_key == of_key]
        if not found:
            return []
        access = self._access.at_key("key") if of_key else self._access
        lines = [line for n, scalar in found for line in self._scalar(access, n, scalar)]
        return self._keys_of_tile(lines) if of_key else self._all_rows(lines)

    def _keys_of_tile(self, body: Sequence[str]) -> list[str]:
        """Write a loop over the keys of a tile, numbered by ``r``."""
        return C.loop("r", "count", ["const long key = tile + r;", *body])

    def _all_rows(self, body: Sequence[str]) -> list[str]:
        """Write a loop over all rows of a product, with the index of each part."""
        parts = split("r", self.pairwise.rows, self._names)
        return C.loop("r", self.pairwise.row_count, [*parts, *body])

    def _scalar(self, access: Access[Pairwise], n: int, scalar: Scalar) -> list[str]:
        lines: list[str] = []
        known = magnitudes(self.pairwise.program)
        row = VectorScope("g", access.of_row, lines, magnitudes=known)
        body: list[str] = []
        term, lanes = scalar.term, self.blocks.lanes
        bounded = term.extent % lanes > 0
        terms = VectorScope("x", lambda node: access.along(node, term, "at", bounded), body, row)
        value = terms.text(scalar.body)
        if bounded:
            value = f"tw_select(tw_ramp(at) < {term.extent}, {value}, tw_set(0.0f))"
        body.append(f"total += {value};")
        return C.block(
            "vf total = tw_set(0.0f);",
            *lines,
            *C.loop("at", term.extent, body, step=lanes),
            f"scalar{n}[r] = tw_across_sum(total);",
        )

    # -- pairs -------------------------------------------------------------------------------------

    def _scores(self) -> list[str]:
        b, lines = self.blocks, []
        for n, score in enumerate(self.pairwise.scores):
            stride, name = b.stride(score.depth), self._score_tile(score).name
            own = self.pairwise.row_matrices.index((score.left, score.depth))
            lines += [
                f"for (long v = 0; v < count; v += {b.panel})",
                f"  for (long r = 0; r < rows; r += {b.score_rows})",
                f"    {name}(rows{own} + r * {stride}, packed{n} + v * {b.whole(score.depth)}, "
                f"pairs{n} + r * pair_stride + v, {score.depth.extent}, 0);",
            ]
        return lines

    def _weights(self) -> list[str]:
        """Write the loop that turns scores into weights, row by row; those of a careful product are
        masked in all rows, so that no weight of a seen key says that it is hidden."""
        weights = Weights(self._access, self.blocks.lanes)
        whole = weights.write(masked=False)
        if not self.pairwise.is_bounded:
            return self._rows(whole)
        masked = ["hidden = 1;", *weights.write(masked=True)]
        body = ["long low, high;", *self._access.row_bounds("low", "high")]
        if self.pairwise.conditions:
            return self._rows([*body, *masked])
        body += C.when("!careful && low <= tile && high >= tile + count", whole, masked)
        return self._rows(body)

    def _sums(self) -> list[str]:
        lines = [line for n, each in enumerate(self.pairwise.sums) for line in self._sum(n, each)]
        if not self.pairwise.is_bounded:
            return lines
        careful = [
            line for n, each in enumerate(self.pairwise.sums) for line in self._careful(n, each)
        ]
        return C.when("careful", careful, lines)

    def _operands(self, n: int, each: PairSum) -> tuple[str, str, int]:
        """Return the array of weights, that of the matrix, and the stride of rows of the matrix and
        the sum."""
        weight = f"pairs{self.pairwise.weights.index(each.weight)}"
        known = self.pairwise.row_matrices if each.of_key else self.pairwise.key_matrices
        side = "rows" if each.of_key else "keys"
        matrix = f"{side}{known.index((each.matrix, each.width))}"
        return weight, matrix, self.blocks.stride(each.width)

    def _sum(self, n: int, each: PairSum) -> list[str]:
        """Return the lines that add the products of a block and a tile to a sum."""
        weight, matrix, stride = self._operands(n, each)
        at, end, terms = ("k", "count", "rows") if each.of_key else ("r", "rows", "count")
        place = f"{at}" if each.of_key else f"{at} * pair_stride"
        row = f"{at}" if each.of_key else f"(first_row + {at})"
        arguments = f"{weight} + {place}, {matrix} + e, sums{n} + {row} * {stride} + e, {terms}, 1"
        return sums(self._sum_tiles(each), each.width.extent, at, end, arguments)

    def _careful(self, n: int, each: PairSum) -> list[str]:
        """Return the same lines for hidden elements that may be infinite or NaN: pairs whose key is
        hidden from the row are skipped, and the others are added one by one."""
        weight, matrix, stride = self._operands(n, each)
        row, own = ("r", "k") if each.of_key else ("k", "(first_row + r)")
        width = f"{each.width.extent} - e"
        value = f"tw_load_most_float32({matrix} + {row} * {stride} + e, {width})"
        old = f"tw_load_most_float32(own + e, {width})"
        store = f"tw_store_most_float32(own + e, tw_fma(tw_set(w), {value}, {old}), {width});"
        return [
            "for (long r = 0; r < rows; r++) for (long k = 0; k < count; k++) {",
            f"  const float w = {weight}[r * pair_stride + k];",
            f"  if (w == {HIDDEN} && __builtin_signbitf(w)) continue;",
            f"  float *own = sums{n} + {own} * {stride};",
            f"  for (long e = 0; e < {each.width.extent}; e += {self.blocks.lanes}) {store}",
            "}",
        ]

    # -- outputs -----------------------------------------------------------------------------------

    def _stored_keys(self) -> list[str]:
        lines = self._stored(self._access.at_key("key"), of_key=True)
        return self._keys_of_tile(lines) if lines else []

    def _stored_rows(self) -> list[str]:
        lines = self._stored(self._access, of_key=False)
        return self._all_rows(lines) if lines else []

    def _stored(self, access: Access[Pairwise], of_key: bool) -> list[str]:
        """Return the lines that store row ``r`` of each sum of rows, or of keys."""
        lines = []
        for n, each in enumerate(self.pairwise.sums):
            if each.of_key == of_key:
                stride = self.blocks.stride(each.width)
                value = f"tw_load_float32(sums{n} + r * {stride} + e)"
                store = access.store(each.output, value, "e", each.width)
                lines += C.loop("e", each.width.extent, store, step=self.blocks.lanes)
        return lines

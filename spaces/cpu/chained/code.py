"""The C of a chained kernel: each block of rows meets its tiles of keys, then writes its outputs.

Workers share the blocks of all products. A worker that begins another product packs its keys, one
panel for each register tile of scores. As task mappings:

    spatial(workers) * repeat(blocks of a worker)      and for each tile of keys
    repeat(panels, score tiles)                        scores
    repeat(rows)                                       the chain: scores to weights, sums corrected
    repeat(value tiles)                                weights times matrices, into the sums

If keys are split, each block meets one part of them, and workers merge the parts row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.abi import (
    LINE,
    buffer_variables,
    entry_function,
    open_extent,
    open_share,
    worker_function,
)
from tilewright.spaces.cpu.chained.access import Access, copied_row
from tilewright.spaces.cpu.chained.blocks import Blocks
from tilewright.spaces.cpu.chained.chain import RowChain, weight_tiles
from tilewright.spaces.cpu.chained.finish import outputs_of_row
from tilewright.spaces.cpu.chained.hiding import HIDDEN
from tilewright.spaces.cpu.chained.key_parts import KEYS, KeyParts
from tilewright.spaces.cpu.chained.keys import Keys
from tilewright.spaces.cpu.chained.merging import Merging
from tilewright.spaces.cpu.chained.places import NOWHERE
from tilewright.spaces.cpu.chained.values import Values
from tilewright.spaces.cpu.vectors.reducers import EXTREMES, IDENTITIES
from tilewright.spaces.derivation.chained.text import split
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.chains.corrections import positive
from tilewright.spaces.derivation.scopes import Leaf
from tilewright.spaces.kernels.text import C
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class ChainedCode:
    """The kernel called ``entry``.

    ``operands`` are its arguments in order, ``unroll`` vectors of keys are in flight along a row,
    and keys are split into ``splits`` parts. If ``products_each`` is given, calls pass the extent
    of an open axis, with so many products at each of its points. If ``keys_are_open``, they pass
    the number of keys.
    """

    chained: Chained
    operands: Sequence[Array]
    blocks: Blocks
    unroll: int
    workers: int
    splits: int
    entry: str
    products_each: int | None = None
    keys_are_open: bool = False

    @property
    def source(self) -> str:
        """The C text of all functions of the kernel, the entry last."""
        functions = [*self._keys.functions, *(f for v in self._values for f in v.functions)]
        passes, merge = {self._worker: self.workers}, []
        if self.splits > 1:
            merge, passes = self._merge(), passes | {self._merger: self.workers}
        entry = entry_function(self.entry, passes)
        return "\n".join([*functions, *self._work(), *merge, *entry]) + "\n"

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the scratch memory of all workers, and of the kept parts if keys are split."""
        return 4 * (self.workers * self._scratch + (self.splits > 1) * self._merging.floats)

    @property
    def _worker(self) -> str:
        return f"{self.entry}_work"

    @property
    def _merger(self) -> str:
        return f"{self.entry}_merge"

    @cached_property
    def _merging(self) -> Merging:
        return Merging(self.chained, self.blocks, self.splits, self._access.of_row)

    @property
    def _scratch(self) -> int:
        """Floats of a worker's scratch memory, a whole number of cache lines."""
        sizes = (size for _, size in self._parts)
        return sum(round_up(size, LINE) for size in sizes) + LINE

    @property
    def _parts(self) -> list[tuple[str, int]]:
        return [(name, int(size)) for name, size in self.blocks.parts() if size]

    @cached_property
    def _keys(self) -> Keys:
        return Keys(self._access, self.blocks, self.entry)

    @cached_property
    def _values(self) -> list[Values]:
        return [
            Values(self._access, self.blocks, weighing, number, self.entry)
            for number, weighing in enumerate(self.chained.weighings)
        ]

    # -- the loops -----------------------------------------------------------------------------

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """The C variables of the parts that number the batch and the rows."""
        chained = self.chained
        return {part.name: f"p{i}" for i, part in enumerate((*chained.batch, *chained.rows))}

    @cached_property
    def _access(self) -> Access[Chained]:
        buffers = {operand.name: f"b{i}" for i, operand in enumerate(self.operands)}
        keys = KEYS if self.keys_are_open else ""
        return Access(self.chained, buffers, self._names, keys)

    @cached_property
    def _parts_of_keys(self) -> KeyParts:
        given = open_extent(self.operands) if self.keys_are_open else ""
        return KeyParts(self.chained.key.extent, int(self.blocks.keys), self.splits, given)

    def _work(self) -> list[str]:
        b, chained = self.blocks, self.chained
        per_batch = ceil_div(chained.row_count, b.rows)
        body = [
            *self._item(per_batch),
            f"const long first_row = t % {per_batch} * {b.rows};",
            f"const long rows = tw_least({b.rows}, {chained.row_count} - first_row);",
            *split("batch", chained.batch, self._names),
            f"if (packed_keys != t / {per_batch}) {{",
            *(f"  {line}" for line in self._keys.of_product(*self._parts_of_keys.span)),
            f"  packed_keys = t / {per_batch};",
            "}",
            *self._meetings(),
            *self._finish(),
        ]
        first = [*self._parts_of_keys.declared, "long packed_keys = -1;"]
        return self._function(self._worker, self.splits * per_batch, first, body)

    def _meetings(self) -> list[str]:
        """Write all work on a block: its rows begin, and meet all their tiles of keys.

        Weights of hidden keys are zero, and what they are multiplied by is nearly always finite. If
        a sum turns out not to be, all is computed again, and hidden keys are skipped.
        """
        lines = [*self._begin_rows(), *self._block_span(), *self._key_tiles()]
        if not self._hides:
            return lines
        width = self.chained.width.extent
        finite = " && ".join(
            f"tw_all_finite(sums{number}, rows, sum_stride, {width})"
            for number, _ in enumerate(self.chained.weighings)
        )
        again = f"!careful && hidden && !({finite}) && (careful = 1)"
        return [
            "int careful = 0, hidden;",
            "do {",
            "  hidden = 0;",
            *indented(lines),
            f"}} while ({again});",
        ]

    @property
    def _hides(self) -> bool:
        """True if a row of a block may see other keys of a tile than other rows do."""
        chained = self.chained
        return bool(chained.weighings) and bool(chained.bounds or chained.conditions)

    def _item(self, per_batch: int) -> list[str]:
        """Declare the product of a block and, if keys are split, its part of the keys."""
        if self.splits == 1:
            return [f"const long batch = t / {per_batch};"]
        whole = f"t / {per_batch} / {self.splits}"
        return [f"const long batch = {whole}, part = t / {per_batch} % {self.splits};"]

    def _function(
        self, name: str, items_each: int, first: Sequence[str], body: Sequence[str]
    ) -> list[str]:
        """Return the C function in which each worker does its share of the items; each product has
        ``items_each`` of them."""
        head, begin, end = self._share(items_each)
        items = C.loop("t", end, body, first=begin)
        return worker_function(name, [*self._memory(), *first, *head, *items])

    def _share(self, items_each: int) -> tuple[list[str], str, str]:
        """Return the lines before a worker's share of the items, its first item, and its end."""
        if self.products_each is None:
            items = self.chained.batches * items_each
            share = ceil_div(items, self.workers)
            return [], f"worker * {share}L", f"tw_least({items}, (worker + 1L) * {share})"
        given = f"{open_extent(self.operands)} * {self.products_each * items_each}"
        return open_share(given, self.workers), "begin", "end"

    def _merge(self) -> list[str]:
        """Return the C function in which workers merge and finish rows once all parts have been
        met."""
        count = self.chained.row_count
        body = [
            f"const long batch = t / {count}, first_row = t % {count}, rows = 1;",
            *split("batch", self.chained.batch, self._names),
            *self._rows(self._merging.merge()),
            *self._outputs(),
        ]
        return self._function(self._merger, count, [], body)

    def _memory(self) -> list[str]:
        written = {output.array.name for output in self.chained.outputs}
        lines = buffer_variables(self.operands, self._access.buffers, written)
        place = f"(float *)call->workspace + worker * {self._scratch}L"
        for name, size in self._parts:
            lines.append(f"float *{name} = {place};")
            place = f"{name} + {round_up(size, LINE)}"
        for k, scalar in enumerate(self.chained.scalars):
            lines.append(f"float state{k}[{self.blocks.rows}];")
            lines += [f"long place{k}[{self.blocks.rows}];"] * (scalar.reducer in EXTREMES)
        lines.append(f"long low[{self.blocks.rows}], high[{self.blocks.rows}];")
        lines.append(f"int seen[{self.blocks.rows}];")
        b = self.blocks
        if self.splits > 1:
            place = f"(float *)call->workspace + {self.workers * self._scratch}L"
            lines.append(f"float *parts = {place};")
        return [
            *lines,
            f"const long score_stride = {b.score_stride}, sum_stride = {b.sum_stride};",
        ]

    def _rows(self, body: Sequence[str], end: str = "rows") -> list[str]:
        """Write a loop over rows of a block, with the index of each part."""
        parts = split("(first_row + r)", self.chained.rows, self._names)
        return C.loop("r", end, [*parts, *body])

    def _begin_rows(self) -> list[str]:
        """Begin all rows: identities as states, copies of the left operand's rows, and visible
        keys."""
        b, chained = self.blocks, self.chained
        to = f"left + r * {b.left_stride}"
        inner = copied_row(self._access, chained.scaled_left, chained.depth, to, b.lanes)
        for k, s in enumerate(chained.scalars):
            inner.append(f"state{k}[r] = {IDENTITIES[EXTREMES.get(s.reducer, s.reducer)]};")
            inner += [f"place{k}[r] = {NOWHERE};"] * (s.reducer in EXTREMES)
        inner += ["seen[r] = 0;", *self._access.row_bounds("low[r]", "high[r]")]
        lines = self._rows(inner)
        whole = f"for (long r = rows; r < {b.rows}; r++)"
        clear = f"left[r * {b.left_stride} + d] = 0.0f;"
        lines += [whole, f"  for (long d = 0; d < {b.whole_depth}; d++) {clear}"]
        return lines

    def _block_span(self) -> list[str]:
        """Declare the range of keys that any row of the block may see, as far as intervals tell."""
        lines = self._access.block_bounds("first_key", "last_key")
        if self.splits > 1:
            start, end = self._parts_of_keys.span
            lines.append(f"first_key = tw_most(first_key, {start});")
            lines.append(f"last_key = tw_least(last_key, {end});")
        return lines

    def _key_tiles(self) -> list[str]:
        b = self.blocks
        body = [
            f"const long count = tw_least({b.keys}, last_key - tile);",
            *self._keys.scores(),
            *self._chain(),
            *(line for values in self._values for line in values.copies()),
            *self._sums(),
        ]
        return [
            f"const long first_tile = first_key / {b.keys} * {b.keys};",
            *C.loop("tile", "last_key", body, first="first_tile", step=b.keys),
        ]

    def _sums(self) -> list[str]:
        lines = [line for values in self._values for line in values.sums()]
        if not self._hides:
            return lines
        careful = [line for values in self._values for line in values.careful_sums()]
        return C.when("careful", careful, lines)

    def _chain(self) -> list[str]:
        """Write the loop that turns scores into weights, row by row; those of a careful block are
        masked in all rows if a weight may be a negative zero, which would say that it is hidden."""
        chained, b = self.chained, self.blocks
        chain = RowChain(chained, self.unroll, b.lanes, self._access.of_row, self._key_leaf)
        whole = f"low[r] <= tile && high[r] >= tile + count && count % {chain.width} == 0"
        if self._hides and not all(map(positive, weight_tiles(chained))):
            whole = f"!careful && {whole}"
        masked = ["vi any = {0};"] * bool(chained.conditions) + chain.write(masked=True)
        masked += ["seen[r] |= tw_any(any);" if chained.conditions else "seen[r] = 1;"]
        clear = [
            f"for (long v = 0; v < count; v++) {tile}[r * score_stride + v] = {HIDDEN};"
            for tile in weight_tiles(chained).values()
        ]
        if self._hides:
            partly = "1" if chained.conditions else "low[r] > tile || high[r] < tile + count"
            masked.append(f"hidden |= {partly};")
            clear.append("hidden = 1;")
        body = C.when("low[r] < tile + count && high[r] > tile", masked, clear)
        if not chained.conditions:
            unmasked = [*chain.write(masked=False), "seen[r] = 1;"]
            body = C.when(whole, unmasked, body, brief=True)
        return self._rows(body)

    def _key_leaf(self, u: int, masked: bool) -> Leaf:
        key = self.chained.key
        return lambda node: self._access.along(node, key, f"j{u}", masked)

    def _finish(self) -> list[str]:
        return self._outputs() if self.splits == 1 else self._rows(self._merging.keep())

    def _outputs(self) -> list[str]:
        return self._rows(outputs_of_row(self.chained, self._access, self.blocks.lanes))

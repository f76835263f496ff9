"""The C of a product with packed codes: reordered activations, tiles, and the output.

    workers over column tiles * repeat(depth blocks, column tiles, row tiles) * tile

Sums of all rows and columns stay in the workspace; each column has four of them, which are added up
when a worker's blocks are done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.abi import FLOAT, PAGE, entry_function, worker_function
from tilewright.spaces.cpu.loops.prelude import ACCESS, C_TYPES
from tilewright.spaces.cpu.low_bit.decoding import Decoding, Lines
from tilewright.spaces.cpu.low_bit.tile import CodedTile, Shared
from tilewright.spaces.derivation.products.coded import CodedProduct
from tilewright.spaces.language.program import Program
from tilewright.spaces.language.tree import Expression, Number, Read
from tilewright.spaces.loops.nest import NestCode
from tilewright.spaces.loops.plan import Plan
from tilewright.spaces.low_bit.axes import axis_variable, row_axes
from tilewright.spaces.low_bit.order import DEPTH, HALVES, ROWS, tile_bytes
from tilewright.spaces.schedule import Value
from tilewright.spaces.workloads.array import Array

SUMS = 4
"""The number of sums of each column until they are added up."""


@dataclass(frozen=True)
class CodedCode:
    """The kernel called ``entry`` of a product; ``arrays`` are its buffers in order."""

    product: CodedProduct
    decoding: Decoding
    arrays: Sequence[Array]
    values: Mapping[str, Value]
    entry: str
    ordered_type: ClassVar[str] = "float"
    """The C type of reordered activations."""

    @property
    def source(self) -> str:
        """The C text of all functions of the kernel, the entry last."""
        tiles = [line for tile in self._tiles.values() for line in tile.source(self._groups)]
        functions = [*self._ordering(), *tiles, *self._work(), *self._writing()]
        passes = {
            f"{self.entry}_order": self.workers,
            f"{self.entry}_work": self.workers,
            f"{self.entry}_write": self.workers,
        }
        return "\n".join([*functions, *entry_function(self.entry, passes)]) + "\n"

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the reordered activations, the sums of tiles, and those of columns."""
        return self._finished_at + FLOAT * self.rows * self.width

    # -- extents -----------------------------------------------------------------------------------

    @property
    def workers(self) -> int:
        """The number of workers, who share tiles of columns."""
        return int(self.values["workers"])

    @property
    def rows(self) -> int:
        """The number of rows of the product."""
        return self.product.row_count

    @property
    def width(self) -> int:
        """The number of columns, in whole tiles."""
        return round_up(self.product.columns, ROWS)

    @property
    def pitch(self) -> int:
        """Floats of a row of reordered activations."""
        return round_up(self.product.terms, DEPTH)

    @property
    def deep(self) -> int:
        """Tiles of codes along the depth."""
        return ceil_div(self.product.terms, DEPTH)

    @property
    def ordered_tile(self) -> int:
        """Elements from the reordered activations of a tile of codes to those of the next."""
        return DEPTH

    @property
    def block(self) -> int:
        """Tiles along the depth of a block; they hold whole groups."""
        tiles = int(self.values["block_depth"])
        group = self.product.group
        return round_up(tiles, group // DEPTH) if self.is_grouped and group > DEPTH else tiles

    @property
    def is_grouped(self) -> bool:
        """Tell whether groups are smaller than the depth."""
        return self.product.group < self.product.terms

    @property
    def _groups(self) -> int:
        """The most groups of a block."""
        return ceil_div(self.block * DEPTH, self.product.group) if self.is_grouped else 1

    @property
    def _ordered_bytes(self) -> int:
        """Bytes of the reordered activations."""
        return FLOAT * self.rows * self.pitch

    @property
    def _sums_at(self) -> int:
        return round_up(self._ordered_bytes, PAGE)

    @property
    def _finished_at(self) -> int:
        return self._sums_at + round_up(SUMS * FLOAT * self.rows * self.width, PAGE)

    # -- expressions -------------------------------------------------------------------------------

    def _nest(self, program: Program) -> NestCode:
        plan = Plan(program)
        return NestCode(plan, plan.nests[-1], self._variables, ACCESS)

    @cached_property
    def _variables(self) -> Mapping[str, str]:
        own = {array.name: f"a{number}" for number, array in enumerate(self.arrays)}
        return {**own, self.product.sums.name: "finished"}

    def _expression(self, node: Expression) -> tuple[Lines, str]:
        lines, value = self._nest(self.product.program).expression(node)
        return lines, value.real

    def _pointers(self, nodes: Sequence[Expression], written: str = "") -> Lines:
        """Declare C pointers to the arrays that some expressions read, and to one that is
        ``written``."""
        read = {read.name for node in nodes for read in node.reads}
        lines = []
        for number, array in enumerate(self.arrays):
            if array.name in read and array.name != self.product.codes.name:
                kind = f"const {C_TYPES[array.dtype]}"
                lines.append(f"{kind} *a{number} = call->buffers[{number}];")
            elif array.name == written:
                lines.append(f"{C_TYPES[array.dtype]} *a{number} = call->buffers[{number}];")
        return lines

    # -- functions ---------------------------------------------------------------------------------

    def _function(self, name: str, body: Lines) -> Lines:
        return worker_function(f"{self.entry}_{name}", body)

    def _share(self, count: int) -> Lines:
        """Declare the C variables of a worker's part of ``count`` items."""
        share = ceil_div(count, self.workers)
        return [
            f"const long begin = tw_least(worker * {share}L, {count}L);",
            f"const long end = tw_least(begin + {share}L, {count}L);",
        ]

    def _ordering(self) -> Lines:
        """Return the C function that reorders activations like the codes: of each 8 along the
        depth, the first ones of four pairs come first, then the second ones."""
        product, steps = self.product, ceil_div(self.product.terms, 8)
        lines, value = self._expression(product.activation)
        body = [
            f"float *x = (float *)call->workspace + row * {self.pitch}L + step * 8;",
            *row_axes(self.product, "long", "row"),
            "for (long i = 0; i < 8; i++) {",
            f"  const long {axis_variable(product, product.depth)} = step * 8 + i % 4 * 2 + i / 4;",
            *indented([*lines, f"x[i] = (float)({value});"]),
            "}",
        ]
        return self._function(
            "order",
            [
                *self._pointers([product.activation]),
                *self._share(self.rows * steps),
                "for (long n = begin; n < end; n++) {",
                f"  const long row = n / {steps}, step = n % {steps};",
                *indented(body),
                "}",
            ],
        )

    @cached_property
    def _tiles(self) -> Mapping[int, CodedTile]:
        """The functions of tiles by their number of rows: full ones, and the last one; or all that
        segments are cut into."""
        whole = int(self.values["tile_rows"])
        if self._in_runs:
            return {rows: self._tile(rows) for rows in self._heights}
        counts = dict.fromkeys(n for n in (whole, self.rows % whole) if n and n <= self.rows)
        return {rows: self._tile(rows) for rows in counts}

    def _shared(self, folds_zero: bool) -> Shared:
        """Return what neighbours of a group share, without zero points that are in the codes."""
        product, before = self.product, list[str]()
        found: dict[str, str | None] = {"zero": None, "scale": None}
        for name in found:
            node = getattr(product, name)
            if node is not None and not (name == "zero" and folds_zero):
                lines, found[name] = self._expression(node)
                before += lines
        axes = [
            f"const long {axis_variable(product, product.column)} = column;",
            f"const long {axis_variable(product, product.depth)} = depth;",
        ]
        if product.differs_by_row:
            axes += row_axes(self.product, "long", "row")
        return Shared(
            zero=found["zero"],
            scale=found["scale"],
            before=(*axes, *before),
            group=product.group if self.is_grouped else None,
            early=self.values.get("scales") == "early",
        )

    def _tile(self, rows: int) -> CodedTile:
        return CodedTile(**self._of_tile(rows, self._shared(self.decoding.folds_zero)))

    def _of_tile(self, rows: int, shared: Shared) -> dict[str, Any]:
        """Return the facts of a tile of so many rows."""
        product = self.product
        nodes = [n for n in (product.zero, product.scale) if n is not None]
        return {
            "name": f"{self.entry}_tile{rows}",
            "rows": rows,
            "columns": product.columns,
            "depth": product.terms,
            "apart": self.width // ROWS * tile_bytes(self.decoding.bits),
            "pitch": self.pitch,
            "ahead": int(self.values["prefetch"]),
            "decoding": self.decoding,
            "shared": shared,
            "buffers": (*self._pointers(nodes), *self._table()),
        }

    def _table(self) -> Lines:
        """Return the C lines that fill the table of values if codes choose from an operand,
        repeated until it fills a vector."""
        table = self.product.table
        if table is None:
            return []
        codes = self.decoding.codes
        size = max(codes, self.decoding.lanes)
        lines = [*self._pointers([Read(table.name, ())]), f"float table[{size}];"]
        for place in range(size):
            entry = Read(table.name, (Number(float(place % codes)),))
            lines.append(f"table[{place}] = (float)({self._expression(entry)[1]});")
        return lines

    def _work(self) -> Lines:
        """Return the C function that multiplies a worker's tiles of columns, and adds up their
        sums."""
        tiles, deep = self.width // ROWS, self.deep
        size, each = tile_bytes(self.decoding.bits), SUMS * ROWS
        number = next(n for n, a in enumerate(self.arrays) if a.name == self.product.codes.name)
        return self._function(
            "work",
            [
                f"const unsigned char *q = call->buffers[{number}];",
                *self._pointers([matrix] if (matrix := self.product.matrix) else []),
                f"const {self.ordered_type} *x = call->workspace;",
                f"float *sums = (float *)((char *)call->workspace + {self._sums_at}L);",
                f"float *finished = (float *)((char *)call->workspace + {self._finished_at}L);",
                *self._share(tiles),
                f"for (long i = begin * {self.rows * each}; i < end * {self.rows * each}; i++)",
                "  sums[i] = 0;",
                f"for (long k = 0; k < {deep}; k += {self.block}) {{",
                f"  const long count = tw_least({self.block}, {deep} - k);",
                "  for (long tile = begin; tile < end; tile++) {",
                f"    float *own = sums + tile * {self.rows * each};",
                *indented(indented(self._calls(tiles * size, size))),
                "  }",
                "}",
                "for (long tile = begin; tile < end; tile++) {",
                *indented(self._added_up()),
                "}",
            ],
        )

    def _calls(self, apart: int, size: int) -> Lines:
        """Return the calls of a tile's function for all rows. Tiles of codes have ``size`` bytes,
        and are ``apart`` bytes apart along the depth."""

        def call(rows: int, row: str) -> str:
            x = f"x + {row} * {self.pitch} + k * {self.ordered_tile}"
            place = f"{matrix} + k * {apart} + tile * {size}"
            given = f"call, {place}, {x}, {row}, tile * {ROWS}, k, count"
            return f"{self.entry}_tile{rows}({given}, own + {row} * {SUMS * ROWS});"

        lines, matrix = self._matrix(apart * self.deep)

        whole = int(self.values["tile_rows"])
        if self._in_runs:
            body = [*lines, *self._run(apart * self.deep)]
            for rows in self._heights:
                test = f"if (run >= {rows}) " if rows > 1 else ""
                body.append(f"{test}{{ {call(rows, 'row')} row += {rows}; continue; }}")
            return [f"for (long row = 0; row < {self.rows};) {{", *indented(body), "}"]
        last = self.rows // whole * whole
        body = [*lines, call(whole, "row")]
        lines = [f"for (long row = 0; row < {last}; row += {whole}) {{", *indented(body), "}"]
        return lines + ([call(self.rows - last, str(last))] if last < self.rows else [])

    @property
    def _in_runs(self) -> bool:
        """Tell whether tiles have several rows of one matrix, which are found as they come."""
        return self.product.segments is not None and int(self.values["tile_rows"]) > 1

    @property
    def _heights(self) -> list[int]:
        """Rows of tiles of segments, from the most down to one: powers of two."""
        most = int(self.values["tile_rows"])
        return [most >> n for n in range(most.bit_length())]

    def _run(self, size: int) -> Lines:
        """Count the rows from ``row`` on that have its matrix, of ``size`` bytes, up to those of a
        tile."""
        (_, own), (lines, other) = self._matrix(size), self._matrix(size, "(row + run)")
        return [
            f"const unsigned char *const own_q = {own};",
            "long run = 1;",
            f"for (; run < {self.values['tile_rows']} && row + run < {self.rows}; run++) {{",
            *indented([*lines, f"if ({other} != own_q) break;"]),
            "}",
        ]

    def _matrix(self, size: int, row: str = "row") -> tuple[Lines, str]:
        """Return the C lines that select a row's matrix, of ``size`` bytes, and the address of
        that."""
        node = self.product.matrix
        if node is None:
            return [], "q"
        lines, number = self._nest(self.product.program).expression(node)
        within = f"tw_whole_within({number.text}, {self.product.codes.shape[0]})"
        return [*row_axes(self.product, "long", row), *lines], f"q + {within} * {size}L"

    def _added_up(self) -> Lines:
        """Write the loop that adds up the four sums of each column of a tile."""
        columns = self.decoding.lanes // 4
        return [
            f"for (long row = 0; row < {self.rows}; row++) {{",
            f"  const float *own = sums + (tile * {self.rows} + row) * {SUMS * ROWS};",
            f"  float *y = finished + row * {self.width} + tile * {ROWS};",
            f"  for (long c = 0; c < {ROWS}; c++, own += 4) {{",
            f"    const long band = c / {HALVES * columns}, half = c / {columns} % {HALVES};",
            f"    y[half * 8 + band * {columns} + c % {columns}] = "
            "(own[0] + own[1]) + (own[2] + own[3]);",
            "  }",
            "}",
        ]

    @property
    def _last(self) -> Program:
        """The program of the outputs, whose sums are read from whole tiles of columns."""
        last, sums = self.product.last, self.product.sums
        apart = replace(sums, leading=self.width if len(sums.shape) > 1 else None)
        operands = (apart if operand is sums else operand for operand in last.operands)
        return replace(last, operands=tuple(operands))

    def _writing(self) -> Lines:
        """Return the C function that computes the output from the finished sums."""
        code = self._nest(self._last)
        finished = f"(const float *)((const char *)call->workspace + {self._finished_at}L)"
        output = self.product.program.outputs[0].name
        element = [*code.at_element(), *code.value(), *code.stores()]
        return self._function(
            "write",
            [
                *self._pointers([code.stage.body], output),
                f"const float *finished = {finished};",
                *self._share(code.count),
                "for (long n = begin; n < end; n++) {",
                *indented(element),
                "}",
            ],
        )

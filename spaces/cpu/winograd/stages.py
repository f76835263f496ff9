"""The C functions that transform images, filters and products.

Squares are laid out as (element, square, channel), filters as (panel of columns, element, channel,
column), products as (element, square, column of a panel). A line of floats between elements keeps
them out of one set of a cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.layout import Strided, row_major
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.abi import LINE
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.cpu.windows.finish import fused_value, read_name
from tilewright.spaces.cpu.windows.nest import LEFT, OUTPUT, RIGHT, Key
from tilewright.spaces.cpu.winograd.blocking import Blocking
from tilewright.spaces.cpu.winograd.transforms import transformed
from tilewright.spaces.cpu.winograd.view import Squares


@dataclass(frozen=True)
class Stages:
    """The functions of one kernel, whose names begin with ``entry``."""

    squares: Squares
    blocks: Blocking
    lanes: int
    entry: str

    @property
    def channels(self) -> int:
        """The number of terms of each product."""
        return self.squares.view.channels.extent

    @property
    def elements(self) -> int:
        """The number of elements of a transformed square."""
        return self.squares.short.reads**2

    @cached_property
    def image(self) -> Strided:
        """The layout (element, square, channel) of a block of squares."""
        shape = (self.elements, self.blocks.block_squares, self.channels)
        return _apart(shape)

    @cached_property
    def panel(self) -> Strided:
        """The layout (element, channel, column) of a panel of filters."""
        return _apart((self.elements, self.channels, self.blocks.tile_columns))

    @cached_property
    def products(self) -> Strided:
        """The layout (element, square, column) of a panel's products."""
        return _apart((self.elements, self.blocks.block_squares, self.blocks.tile_columns))

    # -- images ------------------------------------------------------------------------------------

    def image_function(self) -> list[str]:
        """Return the C function ``ENTRY_image(x, v, first, squares)``, which transforms squares of
        the image ``x``, from number ``first`` on, to ``v``."""
        loop = repeat(self.blocks.block_squares).emit(
            0, self._square, extents=("squares",), prefix="n"
        )
        return [
            f"static __attribute__((noinline)) void {self.entry}_image(",
            "    const float *restrict x, float *restrict v, long first, long squares) {",
            *indented(loop),
            "}",
        ]

    def _square(self, at: Sequence[Index]) -> list[str]:
        (number,) = at
        steps = self.squares.steps
        square = index("first") + number

        def vector(at: Sequence[Index]) -> list[str]:
            (c,) = at
            left = f"{self.channels} - {c}"

            def load(i: int, j: int) -> str:
                place = c + (i * steps[0] + j * steps[1])
                return f"tw_load_most_float32(from + {place.text}, {left})"

            def store(i: int, j: int, value: str) -> str:
                place = self.image.emit(i * self.squares.short.reads + j, 0, c)
                return f"tw_store_most_float32(to + {place}, {value}, {left});"

            return transformed(self.squares.short.image, load, store)

        vectors = repeat(ceil_div(self.channels, self.lanes)) * spatial(self.lanes)
        return [
            f"const float *from = x + {self.offset(square, LEFT).text};",
            f"float *to = v + {self.image.emit(0, number, 0)};",
            *vectors.emit(0, vector, extents=(self.channels,), prefix="c"),
        ]

    # -- filters -----------------------------------------------------------------------------------

    def filter_function(self) -> list[str]:
        """Return the C function ``ENTRY_filter(r, u, columns)``, which transforms filters, from
        that of the first column at ``r`` on, to panels at ``u``."""
        b, lanes = self.blocks, self.lanes
        taps = self.squares.view.taps
        panels = repeat(b.block_columns // b.tile_columns, 1)
        channels = repeat(1, ceil_div(self.channels, lanes))
        tasks = panels * channels * repeat(b.tile_columns // lanes, 1) * spatial(lanes, lanes)
        loops = tasks.emit(0, self._filters, extents=("columns", self.channels), prefix="n")
        return [
            f"static __attribute__((noinline)) void {self.entry}_filter(",
            "    const float *restrict r, float *restrict u, long columns) {",
            f"  float g[{taps**2 * lanes**2}];",
            *indented(loops),
            "}",
        ]

    def _filters(self, at: Sequence[Index]) -> list[str]:
        """Write the transform of filters for a vector of columns at a vector of channels; elements
        are made adjacent along columns first."""
        column, channel = at
        lanes, short = self.lanes, self.squares.short
        left = f"{self.channels} - {channel}"

        def one(at: Sequence[Index]) -> list[str]:
            (c,) = at

            def load(i: int, j: int) -> str:
                return f"tw_load_float32(g + {((i * short.taps + j) * lanes + c) * lanes})"

            def store(i: int, j: int, value: str) -> str:
                place = self.panel.emit(i * short.reads + j, channel + c, column % width)
                return f"tw_store_float32(to + {place}, {value});"

            return transformed(short.filter, load, store)

        width = self.blocks.tile_columns
        return [
            f"float *to = u + {(column // width * self.panel.size).text};",
            *self._gathered(column, channel),
            *repeat(lanes).emit(0, one, extents=(left,), prefix="c"),
        ]

    def _gathered(self, column: Index, channel: Index) -> list[str]:
        view, lanes = self.squares.view, self.lanes
        steps, strides = (
            view.filter_steps,
            (view.column.strides[RIGHT], view.channels.strides[RIGHT]),
        )
        lines = []
        for tap in range(view.taps**2):
            moved = tap // view.taps * steps[0] + tap % view.taps * steps[1]
            place = column * strides[0] + channel * strides[1] + moved
            to = tap * lanes * lanes
            if view.transposed:
                lines.append(
                    f"tw_transpose_float32(r + {place.text}, {strides[0]}, columns - {column}, "
                    f"{self.channels} - {channel}, g + {to}, {lanes});"
                )
                continue

            def one(at: Sequence[Index], place: Index = place, to: int = to) -> list[str]:
                (c,) = at
                source = f"r + {(place + c * strides[1]).text}"
                value = f"tw_gather_float32({source}, {strides[0]}, columns - {column})"
                if strides[0] == 1:
                    value = f"tw_load_most_float32({source}, columns - {column})"
                return [f"tw_store_float32(g + {c * lanes + to}, {value});"]

            lines += repeat(lanes).emit(
                0, one, extents=(f"{self.channels} - {channel}",), prefix="c"
            )
        return lines

    # -- outputs -----------------------------------------------------------------------------------

    def output_function(self) -> list[str]:
        """Return the C function ``ENTRY_output(s, c, reads..., first, squares, columns)``, which
        transforms a panel's products to outputs; all arrays begin at the panel's first column."""
        b, product = self.blocks, self.squares.view.product
        reads = [
            f"const {C_TYPES[product.program.operand[read.name].dtype]} *{read_name(n)}"
            for n, read in enumerate(product.places)
        ]
        parameters = ["const float *s", f"{C_TYPES[product.output.dtype]} *c", *reads]
        tasks = repeat(b.block_squares, b.tile_columns // self.lanes) * spatial(1, self.lanes)
        return [
            f"static __attribute__((noinline)) void {self.entry}_output(",
            f"    {', '.join(parameters)}, long first, long squares, long columns) {{",
            *indented(tasks.emit(0, self._outputs, extents=("squares", "columns"), prefix="n")),
            "}",
        ]

    def _outputs(self, at: Sequence[Index]) -> list[str]:
        """Write the outputs of one square, for a vector of columns."""
        number, column = at
        short = self.squares.short

        def load(i: int, j: int) -> str:
            place = self.products.emit(i * short.reads + j, number, column)
            return f"tw_load_float32(s + {place})"

        square = index("first") + number
        digits = self._digits(square)
        limits = []
        for axis, place in zip(self.squares.view.axes, self.squares.axes, strict=True):
            limits.append(f"{axis.windows.extent} - {digits[place] * short.outputs}")
        grid = repeat(short.outputs, short.outputs)
        return [
            f"vf y[{short.outputs}][{short.outputs}];",
            f"const long left = columns - {column};",
            *transformed(short.output, load, lambda i, j, value: f"y[{i}][{j}] = {value};"),
            *grid.emit(0, lambda at: self._written(square, column, at), extents=limits, prefix="y"),
        ]

    def _written(self, square: Index, column: Index, at: Sequence[Index]) -> list[str]:
        """Write one vector of outputs, with the fused expression applied."""
        product = self.squares.view.product

        def place(key: Key) -> str:
            moved = self.offset(square, key, constant=False)
            index, parts = self.squares.places[key], self.squares.view.axes
            steps = [index.coefficient(axis.windows.name) for axis in parts]
            moved += at[0] * steps[0] + at[1] * steps[1]
            return (moved + column * self.squares.view.column.strides[key]).text

        value = fused_value(product, product.value, self.squares.view.column, place)
        return [
            f"const vf x = y[{at[0]}][{at[1]}];",
            f"tw_store_most_{product.output.dtype}(c + {place(OUTPUT)}, {value}, left);",
        ]

    # -- places ------------------------------------------------------------------------------------

    def _digits(self, square: Index) -> list[Index]:
        """Return a square's index along each of the loops."""
        digits: list[Index] = []
        for loop in reversed(self.squares.loops):
            digits.append(square % loop.extent)
            square = square // loop.extent
        return digits[::-1]

    def offset(self, square: Index, key: Key, constant: bool = True) -> Index:
        """Return the offset of a square's first row, at the first column, in an array."""
        found = Index(constant=self.squares.places[key].constant if constant else 0)
        for digit, loop in zip(self._digits(square), self.squares.loops, strict=True):
            found += digit * loop.strides[key]
        return found


def _apart(shape: tuple[int, int, int]) -> Strided:
    """Return a dense layout, but for one cache line between neighbours along the first rank."""
    dense = row_major(*shape)
    run = dense.strides[0] + LINE
    return Strided(shape, shape[0] * run, (run, *dense.strides[1:]))

"""The C of a product with packed codes whose activations are reordered as bytes.

Behind the 64 activations of a tile are the sums of groups that begin there, of each lane of a
column, multiplied by zero points that are known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.low_bit.code import CodedCode
from tilewright.spaces.cpu.low_bit.decoding import Lines
from tilewright.spaces.cpu.low_bit.tile import CodedTile
from tilewright.spaces.cpu.low_bit_dots.tile import SUM_BYTES, DotTile, quads_of
from tilewright.spaces.low_bit.axes import axis_variable, row_axes
from tilewright.spaces.low_bit.order import DEPTH
from tilewright.spaces.low_bit.quads import depths_of


@dataclass(frozen=True)
class DotCode(CodedCode):
    """The kernel of a product by dot products of bytes."""

    ordered_type: ClassVar[str] = "signed char"

    @property
    def pitch(self) -> int:
        """Bytes of a row of reordered activations."""
        return self.deep * self.ordered_tile

    @property
    def ordered_tile(self) -> int:
        """Bytes of a tile's activations, and the sums behind them."""
        return DEPTH + SUM_BYTES * self._parts

    @property
    def _ordered_bytes(self) -> int:
        return self.rows * self.pitch

    @property
    def _parts(self) -> int:
        """The groups of a tile; 1 if they are no smaller."""
        return len(quads_of(self.decoding.bits, self._group))

    @property
    def _group(self) -> int | None:
        return self.product.group if self.is_grouped else None

    @property
    def _taken(self) -> int | None:
        """The number that is subtracted of codes without a sign, if it is known."""
        zero = 0.0 if self.product.zero is None else self.decoding.zero
        return None if zero is None else int(zero) + self.decoding.sign

    def _ordering(self) -> Lines:
        """Return the C function that reorders activations as the bytes of quads, and adds them
        up."""
        product, parts, deep = self.product, self._parts, self.deep
        tiles = max(1, self._group // DEPTH) if self._group else self.block
        units = ceil_div(deep, tiles)
        groups = quads_of(self.decoding.bits, self._group)
        places = [depth for own in groups for quad in own for depth in depths_of(quad)]
        lines, value = self._expression(product.activation)
        depth = axis_variable(product, product.depth)
        read = [*lines, f"const int value = (int)({value});"]
        read += [
            "x[i] = (signed char)value;",
            f"sums[i / {DEPTH // parts} * 4 + i / 4 % 4] += value;",
        ]
        if product.terms % DEPTH:
            read = ["x[i] = 0;", f"if ({depth} < {product.terms}) {{", *indented(read), "}"]
        body = [
            *row_axes(product, "long", "row"),
            f"int sums[{4 * parts}] = {{0}};",
            f"const long end_k = tw_least((unit + 1) * {tiles}, {deep});",
            f"for (long k = unit * {tiles}; k < end_k; k++) {{",
            f"  signed char *x = ordered + k * {self.ordered_tile};",
            f"  for (long i = 0; i < {DEPTH}; i++) {{",
            f"    const long {depth} = k * {DEPTH} + places[i];",
            *indented(indented(read)),
            "  }",
            "}",
            f"int *found = (int *)(ordered + unit * {tiles * self.ordered_tile} + {DEPTH});",
            f"for (long i = 0; i < {4 * parts}; i++)",
            f"  found[i] = sums[i] * {1 if self._taken is None else -self._taken};",
        ]
        return self._function(
            "order",
            [
                f"static const signed char places[] = {{{', '.join(map(str, places))}}};",
                *self._pointers([product.activation]),
                *self._share(self.rows * units),
                "for (long n = begin; n < end; n++) {",
                f"  const long row = n / {units}, unit = n % {units};",
                f"  signed char *ordered = (signed char *)call->workspace + row * {self.pitch}L;",
                *indented(body),
                "}",
            ],
        )

    def _tile(self, rows: int) -> CodedTile:
        shared, sign = self._shared(folds_zero=self._taken is not None), self.decoding.sign
        if shared.zero and sign:
            shared = replace(shared, zero=f"{shared.zero} + {sign}")
        return DotTile(
            **self._of_tile(rows, shared),
            begins=bool(self._taken),
            sign=sign,
            ordered_tile=self.ordered_tile,
        )

"""The C of a tile of 16 columns by dot products of bytes, over a block of the depth.

Lanes are those of :class:`~spaces.cpu.low_bit.tile.CodedTile`: four neighbours for each column.
Sums of a group are whole numbers of 32 bits. They begin with what zero points take away, which is
in the activations' order behind those of a group's first tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.low_bit.decoding import Lines
from tilewright.spaces.cpu.low_bit.tile import CodedTile
from tilewright.spaces.low_bit.order import DEPTH, HALVES, ROWS, STEPS
from tilewright.spaces.low_bit.quads import Quad, quad_code, quads

SUM_BYTES = 16
"""Bytes of the sums of a group's activations, one for each lane of a column."""


def quads_of(bits: int, group: int | None) -> tuple[tuple[Quad, ...], ...]:
    """Return the quads of each of a tile's groups; all of them if groups are no smaller."""
    steps = min(STEPS, (group or DEPTH) // 8)
    found, each = quads(bits, steps), steps // 2
    return tuple(found[first : first + each] for first in range(0, len(found), each))


@dataclass(frozen=True, kw_only=True)
class DotTile(CodedTile):
    """The C function of a tile whose activations have 8 bits.

    ``begins`` says that sums of activations come multiplied by a zero point that is known; those of
    operands are ``shared.zero``. ``sign`` is the bit that makes codes numbers without a sign.
    """

    begins: bool
    sign: int
    ordered_tile: int
    ordered_type: ClassVar[str] = "signed char"
    zero_type: ClassVar[str] = "int"

    def _band(self) -> Lines:
        """Write all of a block's depth for one band."""
        sums = [f"t{row}_{half}" for row in range(self.rows) for half in range(HALVES)]
        group = self.shared.group
        if group is None:
            inner = self._group_sums("0", "x", self._loop("0", "count"))
        elif group >= DEPTH:
            tiles = group // DEPTH
            body = self._loop(f"g * {tiles}", f"(g + 1) * {tiles}")
            inner = self._group_sums("g", f"x + g * {tiles * self.ordered_tile}", body)
            inner = ["for (long g = 0; g < groups; g++) {", *indented(inner), "}"]
        else:
            parts = quads_of(self.decoding.bits, group)
            lines = self._words()
            for number, own in enumerate(parts):
                place = f"k * {len(parts)} + {number}"
                body = self._group_sums(place, f"e + {number * SUM_BYTES}", self._dots(own, number))
                there = f"if ({place} < groups) " if self.depth % DEPTH else ""
                lines += [f"{there}{{", *indented(body), "}"]
            inner = ["for (long k = 0; k < count; k++) {", *indented(lines), "}"]
        return [f"vf {', '.join(f'{name} = {{0}}' for name in sums)};", *inner, *self._stored()]

    def _loop(self, first: str, end: str) -> Lines:
        """Write the loop over whole tiles of codes."""
        (own,) = quads_of(self.decoding.bits, None)
        body = [*self._words(), *self._dots(own, 0)]
        return [f"for (long k = {first}; k < {end}; k++) {{", *indented(body), "}"]

    def _words(self) -> Lines:
        return [
            f"const unsigned char *p = q + k * {self.apart};",
            f"const signed char *e = x + k * {self.ordered_tile};",
            *self._fetched(),
            *self.decoding.words("p", "band"),
        ]

    def _dots(self, own: tuple[Quad, ...], number: int) -> Lines:
        """Write the products of some quads, which are the ``number``-th ones of a tile."""
        lines = []
        for place, quad in enumerate(own):
            at = 16 * (number * len(own) + place)
            body = [
                f"const vi x{row} = {_repeated(f'e + {row * self.pitch + at}')};"
                for row in range(self.rows)
            ]
            for half in range(HALVES):
                code = quad_code(self.decoding.bits, quad, half, self.sign)
                body.append(f"const vu c{half} = {code};")
                for row in range(self.rows):
                    name = f"s{row}_{half}_{place % self.chains}"
                    body.append(f"{name} = tw_byte_dot({name}, c{half}, x{row});")
            lines += ["{", *indented(body), "}"]
        return lines

    def _group_sums(self, group: str, first: str, body: Lines) -> Lines:
        """Write the sums of a group, whose first tile has its activations at ``first``."""
        lines: Lines = []
        shared = self.shared
        if shared.zero is not None:
            lines += [
                f"const vi zero{half} = (vi){self._each('zero', group, half)};"
                for half in range(HALVES)
            ]
        for row, half, (name, *others) in self._names("s"):
            begun = _repeated(f"{first} + {row * self.pitch + DEPTH}")
            start = begun if self.begins else "{0}"
            if shared.zero is not None:
                start = f"-(zero{half} * {begun})"
            lines += [f"vi {name} = {start};", *(f"vi {other} = {{0}};" for other in others)]
        lines += body
        if shared.scale is not None:
            lines += self._of_group("scale", group)
        for row, half, names in self._names("s"):
            sums, whole = f"__builtin_convertvector({' + '.join(names)}, vf)", f"t{row}_{half}"
            scaled = (
                f"tw_fma({sums}, scale{half}, {whole})" if shared.scale else f"{whole} + {sums}"
            )
            lines.append(f"{whole} = {scaled};")
        return lines

    def _each(self, name: str, group: str, half: int) -> str:
        columns = self.decoding.lanes // 4
        place = f"({group}) * {ROWS} + band * {columns} + {8 * half}"
        return f"tw_each_four((const float *){name}s + {place})"

    def _stored(self) -> Lines:
        lines = []
        for row in range(self.rows):
            for half in range(HALVES):
                at = f"{row * ROWS * 4} + (band * {HALVES} + {half}) * {self.decoding.lanes}"
                found = f"tw_load_float32(sums + {at}) + t{row}_{half}"
                lines.append(f"tw_store_float32(sums + {at}, {found});")
        return lines


def _repeated(place: str) -> str:
    """Return the C expression of 16 bytes, repeated in all lanes."""
    return f"(vi)tw_repeated((const float *)({place}))"

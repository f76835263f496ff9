"""The C of a tile of 16 columns of a product with packed codes, over a block of the depth.

A tile of codes has 32 lanes; a band is as many of them as a vector has, and each of its words holds
codes of the same places. A vector of values has four neighbours along the depth for each of its
columns, so that the sums of a column are four lanes, which are added up at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.abi import LINE_BYTES
from tilewright.spaces.cpu.low_bit.decoding import Decoding, Lines
from tilewright.spaces.low_bit.order import DEPTH, HALVES, LANES, ROWS, STEPS, slots, tile_bytes


@dataclass(frozen=True)
class Shared:
    """The zero points and scales that neighbours of a group share.

    ``zero`` and ``scale`` are C expressions of the variables ``column`` and ``depth``, None if
    there is none; ``before`` are lines that they need. ``group`` is the number of neighbours, None
    if all of the depth is one group. An ``early`` scale multiplies each value, a late one the sum
    of a group.
    """

    zero: str | None
    scale: str | None
    before: tuple[str, ...]
    group: int | None
    early: bool

    @property
    def late(self) -> bool:
        """True if groups have sums of their own."""
        return self.scale is not None and not self.early

    @property
    def grouped(self) -> bool:
        """True if groups differ in anything."""
        return self.group is not None and (self.zero is not None or self.scale is not None)


@dataclass(frozen=True)
class CodedTile:
    """The C function ``name``, which adds the products of ``rows`` rows to their sums.

    ``depth`` is that of the product, a multiple of 8; ``apart`` are the bytes from a tile of codes
    to the next along the depth, and ``pitch`` the floats from a row of activations to the next. The
    tile of codes that is ``ahead`` tiles further in memory is prefetched.
    """

    name: str
    rows: int
    columns: int
    depth: int
    apart: int
    pitch: int
    ahead: int
    decoding: Decoding
    shared: Shared
    buffers: tuple[str, ...]
    ordered_type: ClassVar[str] = "float"
    zero_type: ClassVar[str] = "float"

    @property
    def bands(self) -> int:
        """The number of bands of a tile."""
        return LANES // self.decoding.lanes

    @property
    def chains(self) -> int:
        """The number of sums of a row and a half of the columns, so that additions do not wait."""
        return 2 if self.rows == 1 else 1

    def source(self, most_groups: int) -> Lines:
        """Return the C function, for blocks of at most ``most_groups`` groups."""
        return [
            f"static __attribute__((noinline)) void {self.name}(",
            "    const tw_call *call, const unsigned char *q, "
            f"const {self.ordered_type} *x, long row,",
            "    long column0, long first, long count, float *sums) {",
            *indented([*self.buffers, *self.decoding.declared()]),
            *indented(self._groups(most_groups)),
            f"  for (int band = 0; band < {self.bands}; band++) {{",
            *indented(indented(self._band())),
            "  }",
            "}",
        ]

    # -- zero points and scales --------------------------------------------------------------------

    def _groups(self, most: int) -> Lines:
        """Compute the zero points and scales of the block's groups, a float for each column."""
        names = [n for n in ("zero", "scale") if getattr(self.shared, n) is not None]
        if not names:
            return []
        group = self.shared.group or self.depth
        count = f"tw_least(count * {DEPTH}, {self.depth} - first * {DEPTH}) / {group}"
        types = {"zero": self.zero_type, "scale": "float"}
        declared = [f"{types[name]} {name}s[{most * ROWS + 4}];" for name in names]
        whole = self.columns % ROWS == 0
        column = "column0 + c" if whole else f"tw_least(column0 + c, {self.columns - 1})"
        depth = f"first * {DEPTH} + g * {group}" if self.shared.grouped else "0"
        return [
            *declared,
            f"const long groups = {count if self.shared.grouped else 1};",
            "for (long g = 0; g < groups; g++) {",
            f"  for (long c = 0; c < {ROWS}; c++) {{",
            f"    const long column = {column}, depth = {depth};",
            *indented(indented(list(self.shared.before))),
            *(
                f"    {name}s[g * {ROWS} + c] = ({types[name]})({getattr(self.shared, name)});"
                for name in names
            ),
            "  }",
            "}",
        ]

    def _of_group(self, name: str, group: str) -> Lines:
        """Load the vectors of a group's zero points or scales, for both halves of the columns."""
        columns = self.decoding.lanes // 4
        return [
            f"const vf {name}{half} = tw_each_four("
            f"{name}s + ({group}) * {ROWS} + band * {columns} + {8 * half});"
            for half in range(HALVES)
        ]

    def _shared_of(self, group: str) -> Lines:
        """Load the vectors that values of a group need."""
        lines = self._of_group("zero", group) if self.shared.zero is not None else []
        if self.shared.scale is not None and self.shared.early:
            lines += self._of_group("scale", group)
        return lines

    # -- sums --------------------------------------------------------------------------------------

    def _names(self, prefix: str) -> list[tuple[int, int, list[str]]]:
        """Return rows, halves and the variables of their sums."""
        return [
            (row, half, [f"{prefix}{row}_{half}_{chain}" for chain in range(self.chains)])
            for row in range(self.rows)
            for half in range(HALVES)
        ]

    def _zeroed(self, prefix: str) -> str:
        names = [name for _, _, names in self._names(prefix) for name in names]
        return f"vf {', '.join(f'{name} = {{0}}' for name in names)};"

    def _added(self, group: str) -> Lines:
        """Multiply the sums of a finished group by its scales, and add them to the block's."""
        lines = self._of_group("scale", group)
        for (_, half, own), (_, _, whole) in zip(self._names("s"), self._names("t"), strict=True):
            lines.append(f"{whole[0]} = tw_fma({' + '.join(own)}, scale{half}, {whole[0]});")
        return lines

    def _stored(self) -> Lines:
        prefix = "t" if self.shared.late else "s"
        lines = []
        for row, half, names in self._names(prefix):
            used = names[:1] if self.shared.late else names
            place = f"sums + {row * ROWS * 4} + (band * {HALVES} + {half}) * {self.decoding.lanes}"
            found = f"tw_load_float32({place}) + {' + '.join(used)}"
            lines.append(f"tw_store_float32({place}, {found});")
        return lines

    # -- the depth ---------------------------------------------------------------------------------

    def _band(self) -> Lines:
        """Write all of a block's depth for one band."""
        group = self.shared.group if self.shared.grouped else None
        start = [self._zeroed("t")] if self.shared.late else [self._zeroed("s")]
        if group is None:
            inner = [*self._shared_of("0"), *self._tiles("0", "count")]
            if self.shared.late:
                inner = [self._zeroed("s"), *inner, *self._added("0")]
        elif group >= DEPTH:
            tiles = group // DEPTH
            inner = self._in_group("g", self._tiles(f"g * {tiles}", f"(g + 1) * {tiles}"))
            inner = ["for (long g = 0; g < groups; g++) {", *indented(inner), "}"]
        else:
            inner = self._tiles("0", "count")
        return [*start, *inner, *self._stored()]

    def _in_group(self, group: str, body: Lines) -> Lines:
        """Write a group's depth, with sums of its own if scales are late."""
        lines = [*self._shared_of(group), *body]
        return [self._zeroed("s"), *lines, *self._added(group)] if self.shared.late else lines

    def _tiles(self, first: str, end: str) -> Lines:
        """Write the loop over full tiles of codes from ``first`` to before ``end``, and the partial
        last one."""
        rest = self.depth % DEPTH // 8
        whole = self._tile(STEPS)
        if not rest:
            return [f"for (long k = {first}; k < {end}; k++) {{", *indented(whole), "}"]
        last = f"first + {end} > {self.depth // DEPTH}"
        return [
            f"const long whole = {end} - ({last});",
            f"for (long k = {first}; k < whole; k++) {{",
            *indented(whole),
            "}",
            f"for (long k = whole; k < {end}; k++) {{",
            *indented(self._tile(rest)),
            "}",
        ]

    def _tile(self, steps: int) -> Lines:
        """Write the first ``steps`` steps of a tile of codes."""
        group = self.shared.group if self.shared.grouped else None
        lines = [
            f"const unsigned char *p = q + k * {self.apart};",
            f"const float *e = x + k * {DEPTH};",
            *self._fetched(),
            *self.decoding.words("p", "band"),
        ]
        if group is None or group >= DEPTH:
            return [*lines, *(line for step in range(steps) for line in self._step(step))]
        each = group // 8
        for number in range(steps // each):
            own = range(number * each, (number + 1) * each)
            body = [line for step in own for line in self._step(step)]
            place = f"k * {DEPTH // group} + {number}"
            lines += ["{", *indented(self._in_group(place, body)), "}"]
        return lines

    def _fetched(self) -> Lines:
        """Prefetch the band's part of a tile that is read later."""
        if not self.ahead:
            return []
        size = tile_bytes(self.decoding.bits)
        part = max(LINE_BYTES, size // self.bands)
        start = f"p + {self.ahead * size} + band * {size // self.bands}"
        return [
            f"__builtin_prefetch({start} + {line}, 0, 3);" for line in range(0, part, LINE_BYTES)
        ]

    def _step(self, step: int) -> Lines:
        """Write the products of 8 terms of the depth."""
        lines = []
        for code in range(2):
            given = [f"x{row}" for row in range(self.rows)]
            place = (2 * step + code) * 4
            loads = [
                f"const vf {x} = tw_repeated(e + {row * self.pitch + place});"
                for row, x in enumerate(given)
            ]
            body = [*loads]
            for half in range(HALVES):
                value = self.decoding.value(slots(self.decoding.bits)[step][half], code)
                if self.shared.zero is not None:
                    value = f"{value} - zero{half}"
                if self.shared.scale is not None and self.shared.early:
                    value = f"({value}) * scale{half}"
                body.append(f"const vf c{half} = {value};")
                for row, x in enumerate(given):
                    own = f"s{row}_{half}_{code % self.chains}"
                    body.append(f"{own} = tw_fma(c{half}, {x}, {own});")
            lines += ["{", *indented(body), "}"]
        return lines

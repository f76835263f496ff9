"""The loads of an operand into registers, and the conversion to the type computed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.derivation.rows.addresses import RowAddress, Span
from tilewright.spaces.derivation.rows.view import Rows
from tilewright.spaces.language.tree import Read
from tilewright.spaces.workloads.array import Array

PAIRED = ("float16", "bfloat16")
"""Types of which a register holds two elements."""
ENTRY = """\
TW_INLINE int tw_entry(int i, int below) { return i < 0 ? 0 : i < below ? i : below - 1; }
"""
"""The C function that bounds entries of tables, so that no read is outside of an array."""
SATURATED = """\
TW_INLINE int tw_saturated(i64 x) {
  return x < -0x7fffffffLL ? -0x7fffffff : x > 0x7fffffffLL ? 0x7fffffff : (int)x;
}
"""
"""The C function that saturates entries of 64 bits to 32 bits."""


def digits(position: str, spans: tuple[Span, ...]) -> list[Index]:
    """Return the index along each span of ``position`` in all of them; the last span is fastest."""
    whole = index(position, prod(span.extent for span in spans))
    found = []
    for i, span in enumerate(spans):
        below = prod(s.extent for s in spans[i + 1 :])
        found.append(whole // below % span.extent)
    return found


def widest(place: RowAddress, columns: tuple[Span, ...]) -> int:
    """Return the most elements, up to 16, that every vector has side by side and aligned.

    It is a power of two; 1 if the columns of ``place`` are no neighbours in memory.
    """
    if place.columns[-1] != 1:
        return 1
    steps = (place.offset, *place.rows, *place.columns[:-1], *(step for _, step in place.gathers))
    width = 16
    while any(step % width for step in (*steps, columns[-1].extent)):
        width //= 2
    return width


@dataclass(frozen=True)
class Access:
    """The elements of ``array`` at rows and columns.

    ``argument`` is the array's name in the kernel, ``place`` its address as a function of rows and
    columns. Elements are read ``vector`` at a time if they lie side by side.
    """

    rows: Rows
    array: Array
    argument: str
    place: RowAddress
    vector: int

    @property
    def is_vector(self) -> bool:
        """True if a vector is read at once."""
        return widest(self.place, self.rows.columns) >= self.vector

    @property
    def paired(self) -> bool:
        """True if elements are moved in words of two."""
        return self.is_vector and self.vector > 1 and self.array.dtype in PAIRED

    @property
    def words(self) -> int:
        """Elements of type :attr:`kind` of a vector."""
        return self.vector // 2 if self.paired else self.vector

    @property
    def kind(self) -> str:
        """The C type in which registers hold elements: words of pairs, or the array's own."""
        return "u32" if self.paired else C_TYPES[self.array.dtype]

    def start(self, row: str, gathered: Mapping[Read, str]) -> str:
        """Return C text of the offset of a row's first element, in elements."""
        terms = [str(self.place.offset)] if self.place.offset else []
        for digit, step in zip(digits(row, self.rows.rows), self.place.rows, strict=True):
            if step and digit.value != 0:
                terms.append(f"(i64){digit} * {step}")
        for read, step in self.place.gathers:
            terms.append(f"(i64)tw_entry({gathered[read]}, {self._below(read)}) * {step}")
        return " + ".join(terms) or "0"

    def _below(self, table: Read) -> int:
        """Return the bound that all entries of a table are below."""
        drawn = self.rows.program.operand[table.name].drawn
        assert drawn is not None
        return drawn.below

    def along(self, column: str) -> str:
        """Return C text of a column's distance from the row's start, in elements."""
        found = Index()
        for digit, step in zip(digits(column, self.rows.columns), self.place.columns, strict=True):
            found = found + digit * step
        return found.text

    def chunks(self) -> list[tuple[int, int]]:
        """Return first word and number of words of each access, which has at most 16 bytes."""
        bytes = 4 if self.paired else self.array.element.bytes
        size = min(self.words, 16 // bytes)
        return [(start, size) for start in range(0, self.words, size)]

    def chunk_bytes(self) -> list[int]:
        """Return the bytes from the vector's start to each access."""
        bytes = 4 if self.paired else self.array.element.bytes
        return [start * bytes for start, _ in self.chunks()]

    def load(self, to: str, pointer: str, column: str, stream: bool) -> list[str]:
        """Print how the vector at ``column`` is read into the words from ``to`` on."""
        if not self.is_vector:
            return [
                f"({to})[{i}] = tw::load_global({pointer} + ({self.along(f'({column} + {i})')}));"
                for i in range(self.vector)
            ]
        cast = "(const u32 *)" if self.paired else ""
        place = f"{cast}({pointer} + {self.along(column)})"
        function = "tw::load_stream<{}, 0>" if stream else "tw::load_global<{}>"
        return [
            f"{function.format(size)}({to} + {start}, {place} + {start});"
            for start, size in self.chunks()
        ]

    def unpack(self, to: str, words: str, real: str, again: bool = False) -> list[str]:
        """Print how held words become the numbers ``to``.

        ``again`` keeps the compiler from holding on to the numbers that it made of them before.
        """
        if self.paired:
            kind = C_TYPES[self.array.dtype]
            lines = []
            if real == "double":
                lines.append(f"float low{to}, high{to};")
            for i in range(self.words):
                word = f"({words})[{i}]"
                word = f"(u32)tw::opaque((i32){word})" if again else word
                pair = f"{to}[{2 * i}]", f"{to}[{2 * i + 1}]"
                if real == "double":
                    lines += [
                        f"tw::unpack2<{kind}>({word}, low{to}, high{to});",
                        f"{pair[0]} = low{to}; {pair[1]} = high{to};",
                    ]
                else:
                    lines.append(f"tw::unpack2<{kind}>({word}, {pair[0]}, {pair[1]});")
            return lines
        return [
            f"{to}[{i}] = {number_of(f'({words})[{i}]', self.array, real)};"
            for i in range(self.vector)
        ]


def number_of(element: str, array: Array, real: str) -> str:
    """Return C text of an element in the type computed in; whole numbers stay what they are."""
    if array.element.is_integer:
        return f"tw_saturated({element})" if array.dtype == "int64" else element
    if array.dtype == "float64" or (array.dtype in ("float32", "tfloat32") and real == "float"):
        return element
    return f"tw::to_float({element})"

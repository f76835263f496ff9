"""The C of loads and stores of a row's elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.cpu.abi import ARRAY_TYPES
from tilewright.spaces.cpu.rows.columns import Vector
from tilewright.spaces.cpu.vectors.vector_code import loaded
from tilewright.spaces.derivation.rows.addresses import RowAddress
from tilewright.spaces.derivation.rows.column_sums import SummedRows
from tilewright.spaces.kernels.text import C
from tilewright.spaces.language.tree import AxisValue, Expression, Read
from tilewright.spaces.workloads.array import Array


@dataclass
class RowAccess:
    """Loads and stores in the row ``at``, which has an index for each span of rows.

    ``buffers`` maps each array to its C variable. Pointers to a row's first column are declared in
    ``lines``, once for each place. The ``width`` lanes of a vector are columns, or rows if
    ``lanes_are_rows``; registers hold the type ``element``.
    """

    rows: SummedRows
    buffers: Mapping[str, str]
    at: Sequence[Index]
    lines: list[str]
    width: int
    element: str
    lanes_are_rows: bool = False
    names: dict[tuple[object, ...], str] = field(default_factory=dict)

    def pointer(self, place: RowAddress) -> str:
        """Return the C variable that points to the row's first column of an array."""
        key = (place.array, place.offset, place.rows, place.gathers)
        if key not in self.names:
            name = f"p{len(self.names)}"
            constant = "" if place.array in self._written else "const "
            c_type = ARRAY_TYPES[self._dtype(place)]
            self.lines.append(f"{constant}{c_type} *{name} = {self._start(place)};")
            self.names[key] = name
        return self.names[key]

    def read(self, node: Expression, vector: Vector) -> str | None:
        """Return a read or an axis that differs from element to element of a row; None for other
        nodes."""
        if isinstance(node, AxisValue):
            return self._column_number(node, vector)
        if isinstance(node, Read) and node in self.rows.places:
            place = self.rows.places[node]
            return self.load(place, vector) if place.by_column else None
        return None

    def read_once(self, node: Expression, shift: int = 0, left: str | None = None) -> str | None:
        """Return a read or an axis that is the same along a row; None for other nodes. If lanes are
        rows, they are those from ``shift`` on, of which ``left`` remain."""
        if isinstance(node, AxisValue):
            side, place = self.rows.axis[node.name]
            return self.row_number(place, shift) if side == "rows" else None
        if isinstance(node, Read) and node in self.rows.places:
            found = self.rows.places[node]
            return None if found.by_column else self.of_row(found, shift, left)
        return None

    def load(self, place: RowAddress, vector: Vector) -> str:
        """Return the vector that is read at a place."""
        return self._load(place, self._where(place, vector), vector.left)

    def of_row(self, place: RowAddress, shift: int, left: str | None) -> str:
        """Return a value that is the same along a row: one value in all lanes, or each lane's own
        row's."""
        if not self.lanes_are_rows:
            return f"tw_splat_{self._dtype(place)}({self._start(place)})"
        where = f"{self._start(place)} + {shift * place.rows[-1]}"
        return self._load(place, where, left)

    def store(self, place: RowAddress, value: str, vector: Vector, streaming: bool) -> str:
        """Return the line that stores a vector, past the caches if ``streaming``."""
        dtype, step = self._dtype(place), self._lane_step(place)
        where = self._where(place, vector)
        if step != 1:
            return f"tw_spread_{dtype}({where}, {step}, {value}, {vector.left or 'TW_LANES'});"
        if vector.left:
            return f"tw_store_most_{dtype}({where}, {value}, {vector.left});"
        return f"tw_{'stream' if streaming else 'store'}_{dtype}({where}, {value});"

    def ahead(self, place: RowAddress, vector: Vector, lanes: int) -> str:
        """Return C text of the elements from a vector's first to the next at which whole vectors
        are aligned."""
        return f"tw_to_line_{self._dtype(place)}({self._where(place, vector)}) % {lanes}"

    def line(self, place: RowAddress, name: str, count: int) -> str:
        """Return the line that declares ``count`` elements, of an output's type, near the core."""
        return f"{ARRAY_TYPES[self._dtype(place)]} {name}[{count}] __attribute__((aligned(64)));"

    def keep(self, place: RowAddress, where: str, value: str) -> str:
        """Return the line that stores a vector of an output in such elements."""
        return f"tw_store_{self._dtype(place)}({where}, {value});"

    def stream(self, place: RowAddress, vector: Vector, line: str, count: str) -> list[str]:
        """Return the lines that store ``count`` such elements from a vector's first on, past the
        caches where whole vectors are aligned."""
        dtype, lanes = self._dtype(place), self.width

        def some(at: str, left: str) -> str:
            held = f"tw_load_most_{dtype}({line} + {at}, {left})"
            return f"tw_store_most_{dtype}(to + {at}, {held}, {left});"

        whole = f"tw_stream_{dtype}(to + k, tw_load_{dtype}({line} + k));"
        return C.block(
            f"{ARRAY_TYPES[dtype]} *to = {self._where(place, vector)};",
            f"const long n = {count};",
            f"const long head = tw_least(n, tw_to_line_{dtype}(to) % {lanes});",
            *C.when("head > 0", some("0", "head")),
            *C.loop(
                "k",
                "n",
                C.when(f"k + {lanes} <= n", whole, some("k", "n - k")),
                first="head",
                step=lanes,
            ),
        )

    def add(self, place: RowAddress, value: str, vector: Vector) -> str:
        """Return the line that adds a vector to the elements of an array."""
        dtype, where = self._dtype(place), self._where(place, vector)
        if vector.left:
            old = f"tw_load_most_{dtype}({where}, {vector.left})"
            return f"tw_store_most_{dtype}({where}, {old} + {value}, {vector.left});"
        return f"tw_store_{dtype}({where}, tw_load_{dtype}({where}) + {value});"

    def row_number(self, span: int, shift: int) -> str:
        """Return the row's index along a span of rows, as floats."""
        if self.lanes_are_rows and span == len(self.at) - 1:
            return f"tw_numbers(tw_ramp({self.at[span] + shift}))"
        return f"tw_set((float){self.at[span]})"

    def store_one(self, place: RowAddress, value: str) -> str:
        """Return the line that stores one value for the row."""
        return f"tw_store_first_{self._dtype(place)}({self._start(place)}, {value}, 1);"

    def store_places(self, place: RowAddress, value: str, vector: Vector) -> list[str]:
        """Return the lines that store a whole number for the row, or for each lane's row."""
        if not self.lanes_are_rows:
            return [f"*({self._start(place)}) = {value};"]
        lanes = f"tw_least({vector.left}, TW_LANES)" if vector.left else "TW_LANES"
        where = f"({self._where(place, vector)})[{place.rows[-1]} * l]"
        return [f"for (long l = 0; l < {lanes}; l++) {where} = {value}[l];"]

    def fetch(self, place: RowAddress, vector: Vector) -> str:
        """Return the line that prefetches what the next row reads at a place."""
        where = vector.offset(place.columns) + place.rows[-1]
        return f"__builtin_prefetch({self.pointer(place)} + {where});"

    def _column_number(self, node: AxisValue, vector: Vector) -> str | None:
        side, place = self.rows.axis[node.name]
        if side == "rows":
            return None
        if place == len(vector.columns) - 1 and not self.lanes_are_rows:
            return f"tw_numbers(tw_ramp({vector.columns[place]}))"
        return f"tw_set((float){vector.columns[place]})"

    def _lane_step(self, place: RowAddress) -> int:
        """Return the elements from one lane to the next."""
        return place.rows[-1] if self.lanes_are_rows else place.columns[-1]

    def _where(self, place: RowAddress, vector: Vector) -> str:
        """Return the address of the first lane, in C."""
        start = f"{self.pointer(place)} + {vector.offset(place.columns)}"
        shift = vector.shift * place.rows[-1]
        return f"{start} + {shift}" if shift else start

    def _load(self, place: RowAddress, where: str, left: str | None) -> str:
        return loaded(self._dtype(place), where, self._lane_step(place), left)

    def _start(self, place: RowAddress) -> str:
        """Return the address of the row's first element, in C."""
        total = Index(constant=place.offset)
        for position, step in zip(self.at, place.rows, strict=True):
            total = total + position * step
        gathered = "".join(f" + {self._entry(read)} * {step}L" for read, step in place.gathers)
        return f"{self.buffers[place.array]} + {total}{gathered}"

    def _entry(self, read: Read) -> str:
        """Return an index from a table, clamped so that no access leaves the array."""
        place = self.rows.places[read]
        drawn = self.rows.program.operand[read.name].drawn
        assert drawn is not None
        return f"tw_entry(*({self._start(place)}), {drawn.below})"

    def _dtype(self, place: RowAddress) -> str:
        array = self.rows.program.operand.get(place.array) or self._written[place.array]
        return array.dtype

    @property
    def _written(self) -> Mapping[str, Array]:
        return {output.array.name: output.array for output in self.rows.outputs}

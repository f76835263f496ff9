"""The C of loads and stores at the places of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spaces.algebra.index import Index
from spaces.array import Array
from spaces.cpu.rows.columns import Vector
from spaces.cpu.tiles.simd import C_TYPES
from spaces.derivation.rows.place import Place
from spaces.derivation.rows.view import Rows
from spaces.language.tree import Read


@dataclass
class RowAccess:
    """Where arrays have their elements in the row ``at``, an index for each span of rows.

    ``buffers`` is the C variable of each array. Pointers to the first column are added to
    ``lines``, once for each place.
    """

    rows: Rows
    buffers: Mapping[str, str]
    at: Sequence[Index]
    lines: list[str]
    names: dict[tuple[object, ...], str] = field(default_factory=dict)

    def pointer(self, place: Place) -> str:
        """The variable that points to the row's first column."""
        key = (place.array, place.offset, place.rows, place.gathers)
        if key not in self.names:
            name = f"p{len(self.names)}"
            constant = "" if place.array in self._written else "const "
            c_type = C_TYPES[self._dtype(place)]
            self.lines.append(f"{constant}{c_type} *{name} = {self._start(place)};")
            self.names[key] = name
        return self.names[key]

    def load(self, place: Place, vector: Vector) -> str:
        """A vector of what is read along the row."""
        dtype, step = self._dtype(place), place.columns[-1]
        where = f"{self.pointer(place)} + {vector.offset(place.columns)}"
        if step == 0:
            return f"tw_splat_{dtype}({where})"
        if step != 1:
            return f"tw_gather_{dtype}({where}, {step}, {vector.left or 'TW_LANES'})"
        if vector.left:
            return f"tw_load_most_{dtype}({where}, {vector.left})"
        return f"tw_load_{dtype}({where})"

    def splat(self, place: Place) -> str:
        """All lanes with what is the same along the row."""
        return f"tw_splat_{self._dtype(place)}({self._start(place)})"

    def store(self, place: Place, value: str, vector: Vector, streaming: bool) -> str:
        """The line that stores a vector along the row."""
        dtype, step = self._dtype(place), place.columns[-1]
        where = f"{self.pointer(place)} + {vector.offset(place.columns)}"
        if step != 1:
            return f"tw_spread_{dtype}({where}, {step}, {value}, {vector.left or 'TW_LANES'});"
        if vector.left:
            return f"tw_store_most_{dtype}({where}, {value}, {vector.left});"
        return f"tw_{'stream' if streaming else 'store'}_{dtype}({where}, {value});"

    def store_one(self, place: Place, value: str) -> str:
        """The line that stores one value for the row."""
        return f"tw_store_first_{self._dtype(place)}({self._start(place)}, {value}, 1);"

    def store_whole(self, place: Place, value: str) -> str:
        """The line that stores a whole number for the row."""
        return f"*({self._start(place)}) = {value};"

    def fetch(self, place: Place, vector: Vector) -> str:
        """The line that fetches what the next row reads there."""
        where = vector.offset(place.columns) + place.rows[-1]
        return f"__builtin_prefetch({self.pointer(place)} + {where});"

    def _start(self, place: Place) -> str:
        """C text of where the row begins."""
        total = Index(constant=place.offset)
        for position, step in zip(self.at, place.rows, strict=True):
            total = total + position * step
        gathered = "".join(f" + {self._entry(read)} * {step}L" for read, step in place.gathers)
        return f"{self.buffers[place.array]} + {total}{gathered}"

    def _entry(self, read: Read) -> str:
        """An index from a table, bounded so that no read is wild."""
        place = self.rows.places[read]
        drawn = self.rows.program.operand[read.name].drawn
        assert drawn is not None
        return f"tw_entry(*({self._start(place)}), {drawn.below})"

    def _dtype(self, place: Place) -> str:
        array = self.rows.program.operand.get(place.array) or self._written[place.array]
        return array.dtype

    @property
    def _written(self) -> Mapping[str, Array]:
        return {output.array.name: output.array for output in self.rows.outputs}

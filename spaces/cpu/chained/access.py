"""The C of reads and stores in a chained kernel: by row, along keys or columns, and by product."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from tilewright.spaces.algebra.atoms import Entry
from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.cpu.rows.scopes import VectorScope
from tilewright.spaces.cpu.vectors.moves import TABLE_TYPES
from tilewright.spaces.derivation.chained.rows_and_keys import RowsAndKeys
from tilewright.spaces.derivation.chained.text import extreme, in_c, key_bounds, spans
from tilewright.spaces.derivation.chained.view import ChainedOutput
from tilewright.spaces.derivation.products.reach import place_of
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.derivation.scopes import Integer
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.tree import AxisValue, Expression, Read

MOST_STEP = 1 << 24
"""The most elements of a table from one lane to the next that 32-bit offsets hold for all lanes."""


V = TypeVar("V", bound=RowsAndKeys)


@dataclass(frozen=True)
class Access(Generic[V]):
    """The reads and stores of a kernel: ``buffers`` maps each array to its C variable, ``names``
    each part of the batch and the rows whose index is known. ``keys`` is the C variable of the
    number of keys, where calls give it."""

    view: V
    buffers: Mapping[str, str]
    names: Mapping[str, str]
    keys: str = ""

    def text(self, index: Index) -> str:
        """Return the C text of an index of the parts."""
        return in_c(index, self.names, self._loaded)

    def _loaded(self, entry: Entry) -> Index:
        place = place_of(self.view.program, entry).loaded(self._loaded)
        found = f"tw_entry({self.buffers[entry.table]}[{place.text}], {entry.below})"
        return variable(found, entry.below)

    def knowing(self, names: Mapping[str, str]) -> Access[V]:
        """Return the same access with further variables."""
        return replace(self, names={**self.names, **names})

    def of_row(self, node: Expression) -> str | None:
        """Return a vector with, in all lanes, a value that is the same for a whole row; None if the
        value differs within a row or its index is not known."""
        view = self.view
        if isinstance(node, Integer):
            return self._integer_of_row(node.node)
        if isinstance(node, AxisValue):
            index = view.indexing.index(node)
            known = index.names <= set(self.names)
            return f"tw_set((float){self.text(index)})" if known else None
        if not isinstance(node, Read) or node not in view.places:
            return None
        if not view.places[node].offset.names <= set(self.names):
            return None
        place = self.start(node)
        if self._dtype(node) in TABLE_TYPES:
            return f"tw_set((float)*({place}))"
        return f"tw_splat_{self._dtype(node)}({place})"

    def _integer_of_row(self, node: Expression) -> str | None:
        """Return a table's entry that is the same for a whole row, as integers in all lanes; None
        if the node is no such read."""
        if not isinstance(node, Read) or self.of_row(node) is None:
            return None
        return f"tw_wide(*({self.start(node)}))" if self._dtype(node) in TABLE_TYPES else None

    def along(self, node: Expression, part: Part, first: str, bounded: bool) -> str | None:
        """Return a vector of a value along ``part`` from the C variable ``first`` on; None if the
        value does not vary along it.

        If ``bounded``, some lanes may be past the end of the part: they hold arbitrary elements.
        """
        view = self.view
        if isinstance(node, Integer):
            return self._integers_along(node.node, part, first, bounded)
        if isinstance(node, AxisValue):
            own = view.indexing.index(node) == part.index
            return f"tw_numbers(tw_ramp({first}))" if own else None
        if not isinstance(node, Read) or node not in view.places:
            return None
        if part.name not in view.places[node].offset.names:
            return None
        if self._place(node).step(part.name) is None:
            return self._gathered(node, part, first, bounded)
        dtype, step = self._dtype(node), view.step(node, part)
        if dtype in TABLE_TYPES and abs(step) > MOST_STEP:
            return self._gathered(node, part, first, bounded)
        start, left = self.start(node, part), ""
        if bounded:
            first = f"tw_least({first}, {self._last(part)})"
            left = f"{self._end(part)} - {first}"
        place = f"{start} + {first} * {step}L"
        if dtype in TABLE_TYPES:
            offsets = f"tw_ramp(0) * {step}"
            return f"tw_numbers(tw_table_{dtype}({place}, {offsets}, {left or 'TW_LANES'}))"
        if step != 1:
            return f"tw_gather_{dtype}({place}, {step}L, {left or 'TW_LANES'})"
        return f"tw_load_most_{dtype}({place}, {left})" if left else f"tw_load_{dtype}({place})"

    def _integers_along(
        self, node: Expression, part: Part, first: str, bounded: bool
    ) -> str | None:
        """Return a vector of a table's entries along ``part``, as integers; None if the node is no
        such read."""
        if not isinstance(node, Read) or self.along(node, part, first, bounded) is None:
            return None
        is_table = self._dtype(node) in TABLE_TYPES
        return self._gathered(node, part, first, bounded, "vl") if is_table else None

    def _gathered(
        self, read: Read, part: Part, first: str, bounded: bool, vector: str = "vf"
    ) -> str:
        """Return the C text of a vector of type ``vector`` that loads each lane's element by
        itself."""
        at = self.knowing({part.name: "own"})
        last = f"tw_least({first} + l, {self._last(part)})" if bounded else f"{first} + l"
        dtype, place = self._dtype(read), at.text(self._place(read))
        element = f"{self.buffers[read.name]} + {place}"
        value = f"*({element})" if dtype in TABLE_TYPES else f"tw_splat_{dtype}({element})[0]"
        loop = f"for (long l = 0; l < TW_LANES; l++) {{ const long own = {last}; x[l] = {value}; }}"
        return f"({{ {vector} x; {loop} x; }})"

    def _end(self, part: Part) -> str:
        """Return the C text of the extent of a part."""
        return self.keys if self.keys and part == self.view.key else f"{part.extent}L"

    def _last(self, part: Part) -> str:
        """Return the C text of the last point of a part."""
        is_open = self.keys and part == self.view.key
        return f"{self.keys} - 1" if is_open else f"{part.extent - 1}L"

    def start(self, read: Read, *without: Part) -> str:
        """Return the address of a row's element at the first point of the parts ``without``."""
        return f"{self.buffers[read.name]} + {self._offset(self._place(read), without)}"

    def of_batch(self, read: Read) -> str:
        """Return the address of the matrix that a product reads: that at the first row and key."""
        place, kept = self._place(read), {part.name for part in self.view.batch}
        return f"{self.buffers[read.name]} + {self.text(place.without(place.names - kept))}"

    def at_key(self, variable: str) -> Access[V]:
        """Return the access to what one key has, whose number is a C variable; no row is known."""
        batch = {part.name: self.names[part.name] for part in self.view.batch}
        return replace(self, names={**batch, self.view.key.name: variable})

    def row_bounds(self, low: str, high: str) -> list[str]:
        """Return the lines that set two variables to a row's range of visible keys: the first one,
        and the one after the last."""
        return key_bounds(self.view, self.view.bounds, low, high, self.text, self.keys)

    def block_bounds(self, low: str, high: str) -> list[str]:
        """Return the lines that declare two variables for the range of keys that any row of a block
        may see, as far as intervals of indices tell. The block has ``rows`` rows from ``first_row``
        on."""
        view = self.view
        rows = {part.name: self.names[part.name] for part in view.rows}
        found = (extreme(index, rows, most=True) for index in view.bounds)
        lines = spans("first_row", "(first_row + rows - 1)", view.rows, self.names)
        ends = [f"{end}_{name}" for name in rows.values() for end in ("low", "high")]
        access = self.knowing({end: end for end in ends})
        known = [index for index in found if index is not None]
        lines.append(f"long {low}, {high};")
        return [*lines, *key_bounds(view, known, low, high, access.text, self.keys)]

    def store(self, output: ChainedOutput, value: str, column: str, width: Part) -> str:
        """Return the line that stores a value of an output: a vector along ``width``, at the column
        in the C variable ``column``, or the one value that a row has, which may be the index of a
        key."""
        dtype = output.array.dtype
        where = f"{self.buffers[output.array.name]} + {self._offset(output.offset, (width,))}"
        if output.array.element.is_integer:
            return f"*({where}) = {value}[0];"
        if not output.wide:
            return f"tw_store_first_{dtype}({where}, {value}, 1);"
        step, left = output.offset.coefficient(width.name), f"{width.extent}L - {column}"
        if step != 1:
            return f"tw_spread_{dtype}({where} + {column} * {step}L, {step}L, {value}, {left});"
        return f"tw_store_most_{dtype}({where} + {column}, {value}, {left});"

    def _place(self, read: Read) -> Index:
        return self.view.places[read].offset

    def _offset(self, place: Index, without: tuple[Part, ...]) -> str:
        return self.text(place.without(part.name for part in without))

    def _dtype(self, read: Read) -> str:
        return self.view.program.operand[read.name].dtype


def copied_row(access: Access[V], value: Expression, part: Part, to: str, lanes: int) -> list[str]:
    """Return the lines that compute ``value`` for all points of ``part`` and store them at ``to``
    in whole vectors; ``access`` knows the row."""
    lines: list[str] = []
    row = VectorScope("g", access.of_row, lines, magnitudes=magnitudes(access.view.program))
    body: list[str] = []
    bounded = part.extent % lanes > 0
    scope = VectorScope("x", lambda node: access.along(node, part, "at", bounded), body, row)
    text = scope.text(value)
    body.append(f"tw_store_float32({to} + at, {text});")
    head = f"for (long at = 0; at < {part.extent}; at += {lanes}) {{"
    return [*lines, head, *(f"  {line}" for line in body), "}"]

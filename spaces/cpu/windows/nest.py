"""The loops of a product of placed operands: as few as can count all its points.

Neighbouring axes are merged into one loop if all arrays run through both with one stride. The array
that an operand is packed from does not count: the pixels of a packed image are one row, whatever
lies between the lines of the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.cpu.thin.blocking import THIN_ROWS
from tilewright.spaces.cpu.windows.copies.gathered import GatheredRows
from tilewright.spaces.cpu.windows.copies.ordered import OrderedCopy, ordered_copy
from tilewright.spaces.cpu.windows.copies.padded import PaddedCopy, padded_copy
from tilewright.spaces.derivation.products.loops import Loop, loops
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.derivation.products.view import Factor, Finished, PlacedProduct
from tilewright.spaces.language.tree import Read

LEFT, RIGHT, OUTPUT, PADDED = "left", "right", "output", "padded"
Key = Read | str
"""Names an array that a loop moves through: one of the words above, or a read beside the product.
"""
Turns = Loop[Key]
Copy = PaddedCopy | GatheredRows | OrderedCopy


@dataclass(frozen=True)
class Source:
    """An operand as it is read: ``offset`` is the element, in ``padded`` if it has such a copy,
    else in the operand itself. If an operand with borders is read in place, ``patched`` is the
    padded copy whose parts are made as patches where tiles need them."""

    factor: Factor
    padded: Copy | None
    offset: Index
    patched: PaddedCopy | None = None

    @property
    def dtype(self) -> str:
        """The type of its elements."""
        return self.factor.operand.dtype


@dataclass(frozen=True)
class Nest:
    """All loops; each tuple has the outermost first.

    ``products`` count independent products: the batch, and columns that are apart in memory.
    ``lines`` are the slower loops over rows; tiles are cut from the ``row`` and the ``column``
    loop. In the right operand the column loop consists of the loops ``runs``. ``depth`` has the
    order in which terms are packed.
    """

    products: tuple[Turns, ...]
    lines: tuple[Turns, ...]
    row: Turns
    column: Turns
    runs: tuple[Turns, ...]
    depth: tuple[Turns, ...]
    right_is_packed: bool

    @property
    def line_count(self) -> int:
        """The number of lines of rows in a product."""
        return prod(loop.extent for loop in self.lines)

    @property
    def product_count(self) -> int:
        """The number of independent products."""
        return prod(loop.extent for loop in self.products)

    @property
    def terms(self) -> int:
        """The number of terms of a sum."""
        return prod(loop.extent for loop in self.depth)

    @property
    def terms_a_turn(self) -> int:
        """The number of terms in one turn of the depth's outermost loop; blocks hold whole
        turns."""
        return self.terms // self.depth[0].extent

    @cached_property
    def multiplied(self) -> tuple[Turns, ...]:
        """The loops over the depth that a tile runs: neighbours merged where its operands allow
        it."""
        left = [key for key in (LEFT, PADDED) if key in self.row.strides]
        return merged(self.depth, left if self.right_is_packed else [*left, RIGHT])

    @cached_property
    def packed(self) -> tuple[Turns, ...]:
        """The loops over the depth that packing runs: neighbours merged where the right operand
        allows it."""
        return merged(self.depth, [RIGHT])


@dataclass(frozen=True)
class Windows:
    """A product with its operands as the code of this folder reads them."""

    product: PlacedProduct
    left: Source
    right: Source
    _nests: dict[bool, Nest] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def places(self) -> dict[Key, Index]:
        """The offset of the element that each array has at a point of all parts."""
        view = self.product
        found: dict[Key, Index] = {LEFT: self.left.offset, RIGHT: self.right.offset}
        if self.left.patched:
            found[PADDED] = self.left.patched.offset
        found |= {key: each.offset for key, each in written(view).items()}
        return found | {read: place.offset for read, place in view.places.items()}

    @property
    def keeps_sums(self) -> bool:
        """True if the first output may hold unfinished sums: its columns are adjacent floats."""
        column = self.nest(True).column
        together = column.extent == 1 or column.strides[OUTPUT] == 1
        return together and self.product.output.dtype == "float32"

    @property
    def most_rows(self) -> int:
        """The rows of a line; of the longest line where rows come in segments."""
        segments = self.product.segments
        return int(segments.drawn.max()) if segments else self.nest(True).row.extent

    @property
    def copies(self) -> tuple[Copy, ...]:
        """The copies that must be made before the product, the left operand's first."""
        return tuple(s.padded for s in (self.left, self.right) if s.padded)

    @cached_property
    def has_vectors(self) -> bool:
        """True if the right operand has adjacent columns, so that it needs no packing."""
        return self.nest(False).column.strides[RIGHT] == 1

    @cached_property
    def has_dots(self) -> bool:
        """True if lanes may run along the depth, so that the right operand needs no packing either.

        Both operands have adjacent terms then, and rows come in segments of so few rows that they
        do not repay packed panels.
        """
        segments = self.product.segments
        if segments is None or self.has_vectors or segments.drawn.mean() > THIN_ROWS:
            return False
        multiplied = self.nest(False).multiplied
        sides = [multiplied[-1].strides[key] for key in (LEFT, RIGHT)]
        return len(multiplied) == 1 and sides == [1, 1]

    def nest(self, right_is_packed: bool) -> Nest:
        """Return the loops for a right operand that is packed, or is not."""
        if right_is_packed not in self._nests:
            self._nests[right_is_packed] = self._nest(right_is_packed)
        return self._nests[right_is_packed]

    def _nest(self, right_is_packed: bool) -> Nest:
        view = self.product
        *lines, row = self._loops(view.rows, tuple(self.places))
        seen = tuple(key for key in self.places if key != RIGHT or not right_is_packed)
        columns = self._loops(view.columns, tuple(self.places))
        column = merged(columns, seen)[-1]
        runs = list(columns)
        while prod(loop.extent for loop in runs) > column.extent:
            runs.pop(0)
        apart = columns[: len(columns) - len(runs)]
        keys = [key for key in (LEFT, RIGHT, PADDED) if key in self.places]
        depth = self._loops(view.depth, keys)
        if not right_is_packed:
            depth = tuple(sorted(depth, key=lambda loop: loop.extent))
        return Nest(
            products=(*self._loops(view.batch, tuple(self.places)), *apart),
            lines=tuple(lines),
            row=row,
            column=column,
            runs=tuple(runs),
            depth=depth,
            right_is_packed=right_is_packed,
        )

    def _loops(self, parts: Sequence[Part], keys: Sequence[Key]) -> tuple[Turns, ...]:
        none: Turns = Loop(1, dict.fromkeys(self.places, 0))
        return tuple(loops(parts, {key: self.places[key] for key in keys})) or (none,)


def windows(product: PlacedProduct) -> Windows:
    """Return the product with its operands in place, or in the copies that they need."""
    copy = _left_copy(product)
    left = Source(product.left, copy, copy.offset if copy else product.left.place.offset)
    padded = padded_copy(product.right)
    right = padded.offset if padded else product.right.place.offset
    return Windows(product, left, Source(product.right, padded, right))


def written(product: PlacedProduct) -> dict[Key, Finished]:
    """Return the outputs of a product by their keys. Those after the first have keys that are no
    read of an element."""
    first, *further = product.finished
    return {OUTPUT: first} | {Read(each.output.name, ()): each for each in further}


def _left_copy(product: PlacedProduct) -> Copy | None:
    """Return the copy that the left operand's rows are read from: of rows that a table chooses,
    with borders, or in the order of rows and depth. Return None if none is needed."""
    left = product.left
    if left.gather:
        return GatheredRows(left.operand, left.gather, product.rows[0], product.depth)
    return padded_copy(left) or ordered_copy(product)


def merged(nest: Sequence[Turns], keys: Sequence[Key]) -> tuple[Turns, ...]:
    """Merge neighbouring loops if the arrays of ``keys`` run through both with one stride."""
    found: list[Turns] = []
    for loop in nest:
        extent = loop.extent
        if found and all(found[-1].strides[k] == loop.strides[k] * extent for k in keys):
            extent *= found.pop().extent
        found.append(Loop(extent, loop.strides))
    return tuple(found)


def offset(nest: Sequence[Turns], number: Index, key: Key) -> Index:
    """Return the offset of an array in turn ``number`` of all loops together."""
    result = Index()
    for loop in reversed(nest):
        result += number % loop.extent * loop.strides[key]
        number = number // loop.extent
    return result

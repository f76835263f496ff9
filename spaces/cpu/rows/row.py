"""The C of rows: one row at a time with its columns in the lanes of vectors, or several rows at a
time with a row in each lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.cpu.abi import LINE_BYTES
from tilewright.spaces.cpu.rows.access import RowAccess
from tilewright.spaces.cpu.rows.columns import Vector, Walk
from tilewright.spaces.cpu.rows.held import Held
from tilewright.spaces.cpu.rows.reducing import Reducing
from tilewright.spaces.cpu.rows.scopes import VectorScope
from tilewright.spaces.derivation.rows.column_sums import SummedRows
from tilewright.spaces.derivation.rows.passes import Pass
from tilewright.spaces.derivation.rows.view import RowOutput
from tilewright.spaces.derivation.scopes import Integer, Scope
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.tree import Expression, Read


@dataclass
class Lanes:
    """The states of one row, or of the rows that are the lanes of one vector; one for each
    reduction.

    That vector is ``shift`` rows after the first row, and ``left`` rows remain from the first one
    on. ``results`` has the C text of each reduction, and ``places`` the C variables of the places
    that ``argmax`` and ``argmin`` found.
    """

    number: int
    row: Scope
    shift: int = 0
    left: str | None = None
    results: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)


@dataclass
class RowBody:
    """Adds the passes, the outputs of each element and the outputs of the row to ``lines``.

    ``walk`` goes along the columns. Walks are numbered, passes first, then the outputs; the walk
    number ``fetching`` also prefetches what the next row reads. If lanes are rows, ``vectors``
    vectors of them are in flight, and ``left`` is the number of rows from the first one on, None if
    each lane has one.
    """

    access: RowAccess
    walk: Walk
    held: Held | None
    streaming: bool
    fetching: int | None
    lines: list[str]
    vectors: int = 1
    left: str | None = None

    def __post_init__(self) -> None:
        self.lanes = [self._lanes(number) for number in range(self.vectors)]

    def write(self, passes: Sequence[Pass]) -> None:
        """Add the lines of all passes in order, and then those of the outputs."""
        stored = False
        outputs = self.rows.outputs
        by_element = [o for o in outputs if o.place.by_column]
        for number, pass_ in enumerate(passes):
            stores = not stored and self._computes_held(pass_)
            self._pass(number, pass_, stores, number == self.fetching)
            stored = stored or stores
        if by_element:
            self._outputs(by_element, len(passes) == self.fetching)
        for lanes in self.lanes:
            for output in outputs:
                if not output.place.by_column:
                    self._row_output(lanes, output)

    @property
    def rows(self) -> SummedRows:
        """The rows that are computed."""
        return self.access.rows

    def _lanes(self, number: int) -> Lanes:
        known = magnitudes(self.rows.program)
        row = VectorScope(f"g{number}_", lambda _: None, self.lines, magnitudes=known)
        lanes = Lanes(number, row)
        lanes.shift = number * self.access.width
        lanes.left = self.left
        lanes.row.leaf = lambda node: self._row_leaf(lanes, node)
        return lanes

    def _of(self, lanes: Lanes, vectors: Sequence[Vector]) -> list[Vector]:
        """Return the vectors of some columns for these lanes."""
        if not self.access.lanes_are_rows:
            return list(vectors)
        return [Vector(vector.columns, lanes.left, lanes.shift) for vector in vectors]

    # -- loops -------------------------------------------------------------------------------

    def _pass(self, number: int, pass_: Pass, stores: bool, fetches: bool) -> None:
        all_ = [self._reducing(number, pass_, lanes, stores, fetches) for lanes in self.lanes]

        def tile(first: bool) -> Callable[[Sequence[Vector]], list[str]]:
            return lambda vectors: [
                line
                for lanes, reducing in zip(self.lanes, all_, strict=True)
                for line in reducing.tile(self._of(lanes, vectors), first)
            ]

        corrects = any(r.correction for r in pass_)
        loop = self.walk.first(tile(first=True)) if corrects else []
        loop += self.walk.lines(tile(first=False), after_first=corrects)
        self.lines += [line for reducing in all_ for line in reducing.declarations()]
        self.lines += loop
        for lanes, reducing in zip(self.lanes, all_, strict=True):
            lanes.results |= reducing.results()
            found = [r.name for r in pass_ if r.name in self.rows.ranks]
            lanes.places |= {name: reducing.place(name) for name in found}

    def _reducing(
        self, number: int, pass_: Pass, lanes: Lanes, stores: bool, fetches: bool
    ) -> Reducing:
        def also(vectors: Sequence[Vector], scopes: Sequence[Scope]) -> list[str]:
            lines = self._fetches(vectors) if fetches else []
            return lines + (list(map(self._hold, scopes, vectors)) if stores else [])

        return Reducing(
            tag=f"{number}_{lanes.number}" if lanes.number else f"{number}",
            pass_=pass_,
            short=None if self.access.lanes_are_rows else self.walk.short,
            across=not self.access.lanes_are_rows,
            turns=self.walk.turns,
            row=lanes.row,
            vector_scope=lambda u, vector, around: self._vector_scope(
                u + lanes.number, vector, around, around.lines
            ),
            also=also,
            ranks={r.name: self.rows.ranks[r.name] for r in pass_ if r.name in self.rows.ranks},
        )

    def _outputs(self, outputs: Sequence[RowOutput], fetches: bool) -> None:
        def tile(vectors: Sequence[Vector]) -> list[str]:
            lines: list[str] = []
            for lanes in self.lanes:
                for u, vector in enumerate(self._of(lanes, vectors)):
                    scope = self._vector_scope(
                        u + lanes.number, vector, lanes.row, lines, loads_held=True
                    )
                    self._output_vector(outputs, vector, scope)
            return lines + (self._fetches(vectors) if fetches else [])

        loop = self.walk.lines(tile)
        self.lines += loop

    def _output_vector(self, outputs: Sequence[RowOutput], vector: Vector, scope: Scope) -> None:
        if self.held:
            scope.text(self.held.value)  # before an output takes its place
        for output in outputs:
            value = scope.text(output.value)
            if output.array.name in self.rows.summed:
                scope.lines.append(self.access.add(output.place, value, vector))
            else:
                scope.lines.append(self.access.store(output.place, value, vector, self.streaming))

    def _row_output(self, lanes: Lanes, output: RowOutput) -> None:
        start = tuple(Index() for _ in self.rows.columns)
        vector = Vector(start, lanes.left, lanes.shift)
        value = output.value
        if isinstance(value, Read) and value.name in lanes.places:
            self.lines += self.access.store_places(output.place, lanes.places[value.name], vector)
        elif self.access.lanes_are_rows:
            text = lanes.row.text(value)
            self.lines.append(self.access.store(output.place, text, vector, streaming=False))
        else:
            self.lines.append(self.access.store_one(output.place, lanes.row.text(value)))

    def _fetches(self, vectors: Sequence[Vector]) -> list[str]:
        """Return a prefetch for each cache line of the next row's elements."""
        places = dict.fromkeys(place for place in self.rows.places.values() if place.by_column)
        step = LINE_BYTES // (self.access.width * dtype(self.access.element).bytes) or 1
        return [
            self.access.fetch(place, vector)
            for place in places
            if place.columns[-1] == 1 and place.rows[-1]
            for vector in vectors[::step]
            if vector.left is None
        ]

    # -- what is held ------------------------------------------------------------------------

    def _computes_held(self, pass_: Pass) -> bool:
        held = self.held
        return held is not None and any(held.value in set(r.element.walk()) for r in pass_)

    def _hold(self, scope: Scope, vector: Vector) -> str:
        assert self.held is not None
        where, value = self._held_at(vector), scope.text(self.held.value)
        if vector.left:
            return f"tw_store_most_{self.access.element}({where}, {value}, {vector.left});"
        return f"tw_store_{self.access.element}({where}, {value});"

    def _load_held(self, vector: Vector) -> str:
        where, element = self._held_at(vector), self.access.element
        if vector.left:
            return f"tw_load_most_{element}({where}, {vector.left})"
        return f"tw_load_{element}({where})"

    def _held_at(self, vector: Vector) -> str:
        assert self.held is not None
        place = self.held.place
        if place:
            return f"{self.access.pointer(place)} + {vector.offset(place.columns)}"
        total = Index()
        for position, span in zip(vector.columns, self.rows.columns, strict=True):
            total = total * span.extent + position
        return f"held + {total}"

    # -- leaves ------------------------------------------------------------------------------

    def _row_leaf(self, lanes: Lanes, node: Expression) -> str | None:
        if isinstance(node, Integer):
            return self._place(lanes, node.node)
        if found := self.access.read_once(node, lanes.shift, lanes.left):
            return found
        return lanes.results.get(node.name) if isinstance(node, Read) else None

    def _place(self, lanes: Lanes, node: Expression) -> str | None:
        """Return the place that an ``argmax`` or ``argmin`` found, as integers; None for other
        nodes."""
        place = lanes.places.get(node.name) if isinstance(node, Read) else None
        return place and f"{'tw_widened' if self.access.lanes_are_rows else 'tw_wide'}({place})"

    def _vector_scope(
        self, u: int, vector: Vector, around: Scope, lines: list[str], loads_held: bool = False
    ) -> Scope:
        held = self.held.value if self.held and loads_held else None

        def leaf(node: Expression) -> str | None:
            if node == held:
                return self._load_held(vector)
            return self.access.read(node, vector)

        return VectorScope(f"x{u}_", leaf, lines, around)

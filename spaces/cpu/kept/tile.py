"""The C of one tile: vectors of outputs in registers, and the elements of their windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.kept.held import Held
from tilewright.spaces.cpu.rows.scopes import VectorScope
from tilewright.spaces.cpu.vectors import long_sums
from tilewright.spaces.cpu.vectors.reducers import factors, identity, joined
from tilewright.spaces.derivation.kept.tiles import Ranges, moved, reach
from tilewright.spaces.derivation.kept.view import Bounded, KeptView
from tilewright.spaces.derivation.maps.nest import Loop
from tilewright.spaces.derivation.maps.view import Access
from tilewright.spaces.derivation.scopes import Scope
from tilewright.spaces.kernels.text import C
from tilewright.spaces.language.tree import Expression, Read

By = Mapping[str, int]
"""Turns from the tile's first one on, by the name of a loop; for a loop that is written out, the
turn."""
Points = list[tuple[tuple[int, int], By]]
"""Pairs of an accumulator's place and a tap."""


@dataclass(frozen=True)
class Span:
    """The lanes of a vector in which a read is within its array: from ``low`` to before
    ``high``."""

    low: str
    high: str


@dataclass
class Tile:
    """A tile of outputs: ``turns`` turns of the loop ``across``, if there is one, and ``columns``
    lanes, in vectors of ``lanes``.

    ``ranges`` has the turns of each loop that the code is for; C variables are named like the
    loops, but the taps in ``written_out`` have none. ``pointers`` are the C variables of arrays,
    and ``held`` the transposed operands.
    """

    view: KeptView
    lanes: int
    across: Loop | None
    turns: int
    columns: int
    ranges: Ranges
    written_out: Sequence[Loop]
    pointers: Mapping[str, str]
    held: Mapping[Read, Held]
    scopes: int = field(default=0)

    @property
    def vectors(self) -> int:
        """The number of vectors side by side."""
        return ceil_div(self.columns, self.lanes)

    @property
    def places(self) -> list[tuple[int, int]]:
        """The turn and the vector of each accumulator."""
        return list(product(range(self.turns), range(self.vectors)))

    def state(self, place: tuple[int, int]) -> str:
        """Return the C variable of an accumulator."""
        return f"s{place[0]}_{place[1]}"

    def used(self, vector: int) -> int:
        """Return the number of lanes of a vector that have an output."""
        return min(self.lanes, self.columns - vector * self.lanes)

    def by(self, place: tuple[int, int]) -> dict[str, int]:
        """Return the turns of an accumulator from the tile's first ones on, by loop."""
        found = {self.view.lane.name: place[1] * self.lanes}
        return found | ({self.across.name: place[0]} if self.across else {})

    def declared(self) -> list[str]:
        """Return the declarations of the accumulators, with the reducer's identity."""
        start = identity(self.view.reducer)
        return [f"vf {self.state(place)} = {start};" for place in self.places]

    # -- long sums ---------------------------------------------------------------------------

    @property
    def _long(self) -> list[str]:
        """The accumulators that are added up in blocks."""
        terms = prod(loop.extent for loop in self.view.taps)
        is_long = self.view.reducer == "sum" and terms > long_sums.BLOCK
        return list(map(self.state, self.places)) if is_long else []

    def in_blocks(self, taps: Sequence[str]) -> list[str]:
        """Return the lines of all taps, with those that long sums need before and behind them."""
        if not self._long:
            return list(taps)
        return [*long_sums.declared(self._long, "turn"), *taps, *long_sums.joined(self._long)]

    def turn_ends(self) -> list[str]:
        """Return the lines that end a turn of the loops that are not written out."""
        turns = max(1, long_sums.BLOCK // prod(loop.extent for loop in self.written_out))
        return long_sums.turn_ends(self._long, "turn", turns) if self._long else []

    # -- terms -------------------------------------------------------------------------------

    def terms(self) -> list[str]:
        """Return the lines of the taps that are written out, at one turn of the others.

        Terms that no test decides come first, then groups of terms that the same tests decide, and
        last those that never count.
        """
        groups: dict[tuple[str, ...], Points] = {}
        never: Points = []
        for place, by in self._points():
            tests = self._tests(by, place[1])
            (never if tests is None else groups.setdefault(tests, [])).append((place, by))
        lines: list[str] = []
        for tests in sorted(groups, key=len):
            inner = self._group(groups[tests])
            lines += C.when(" && ".join(tests), inner) if tests else C.block(*inner)
            if tests and self._multiplies:
                lines += ["else {", *indented(self._group(groups[tests], outside=True)), "}"]
        if never and self._multiplies:
            lines += C.block(*self._group(never, outside=True))
        return lines

    @property
    def _multiplies(self) -> bool:
        """True if a value outside of an array is multiplied by others, some of which may be
        infinite: then no term is left out."""
        return self.view.element not in self.view.neutral_outside

    @cached_property
    def _silencing(self) -> frozenset[Read]:
        """The reads whose tests decide about their whole term; none if there are several such
        factors."""
        found = self.view.neutral_outside
        return found if len(found) == 1 else frozenset()

    def _points(self) -> Iterator[tuple[tuple[int, int], By]]:
        taps = [loop.name for loop in self.written_out]
        for turns in product(*(range(loop.extent) for loop in self.written_out)):
            for place in self.places:
                yield place, {**self.by(place), **dict(zip(taps, turns, strict=True))}

    def _group(self, points: Points, outside: bool = False) -> list[str]:
        """Return the lines of some terms whose silencing reads are all within their arrays, or all
        ``outside``."""
        lines: list[str] = []
        loaded: dict[str, str] = {}
        for place, by in points:
            scope = self._scope(by, place[1], lines, loaded, self._silencing, outside=outside)
            lines.append(f"{self.state(place)} = {self._joined(self.state(place), scope)};")
        return lines

    def _joined(self, state: str, scope: Scope) -> str:
        found = factors(self.view.reducer, self.view.element)
        if found:
            left, right = map(scope.text, found)
            return f"tw_fma({left}, {right}, {state})"
        return joined(self.view.reducer, state, scope.text(self.view.element))

    def _tests(self, by: By, vector: int) -> tuple[str, ...] | None:
        """Return the tests that decide whether a term counts; None if it never does."""
        tests: dict[str, None] = {}
        for read in self._silencing:
            found = self._bounds(self.view.reads[read], by, vector)
            if found is None:
                return None
            tests |= dict.fromkeys(found[0])
        return tuple(sorted(tests))

    # -- outputs -----------------------------------------------------------------------------

    def outputs(self, streaming: bool) -> list[str]:
        """Return the lines that compute and store the outputs of the accumulators."""
        lines: list[str] = []
        loaded: dict[str, str] = {}
        for place in self.places:
            scope = self._scope(self.by(place), place[1], lines, loaded, frozenset(), place)
            for output, value in zip(self.view.outputs, self.view.values, strict=True):
                text = scope.text(value)
                lines.append(self._store(output, self.by(place), text, place[1], streaming))
        return C.block(*lines)

    def _store(self, output: Access, by: By, value: str, vector: int, streaming: bool) -> str:
        dtype, where = output.array.dtype, self.place(output, by)
        if self.used(vector) < self.lanes:
            return f"tw_store_most_{dtype}({where}, {value}, {self.used(vector)});"
        return f"tw_{'stream' if streaming else 'store'}_{dtype}({where}, {value});"

    # -- reads -------------------------------------------------------------------------------

    def _scope(
        self,
        by: By,
        vector: int,
        lines: list[str],
        loaded: dict[str, str],
        tested: frozenset[Read],
        place: tuple[int, int] | None = None,
        outside: bool = False,
    ) -> Scope:
        """Return a scope for the expressions of a vector.

        Reads in ``tested`` need no test of their own: all of them are within their arrays, or all
        ``outside``. With a ``place``, its accumulator can be read too.
        """

        def leaf(node: Expression) -> str | None:
            if not isinstance(node, Read):
                return None
            if node.name == self.view.state:
                return self.state(place) if place else None
            if outside and node in tested:
                return f"tw_set({_number(self.view.reads[node].outside)})"
            if node in self.held:
                tap = moved(self.held[node].index, by, self._constants)
                text = self.held[node].load(tap, vector)
            else:
                text = self._load(self.view.reads[node], by, vector, node in tested)
            if text not in loaded:
                loaded[text] = f"v{self.scopes}_{len(loaded)}"
                lines.append(f"const vf {loaded[text]} = {text};")
            return loaded[text]

        self.scopes += 1
        return VectorScope(f"x{self.scopes}_", leaf, lines)

    def _load(self, access: Bounded, by: By, vector: int, tested: bool) -> str:
        """Return the C text of a vector that is read, with the value outside where it leaves its
        array."""
        dtype, where = access.array.dtype, self.place(access, by)
        outside = f"tw_set({_number(access.outside)})"
        found = self._bounds(access, by, vector)
        if found is None:
            return outside
        tests, span = found
        text = self._vector(dtype, where, access.step(self.view.lane.name) or 0, vector)
        if span:
            step = access.step(self.view.lane.name)
            text = f"tw_between_{dtype}({where}, {step}, {span.low}, {span.high}, {outside})"
        return text if tested or not tests else f"({' && '.join(tests)} ? {text} : {outside})"

    def _vector(self, dtype: str, where: str, step: int, vector: int) -> str:
        used = self.used(vector)
        if step == 0:
            return f"tw_splat_{dtype}({where})"
        if step == 1 and used < self.lanes:
            return f"tw_load_most_{dtype}({where}, {used})"
        if step == 1:
            return f"tw_load_{dtype}({where})"
        if step == 2 and used == self.lanes:
            return f"tw_skip_{dtype}({where})"
        if step == 2:
            return f"tw_between_{dtype}({where}, 2, 0, {used}, tw_set(0.0f))"
        return f"tw_gather_{dtype}({where}, {step}, {used})"

    def _bounds(
        self, access: Bounded, by: By, vector: int
    ) -> tuple[tuple[str, ...], Span | None] | None:
        """Return the tests that decide whether a vector is within an array, and the lanes that are,
        if some are and others not.

        Return None if no lane ever is.
        """
        tests: list[str] = []
        spans: list[tuple[Index, int, int]] = []
        for bound in access.bounds:
            index = moved(bound.index, by, self._constants)
            low, high = reach(index, self.ranges)
            step = index.coefficient(self.view.lane.name)
            last = high + step * (self.used(vector) - 1)
            if last < 0 or low >= bound.extent:
                return None
            if step == 0:
                tests += [f"{index} >= 0"] * (low < 0)
                tests += [f"{index} < {bound.extent}"] * (last >= bound.extent)
            elif low < 0 or last >= bound.extent:
                spans.append((index, step, bound.extent))
        return tuple(tests), self._span(spans, self.used(vector)) if spans else None

    def _span(self, bounds: Sequence[tuple[Index, int, int]], used: int) -> Span:
        low, high = "0", str(used)
        for index, step, extent in bounds:
            low = f"tw_most({low}, tw_lanes_before(-{index}, {step}))"
            high = f"tw_least({high}, tw_lanes_before({extent} - {index}, {step}))"
        return Span(low, high)

    # -- numbers -----------------------------------------------------------------------------

    @property
    def _constants(self) -> frozenset[str]:
        return frozenset(loop.name for loop in self.written_out)

    def place(self, access: Access, by: By) -> str:
        """Return the address of an access, in C."""
        offset = moved(access.offset, by, self._constants)
        return f"{self.pointers[access.array.name]} + {offset}"


def _number(value: float) -> str:
    if value in (float("inf"), float("-inf")):
        return f"{'-' if value < 0 else ''}__builtin_inff()"
    return f"{value!r}f"

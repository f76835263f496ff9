"""The C of one loop nest: the value of one element of a stage, and where it is written.

A target says how elements of arrays are loaded and stored; all else is C that is CUDA C++ too. The
variable ``n`` counts the elements of the stage, ``r`` the terms of its reduction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.program import Stage
from tilewright.spaces.language.tree import Expression, Read
from tilewright.spaces.loops.numbers import FORMATS, written
from tilewright.spaces.loops.plan import Nest, Plan
from tilewright.spaces.loops.ranges import limits, range_of_terms
from tilewright.spaces.loops.scalars import Scalars, Value

BLOCK = 32
"""Terms of a sum that are added up before they are joined with all others, whose rounding errors
are added up, too (Neumaier 1974)."""
TYPES = {True: "i64", False: "double"}
"""C types of whole numbers and of others."""
KINDS = {True: "whole", False: "real"}
"""Says how the names of their functions begin."""
STARTS = {
    ("sum", True): "0",
    ("prod", True): "1",
    ("max", True): "(i64)(1ull << 63)",
    ("min", True): "~(i64)(1ull << 63)",
    ("sum", False): "0.0",
    ("prod", False): "1.0",
}
"""The value of a reduction over nothing, where it is no infinity."""
JOINS = {"sum": "plus", "prod": "times"}
"""Functions of two whole numbers that join two values, where they are not called as the reducer."""
BEFORE = {"argmax": "above", "argmin": "below"}
"""Functions that say whether an element comes before another one."""


@dataclass(frozen=True)
class ElementAccess:
    """Says how a target loads and stores elements: C for a place, which is a C expression. The bits
    of numbers in :data:`~spaces.loops.numbers.FORMATS` are loaded and stored as whole numbers."""

    load: Callable[[str, str], str]
    store: Callable[[str, str, str], str]
    infinity: str


@dataclass(frozen=True)
class NestCode:
    """Writes one nest of a plan; ``arrays`` has the variable of each operand and output, and of
    each array of the workspace under its stage's name with a ``.`` before it."""

    plan: Plan
    nest: Nest
    arrays: Mapping[str, str]
    access: ElementAccess

    @property
    def stage(self) -> Stage:
        """The stage that is computed."""
        return self.nest.stage

    @property
    def whole(self) -> bool:
        """Tell whether the stage holds integers."""
        return self.plan.whole[self.stage.name]

    @cached_property
    def _body(self) -> tuple[list[str], Value]:
        return self.expression(self.stage.body)

    @property
    def body(self) -> Value:
        """The reduced value, or the stage's value if nothing is reduced."""
        return self._body[1]

    @property
    def is_place(self) -> bool:
        """Tell whether the reduction gives a place."""
        return self.stage.reducer in BEFORE

    @property
    def count(self) -> int:
        """Elements of the stage."""
        return self.plan.points(self.stage.axes)

    @property
    def terms(self) -> int:
        """Terms of each element."""
        return self.plan.points(self.stage.over)

    # -- where the loops are -------------------------------------------------------------------

    def _axes(self, axes: Sequence[str], flat: str) -> list[str]:
        """Return the variables of some axes, of a number that counts their points, the last the
        fastest."""
        lines, step = [], 1
        for place, axis in enumerate(reversed(axes), 1):
            extent = self.plan.program.extent[axis]
            value = flat if step == 1 else f"{flat} / {step}"
            if place < len(axes):
                value = f"{value} % {extent}"
            lines.append(f"const i64 {self._variables[axis]} = {value};")
            step *= extent
        return lines

    @cached_property
    def _variables(self) -> Mapping[str, str]:
        return {axis: f"i{n}" for n, (axis, _) in enumerate(self.plan.program.extents)}

    def at_element(self) -> list[str]:
        """Return the variables of the axes that the stage keeps."""
        return self._axes(self.stage.axes, "n")

    # -- the value -----------------------------------------------------------------------------

    def value(self) -> list[str]:
        """Return ``value`` of a stage that reduces nothing."""
        lines, body = self._body
        return [*lines, f"const {TYPES[self.whole]} value = {body};"]

    def reduction(self, first: str, step: str) -> list[str]:
        """Return ``value`` of each ``step``-th term from the ``first`` on, and its ``place``, if
        there is any."""
        found = range_of_terms(self.plan.program, self.stage)
        limited, end = list[str](), str(self.terms)
        if found is not None:
            row = self._variables[found.row]
            limited = limits(self.plan.program, self.stage, found, row, self._entry_of(found.table))
            first, end = "low" if first == "0" else f"low + {first}", "high"
        if not self._is_long_sum:
            return [*limited, *self._start(), *self._loop(first, end, step)]
        block = BLOCK if step == "1" else f"{BLOCK} * {step}"
        return [
            *limited,
            "double sum = 0.0, lost = 0.0;",
            f"for (i64 begin = {first}; begin < {end}; begin += {block}) {{",
            f"  const i64 end = tw_whole_min(begin + {block}, {end});",
            "  double block = 0.0;",
            *indented(self._loop("begin", "end", step)),
            "  tw_real_add(&sum, &lost, block);",
            "}",
            "double value = tw_real_total(sum, lost);",
        ]

    def _entry_of(self, table: str) -> Callable[[str], str]:
        """Return what writes the entry of a table at a place."""
        array = self.plan.array(table)
        start = self.arrays[table]
        return lambda at: self._loaded(array.dtype, f"{start} + ({at})", True).text

    def _loop(self, first: str, end: str, step: str) -> list[str]:
        """Return the loop over some terms, those that conditions hide left out."""
        body = self._axes(self.stage.over, "r")
        for condition in self.plan.program.bounding(self.stage):
            lines, holds = self.expression(condition)
            body += [*lines, f"if (!{holds}) continue;"]
        head = f"for (i64 r = {first}; r < {end}; r += {step}) {{"
        return [head, *indented([*body, *self._term()]), "}"]

    def _start(self) -> list[str]:
        kind = self.body.whole
        if self.is_place:
            return [f"{TYPES[kind]} value = 0;", "i64 place = -1;"]
        return [f"{TYPES[kind]} value = {self.identity};"]

    def _term(self) -> list[str]:
        lines, body = self._body
        if self.is_place:
            term = f"const {TYPES[body.whole]} term = {body};"
            return [*lines, term, *self.joined("term", "r")]
        if self._is_long_sum:
            return [*lines, f"block += {body};"]
        return [*lines, *self.joined(str(body), "")]

    @property
    def _is_long_sum(self) -> bool:
        return self.stage.reducer == "sum" and not self.body.whole

    @property
    def identity(self) -> str:
        """C expression: what the reduction is of nothing."""
        reducer, kind = str(self.stage.reducer), self.body.whole
        infinite = REDUCERS[reducer].identity > 0
        return STARTS.get((reducer, kind)) or ("" if infinite else "-") + self.access.infinity

    def joined(self, other: str, place: str) -> list[str]:
        """Return ``value``, and its ``place``, joined with another value and its place."""
        reducer, kind = str(self.stage.reducer), KINDS[self.body.whole]
        if self.is_place:
            before = f"tw_{kind}_{BEFORE[reducer]}"
            equal = f"(!{before}(value, {other}) && {place} < place)"
            better = f"place < 0 || {before}({other}, value) || {equal}"
            return [f"if ({better}) {{ value = {other}; place = {place}; }}"]
        if reducer in ("max", "min") or self.body.whole:
            return [f"value = tw_{kind}_{JOINS.get(reducer, reducer)}(value, {other});"]
        return [f"value {'+' if reducer == 'sum' else '*'}= {other};"]

    # -- what is written -----------------------------------------------------------------------

    def stores(self) -> Iterator[str]:
        """C statements that write the value."""
        value = Value("value", self.whole)
        if self.is_place:
            value = Value("(place < 0 ? 0 : place)", True)
        if self.nest.kept:
            kept = self.arrays[f".{self.stage.name}"]
            yield self.access.store(TYPES[self.whole], f"{kept} + n", value.text)
        if self.nest.output:
            array = self.nest.output
            strides = zip(self.stage.axes, array.strides, strict=True)
            terms = [f"{self._variables[axis]} * {step}" for axis, step in strides]
            place = " + ".join([self.arrays[array.name], *terms])
            yield self._store(array.dtype, place, value)

    def _store(self, kind: str, place: str, value: Value) -> str:
        return self.access.store(kind, place, written(value.text, value.whole, kind))

    # -- expressions ---------------------------------------------------------------------------

    def expression(self, node: Expression) -> tuple[list[str], Value]:
        """Return an expression at the variables of all axes, and lines before it: variables for
        indices that may leave their arrays, which are needed twice."""
        lines: list[str] = []
        return lines, self._written(node, lines)

    def _written(self, node: Expression, lines: list[str]) -> Value:
        def known(inner: Expression) -> Value | None:
            return self._entry(inner, lines) if isinstance(inner, Read) else None

        return node.fold(self._scalars, known)

    @cached_property
    def _scalars(self) -> Scalars:
        return Scalars(self._variables, self.access.infinity)

    @cached_property
    def _declared(self) -> list[str]:
        """The indices that have variables."""
        return []

    def _variable(self, index: str, lines: list[str]) -> str:
        """Return a variable that has the value of an index."""
        self._declared.append(index)
        name = f"k{len(self._declared)}"
        lines.append(f"const i64 {name} = {index};")
        return name

    def _entry(self, read: Read, lines: list[str]) -> Value:
        """Return an entry. Indices from tables are kept within the array, whatever these hold."""
        array, whole = self.plan.array(read.name), self.plan.whole[read.name]
        indices = [self._written(index, lines).text for index in read.indices]
        if read.outside is not None:
            indices = [self._variable(index, lines) for index in indices]
        within = [
            f"tw_whole_inside({index}, {extent})"
            for index, extent in zip(indices, array.shape, strict=True)
        ]
        terms = [
            f"{f'tw_whole_within({text}, {extent})' if index.reads else text} * {step}"
            for index, text, extent, step in zip(
                read.indices, indices, array.shape, array.strides, strict=True
            )
        ]
        is_stage = read.name in self.plan.program.stage
        variable = self.arrays[f".{read.name}" if is_stage else read.name]
        place = " + ".join([variable, *terms])
        found = self._loaded(TYPES[whole] if is_stage else array.dtype, place, whole)
        if read.outside is None:
            return found
        inside = Value(f"({' && '.join(within)})", True)
        return self._scalars.select(inside, found, self._scalars.number(read.outside))

    def _loaded(self, kind: str, place: str, whole: bool) -> Value:
        loaded = self.access.load(kind, place)
        if kind in FORMATS:
            return Value(FORMATS[kind].decoded(loaded), False)
        return Value(f"(({TYPES[whole]}){loaded})", whole)

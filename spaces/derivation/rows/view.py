"""A program as rows: what templates of any target read of chains of reductions and of maps.

A point of a program is a row and a column. Reductions go along rows, over all columns, and what
they give is the same along a row; a program without any is a map. Kept axes and reduced axes may be
several, and those that lie behind each other in every array count as one, a span.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import prod
from typing import Any

from tilewright.spaces.derivation.chains.shifting import shifted
from tilewright.spaces.derivation.rows.addresses import (
    RowAddress,
    Span,
    Steps,
    from_slowest,
    spans,
    steps_of_output,
    steps_of_rank,
    steps_of_read,
    uses_of_axes,
)
from tilewright.spaces.derivation.rows.passes import (
    Expander,
    Pass,
    argument_axes,
    counting,
    expressions,
    online_passes,
    plain_passes,
    reductions,
)
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Output, Program
from tilewright.spaces.language.tree import AxisValue, Expression, Read


@dataclass(frozen=True)
class RowOutput:
    """One output: its value at a point, of operands and of final results, and where it is written.

    It has a value for each element if ``place.by_column``, else one for each row.
    """

    array: Output
    value: Expression
    place: RowAddress


@dataclass(frozen=True)
class Rows:
    """A program whose points are rows and columns.

    ``rows`` and ``columns`` are spans, the last the fastest in memory; there is at least one each.
    ``online`` are as few passes as derived corrections allow, ``plain`` is a pass for each
    reduction that needs final results of another; both are empty for a map. Their expressions, and
    ``value`` of outputs, read operands at ``places`` and reductions by name: in the pass that a
    reduction is of, its state so far, and afterwards its result.
    ``ranks`` gives, for each ``argmax`` and ``argmin``, the steps of the place along the columns.
    """

    program: Program
    rows: tuple[Span, ...]
    columns: tuple[Span, ...]
    online: tuple[Pass, ...]
    plain: tuple[Pass, ...]
    outputs: tuple[RowOutput, ...]
    places: Mapping[Read, RowAddress]
    ranks: Mapping[str, tuple[int, ...]]

    @property
    def parts(self) -> dict[str, Any]:
        """All fields of this class by their names, for rows of another class."""
        return {field.name: getattr(self, field.name) for field in fields(Rows)}

    @property
    def summed(self) -> frozenset[str]:
        """The names of outputs that are added up over all rows."""
        return frozenset()

    @property
    def written(self) -> tuple[Output, ...]:
        """The outputs as they lie in memory."""
        return self.program.outputs

    @property
    def is_map(self) -> bool:
        """Tell whether nothing is reduced. A row may then be divided."""
        return not self.plain

    @property
    def gathers(self) -> bool:
        """Tell whether entries of tables choose the places where arrays are read."""
        return any(place.gathers for place in self.places.values())

    @cached_property
    def row_count(self) -> int:
        """The number of rows."""
        return prod(span.extent for span in self.rows)

    @cached_property
    def column_count(self) -> int:
        """The number of elements of a row."""
        return prod(span.extent for span in self.columns)

    @cached_property
    def axis(self) -> Mapping[str, tuple[str, int]]:
        """Map each axis that is a span by itself to ``rows`` or ``columns``, and its place
        there.
        """
        sides = {"rows": self.rows, "columns": self.columns}
        return {
            span.names[0]: (side, place)
            for side, found in sides.items()
            for place, span in enumerate(found)
            if len(span.names) == 1
        }

    def varies(self, expression: Expression) -> bool:
        """Tell whether an expression differs from element to element of a row."""
        if isinstance(expression, Read):
            return expression in self.places and self.places[expression].by_column
        if isinstance(expression, AxisValue):
            return self.axis[expression.name][0] == "columns"
        return any(map(self.varies, expression.children))

    def reads(self, expression: Expression) -> tuple[Read, ...]:
        """Return the reads of operands whose values count, each once, from left to right."""
        return tuple(dict.fromkeys(r for r in expression.value_reads if r in self.places))


def rows_of(program: Program) -> Rows:
    """Return the program as rows; :class:`InputError` says why it is none."""
    if program.conditions:
        raise InputError(f"reductions are bounded by {program.conditions[0]}; rows are whole")
    program = shifted(program)
    found = reductions(program)
    over = found[0].over if found else ()
    expander = Expander(program, over, counting(program, found))
    online = online_passes(program, expander, strict=True) if found else ()
    plain = plain_passes(program, expander) if found else ()
    values = {o.name: value_of(program, o.name, expander) for o in program.outputs}
    return placed(program, over, online, plain, values)


def placed(
    program: Program,
    over: tuple[str, ...],
    online: tuple[Pass, ...],
    plain: tuple[Pass, ...],
    values: Mapping[str, Expression],
) -> Rows:
    """Return a program as rows along the axes ``over``, with these passes and these values of its
    outputs; :class:`InputError` if an array is read or written where rows cannot."""
    bodies = [*(e for p in (*online, *plain) for e in expressions(p)), *values.values()]
    return _Placing(program, over, online, plain, values, bodies).rows()


@dataclass(frozen=True)
class _Placing:
    """A program's passes and values, from which the places of its reads and writes are derived."""

    program: Program
    over: tuple[str, ...]
    online: tuple[Pass, ...]
    plain: tuple[Pass, ...]
    values: Mapping[str, Expression]
    bodies: Sequence[Expression]

    def rows(self) -> Rows:
        extent = self.program.extent
        steps = [*self.written.values(), *self.read.values(), *self.ranks.values()]
        apart = uses_of_axes(self.bodies)
        groups = (tuple(self.written.values()), tuple(self.read.values()))
        columns = spans(from_slowest(self._reduced, groups, extent), steps, extent, apart)
        rows = spans(from_slowest(self._kept, groups, extent), steps, extent, apart)
        if not self.over:
            rows, columns = rows[:-1] or (Span((), 1),), rows[-1:]
        self._check_gathers(columns)
        return Rows(
            self.program,
            rows,
            columns,
            self.online,
            self.plain,
            tuple(self._output(o, rows, columns) for o in self.program.outputs),
            {read: _place(s, rows, columns) for read, s in self.read.items()},
            {name: s.along(columns) for name, s in self.ranks.items()},
        )

    @property
    def _kept(self) -> list[str]:
        found = [s for s in self.program.stages if s.reducer or s.name in self.values]
        kept = {axis for stage in found for axis in stage.axes} - set(self.over)
        return [a for a, extent in self.program.extents if a in kept and extent > 1]

    @property
    def _reduced(self) -> list[str]:
        return [a for a, extent in self.program.extents if a in self.over and extent > 1]

    @cached_property
    def read(self) -> Mapping[Read, Steps]:
        operand = self.program.operand
        reads = dict.fromkeys(r for body in self.bodies for r in body.reads if r.name in operand)
        return {
            read: self._without_units(steps_of_read(operand[read.name], read)) for read in reads
        }

    @cached_property
    def written(self) -> Mapping[str, Steps]:
        stage = self.program.stage
        return {
            o.name: self._without_units(steps_of_output(o, stage[o.name].axes))
            for o in self.program.outputs
        }

    @cached_property
    def ranks(self) -> Mapping[str, Steps]:
        extent = self.program.extent
        return {n: steps_of_rank(over, extent) for n, over in argument_axes(self.program).items()}

    def _without_units(self, steps: Steps) -> Steps:
        kept = {a: s for a, s in steps.by_axis.items() if self.program.extent[a] > 1}
        return Steps(steps.array, steps.offset, kept, steps.gathers)

    def _output(self, output: Output, rows: Sequence[Span], columns: Sequence[Span]) -> RowOutput:
        axes = {a for a in self.program.stage[output.name].axes if self.program.extent[a] > 1}
        missing = set(self._kept) - axes
        partly = axes & set(self._reduced)
        if missing:
            raise InputError(f"{output.name} is the same along {_named(missing)}; others are not")
        if partly and partly != set(self._reduced):
            gone = set(self._reduced) - partly
            raise InputError(f"{output.name} is the same along {_named(gone)}, a part of each row")
        place = _place(self.written[output.name], rows, columns)
        return RowOutput(output, self.values[output.name], place)

    def _check_gathers(self, columns: Sequence[Span]) -> None:
        along = {name for span in columns for name in span.names}
        for steps in self.read.values():
            for entry, _ in steps.gathers:
                found = self.read.get(entry)
                if found is None:
                    raise InputError(f"{steps.array} is read at {entry}, which is computed")
                if found.gathers or any(found.step(axis) for axis in along):
                    raise InputError(
                        f"{steps.array} is read at {entry}, another one for each element of a row"
                    )


def value_of(program: Program, name: str, expander: Expander) -> Expression:
    """Return the value of an output at a point, of operands and of final results."""
    stage = program.stage[name]
    own = Read(name, tuple(map(AxisValue, stage.axes)))
    return expander.expanded(own if stage.reducer else stage.body)


def _place(steps: Steps, rows: Sequence[Span], columns: Sequence[Span]) -> RowAddress:
    return RowAddress(
        steps.array, steps.offset, steps.along(rows), steps.along(columns), steps.gathers
    )


def _named(axes: set[str]) -> str:
    return ", ".join(sorted(axes))

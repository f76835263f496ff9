"""Rows with sums along columns beside them: a norm's gradient by its weight in the pass of ``dx``.

    dx[r, c] = f(x[r, c], sum[c](...))        dw[c] = sum[r](dy[r, c] * x[r, c])

What such a sum adds up is a value of each element, as an output is: so the program is one of rows
with an output more, which is added up over all rows instead of being written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import prod

from tilewright.spaces.derivation.rows.addresses import RowAddress, Span
from tilewright.spaces.derivation.rows.view import RowOutput, Rows, rows_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Output, Program, Stage


@dataclass(frozen=True)
class SummedRows(Rows):
    """Rows whose outputs named in ``sums`` are added up over all rows, in memory that is dense
    along the columns."""

    sums: tuple[Output, ...] = ()

    @cached_property
    def summed(self) -> frozenset[str]:
        """The names of outputs that are added up over all rows."""
        return frozenset(output.name for output in self.sums)

    @property
    def written(self) -> tuple[Output, ...]:
        """The outputs as they lie in memory."""
        sums = {output.name: output for output in self.sums}
        return tuple(sums.get(output.name, output) for output in self.program.outputs)


@lru_cache(maxsize=64)
def summed_rows_of(program: Program) -> SummedRows:
    """Return the program as rows, sums along columns among them; :class:`InputError` says why it is
    none."""
    sums = _sums(program)
    found = rows_of(_with_elements(program, sums) if sums else program)
    parts = found.parts
    names = {stage.name for stage in sums}
    parts["outputs"] = tuple(
        _added(o, found.rows, found.columns) if o.array.name in names else o for o in found.outputs
    )
    outputs = (output for output in program.outputs if output.name in names)
    return SummedRows(**parts, sums=tuple(outputs))


def _sums(program: Program) -> list[Stage]:
    """Return the sums of columns, over all axes of the rows that other stages reduce along."""
    outputs = {output.name for output in program.outputs}
    read = {read.name for stage in program.stages for read in stage.body.reads}
    reducing = [stage for stage in program.stages if stage.reducer]
    within = [s for s in reducing if s.name in read and s.reducer]
    columns = {axis for stage in within for axis in stage.over}
    rows = {axis for stage in within for axis in stage.axes}
    return [
        stage
        for stage in reducing
        if stage.name in outputs - read
        and stage.reducer == "sum"
        and set(stage.over) == rows
        and set(stage.axes) == columns
        and not columns & rows
        and not program.bounding(stage)
    ]


def _with_elements(program: Program, sums: list[Stage]) -> Program:
    """Return the program with the elements of each sum in its place."""
    order = tuple(axis for axis, _ in program.extents)
    made = {s.name: _elements(s, order) for s in sums}
    outputs = tuple(
        _array(program, output, made[output.name]) if output.name in made else output
        for output in program.outputs
    )
    stages = tuple(made.get(stage.name, stage) for stage in program.stages)
    return replace(program, stages=stages, outputs=outputs)


def _elements(stage: Stage, order: tuple[str, ...]) -> Stage:
    rows = sorted(stage.over, key=order.index)
    return Stage(stage.name, (*rows, *stage.axes), None, (), stage.body)


def _array(program: Program, output: Output, elements: Stage) -> Output:
    """Return the array that the elements of a sum would be, in the order of the sum's own."""
    shape = program.shape(elements.axes)
    before = len(shape) - len(output.shape)
    order = (*range(before), *(before + dimension for dimension in output.order))
    return Output(output.name, program.sums_in, shape, order)


def _added(output: RowOutput, rows: tuple[Span, ...], columns: tuple[Span, ...]) -> RowOutput:
    """Return the output with one row of memory for all rows."""
    dense = tuple(prod(s.extent for s in columns[n + 1 :]) for n, _ in enumerate(columns))
    if output.place.columns != tuple(
        step if span.extent > 1 else 0 for step, span in zip(dense, columns, strict=True)
    ):
        raise InputError(f"{output.array.name} has columns in another order than rows have")
    shape = tuple(span.extent for span in columns)
    array = Output(output.array.name, output.array.dtype, shape, tuple(range(len(shape))))
    place = RowAddress(output.array.name, 0, tuple(0 for _ in rows), output.place.columns)
    return RowOutput(array, output.value, place)

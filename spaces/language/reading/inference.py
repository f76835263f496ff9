"""Infer the dtypes, shapes and orders of arrays that a program's text leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tilewright.spaces.dtypes import dtype as element_type
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language.bounds import Bounds
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.kinds import is_integer
from tilewright.spaces.language.program import Operand, Output, Program, Stage
from tilewright.spaces.language.reading.declarations import Declaration
from tilewright.spaces.language.residues import Range
from tilewright.spaces.language.tree import Comparison, Expression, Read
from tilewright.spaces.workloads.packing import check_packed


@dataclass(frozen=True)
class Arrays:
    """Makes the operands and outputs of a program that has been read so far."""

    extents: Mapping[str, int]
    stages: Sequence[Stage]
    conditions: Sequence[Comparison]
    declared: Mapping[str, Declaration]
    named: Sequence[str]
    dtype: str

    @cached_property
    def operands(self) -> tuple[Operand, ...]:
        """List the declared operands, and then the others as they first appear."""
        stages = {stage.name for stage in self.stages}
        names = dict.fromkeys(name for name in self.declared if name not in stages)
        names |= dict.fromkeys(read.name for read in self._reads if read.name not in stages)
        return tuple(self._operand(name) for name in names)

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """List the outputs in the order in which they are named."""
        by_name = {stage.name: stage for stage in self.stages}
        for name, declared in self.declared.items():
            if name in by_name and name not in self.named:
                declared.statement.fail(f"stage {name!r} is no output; allowed: a cast within it")
        return tuple(self._output(by_name[name]) for name in self.named)

    @cached_property
    def _reads(self) -> list[Read]:
        trees: list[Expression] = [*(stage.body for stage in self.stages), *self.conditions]
        return [read for tree in trees for read in tree.reads]

    def _operand(self, name: str) -> Operand:
        known = self.declared.get(name)
        dtype = known.dtype if known else element_type(self.dtype).name
        shape = known.shape if known and known.shape is not None else self._shape(name)
        drawn = known.drawn if known else None
        if known and known.packed:
            self._check_packed(known, shape)
        packed = known is not None and known.packed
        elements = known.elements if known else None
        return Operand(name, dtype, shape, *_layout(known, shape), packed, None, drawn, elements)

    def _check_packed(self, known: Declaration, shape: tuple[int, ...]) -> None:
        """Refuse what has no packed order."""
        try:
            check_packed(known.dtype, shape)
        except InputError as error:
            known.statement.fail(str(error))

    def _shape(self, name: str) -> tuple[int, ...]:
        """Infer a shape as far as the reads of an operand go."""
        every = [read for read in self._reads if read.name == name]
        reads = [read for read in every if read.outside is None]
        if not every:
            raise InputError(f"operand {name!r} is declared, and never read")
        if not reads:
            such = ", ".join(["8"] * len(every[0].indices))
            raise InputError(
                f"the shape of {name!r} is open: all its reads may be outside of it; "
                f"allowed: a line that declares it, such as {name}: float32[{such}]"
            )
        if len({len(read.indices) for read in reads}) > 1:
            raise InputError(f"{name!r} is read with different numbers of indices")
        bounds = Bounds.under((), self.extents, self._entries)
        ends = [[bounds.of(index)[1] for index in read.indices] for read in reads]
        return tuple(max(1, max(column) + 1) for column in zip(*ends, strict=True))

    @cached_property
    def _entries(self) -> dict[str, Range]:
        declared = self.declared.items()
        entries = {name: (0, d.drawn.below - 1) for name, d in declared if d.drawn}
        return entries | dict(places(self.stages, self.extents))

    def _output(self, stage: Stage) -> Output:
        known = self.declared.get(stage.name)
        shape = tuple(self.extents[axis] for axis in stage.axes)
        dtype = known.dtype if known else self._result(stage)
        if dtype == "tfloat32":
            raise InputError(
                f"output {stage.name!r} in tfloat32, a dtype of operands only; allowed: float32"
            )
        if known and known.packed:
            known.statement.fail(f"{stage.name!r} is written; only operands are packed")
        if known and known.shape not in (None, shape):
            known.statement.fail(f"{stage.name!r} is declared as {known.shape}; its axes: {shape}")
        return Output(stage.name, dtype, shape, *_layout(known, shape))

    def _result(self, stage: Stage) -> str:
        """Return the dtype of an output that none is declared for."""
        if stage.name in self._whole:
            return "int32"
        return "float32" if element_type(self.dtype).is_integer else result_dtype(self.dtype)

    @cached_property
    def _whole(self) -> set[str]:
        whole = {operand.name for operand in self.operands if operand.element.is_integer}
        return whole | whole_stages(self.stages, whole)


def result_dtype(dtype: str) -> str:
    """Return the dtype of sums of products of a dtype as they are written, unless one is asked
    for."""
    element = element_type(dtype)
    same = element.bits > 8 and element.name != "tfloat32"
    return element.name if same else element.accumulator


def whole_stages(stages: Sequence[Stage], operands: set[str]) -> set[str]:
    """Return the stages of whole numbers, if those of ``operands`` are."""
    whole = set(operands)
    for stage in stages:
        place = stage.reducer is not None and REDUCERS[stage.reducer].argument
        if place or is_integer(stage.body, whole):
            whole.add(stage.name)
    return whole


def places(stages: Sequence[Stage], extents: Mapping[str, int]) -> Iterator[tuple[str, Range]]:
    """Yield the ranges of stages that give places along the axes they reduce over."""
    for stage in stages:
        if stage.reducer and REDUCERS[stage.reducer].argument:
            yield stage.name, (0, prod(extents[axis] for axis in stage.over) - 1)


def entry_ranges(program: Program) -> dict[str, Range]:
    """Return the ranges of all arrays whose entries may be indices."""
    operands = {o.name: (0, o.drawn.below - 1) for o in program.operands if o.drawn}
    return operands | dict(places(program.stages, program.extent))


def _layout(
    known: Declaration | None, shape: tuple[int, ...]
) -> tuple[tuple[int, ...], int | None]:
    """Order and leading dimension, checked against the shape."""
    order = known.order if known else None
    leading = known.leading if known else None
    if known and order is not None and sorted(order) != list(range(len(shape))):
        dimensions = f"each of 0 to {len(shape) - 1} once"
        known.statement.fail(
            f"order={shown(order)} is none of {len(shape)} dimensions; allowed: {dimensions}"
        )
    order = order if order is not None else tuple(range(len(shape)))
    if known and leading is not None and (len(shape) < 2 or leading < shape[order[-1]]):
        least = f"at least {shape[order[-1]]}" if len(shape) > 1 else "two dimensions or more"
        known.statement.fail(f"leading={leading} is too small; allowed: {least}")
    return order, leading

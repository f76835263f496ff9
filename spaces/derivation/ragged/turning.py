"""Programs over ranges whose arrays are turned, so that lanes lie along what a reduction keeps.

    y[m, n] = sum[e: ptr[n] <= e < ptr[n + 1]](v[e] * a[m, col[e]])

An entry gathers an element of each ``m`` here, which lie far apart. If ``a`` and ``y`` had ``m`` as
their fastest axis, it would gather neighbours. Kernels copy such arrays into that order, and back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.derivation.ragged.view import RaggedView, cached_ragged
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Operand, Output, Program, Stage
from tilewright.spaces.language.ranges import Range, ranges
from tilewright.spaces.language.tree import AxisValue
from tilewright.spaces.workloads.array import Array

LINE_BYTES = 64
"""Bytes of a cache line."""
Kind = TypeVar("Kind", Operand, Output)


@dataclass(frozen=True)
class Turned:
    """The ``view`` of a program whose ``arrays`` lie in another order than they are given in."""

    view: RaggedView
    arrays: tuple[Array, ...]


@lru_cache(maxsize=64)
def turned(program: Program, with_outputs: bool = True) -> Turned:
    """Return the view of the program with turned operands, and outputs if these are turned, too;
    :class:`InputError` if it has none that an entry would then gather more of."""
    view = cached_ragged(program)
    lanes = dict(_lanes(program, view.range))
    operands = tuple(_turned(o, lanes[o.name]) if o.name in lanes else o for o in program.operands)
    if operands == program.operands:
        raise InputError("entries gather no elements that would be neighbours in another order")
    outputs = program.outputs
    if with_outputs:
        outputs = tuple(
            _turned(o, program.stage[o.name].axes.index(axis)) if axis else o
            for o in program.outputs
            for axis in [_last(program.stage[o.name], view.range)]
        )
    other = cached_ragged(replace(program, operands=operands, outputs=outputs))
    given = (*program.operands, *program.outputs)
    return Turned(other, tuple(a for a in (*operands, *outputs) if a not in given))


def _lanes(program: Program, range_: Range) -> Iterator[tuple[str, int]]:
    """Yield each operand that entries gather of, with the dimension that is to be the fastest."""
    for stage in program.stages:
        axis = _last(stage, range_)
        if axis is None or stage.name not in ranges(program).reductions:
            continue
        for read in stage.body.value_reads:
            chosen = any(range_.entry in e.axes for index in read.indices for e in index.reads)
            if chosen and AxisValue(axis) in read.indices and read.name in program.operand:
                yield read.name, read.indices.index(AxisValue(axis))


def _last(stage: Stage, range_: Range) -> str | None:
    """Return the last axis that a stage keeps beside rows."""
    kept = [axis for axis in stage.axes if axis not in (range_.row, range_.entry)]
    return kept[-1] if kept and range_.row in stage.axes else None


def _turned(array: Kind, fastest: int) -> Kind:
    """Return an array with another fastest dimension, along which no row crosses lines of memory
    more often than it must."""
    order = (*(d for d in array.order if d != fastest), fastest)
    if order == array.order:
        return array
    extent, line = array.shape[fastest], LINE_BYTES // array.element.bytes
    leading = extent if line % extent == 0 else round_up(extent, line)
    return replace(array, order=order, leading=leading)

"""Programs with arrays of a user's own: tables of indices, and constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tilewright.spaces.errors import InputError
from tilewright.spaces.language.constants import elements_of
from tilewright.spaces.language.given import keep
from tilewright.spaces.language.inputs import check_end, check_entries
from tilewright.spaces.language.program import Operand, Program
from tilewright.spaces.language.ranges import pointers_of


def with_tables(program: Program, tables: Mapping[str, np.ndarray]) -> Program:
    """Return the program with these arrays as values of its operands: those of indices are kept in
    files, and others become constants. :class:`InputError` for an array that it has no operand
    for, or that is not valid."""
    for name in tables:
        if name not in program.operand:
            known = ", ".join(program.operand)
            raise InputError(f"the program has no operand {name!r}; operands: {known}")
    operands = tuple(
        _given(program, operand, tables[operand.name]) if operand.name in tables else operand
        for operand in program.operands
    )
    return replace(program, operands=operands)


def _given(program: Program, operand: Operand, entries: np.ndarray) -> Operand:
    if entries.shape != operand.shape:
        raise InputError(
            f"{operand.name} has the shape {operand.shape}, its table {entries.shape}; "
            "allowed: the same"
        )
    if operand.drawn is None:
        return _constant(operand, entries)
    check_entries(operand, entries)
    if axis := pointers_of(program).get(operand.name):
        check_end(operand.name, entries, program.extent[axis])
    return replace(operand, drawn=replace(operand.drawn, skew=0.0, table=keep(entries)))


def _constant(operand: Operand, elements: np.ndarray) -> Operand:
    """Return an operand as a constant, which is nowhere in memory."""
    if operand.packed:
        raise InputError(f"{operand.name} is packed; allowed: a constant that is not")
    plain = replace(operand, order=tuple(range(elements.ndim)), leading=None)
    return replace(plain, elements=elements_of(operand.name, operand.dtype, elements))

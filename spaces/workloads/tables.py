"""Workloads with tables of a user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tilewright.spaces.errors import InputError
from tilewright.spaces.language.given import keep
from tilewright.spaces.language.inputs import check_end, check_entries
from tilewright.spaces.language.program import Operand, Program
from tilewright.spaces.language.ranges import pointers_of


def with_tables(program: Program, tables: Mapping[str, np.ndarray]) -> Program:
    """Return the program with these tables as values of its operands of indices, which are kept;
    :class:`InputError` for a table that it has none for, or that is not valid."""
    known = {o.name: o for o in program.operands if o.drawn is not None}
    for name in tables:
        if name not in known:
            allowed = ", ".join(known) or "none"
            raise InputError(f"the program has no table {name!r}; tables: {allowed}")
    operands = tuple(
        _given(program, operand, tables[operand.name]) if operand.name in tables else operand
        for operand in program.operands
    )
    return replace(program, operands=operands)


def _given(program: Program, operand: Operand, entries: np.ndarray) -> Operand:
    assert operand.drawn is not None
    if entries.shape != operand.shape:
        raise InputError(
            f"{operand.name} has the shape {operand.shape}, its table {entries.shape}; "
            "allowed: the same"
        )
    check_entries(operand, entries)
    if axis := pointers_of(program).get(operand.name):
        check_end(operand.name, entries, program.extent[axis])
    return replace(operand, drawn=replace(operand.drawn, skew=0.0, table=keep(entries)))

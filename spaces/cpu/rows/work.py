"""The work of a kernel of rows for each vector of each walk along a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.cpu.rows.held import Held, outputs_by_element
from tilewright.spaces.derivation.chains.chain_reduction import Scaling, Series
from tilewright.spaces.derivation.rows.passes import Pass
from tilewright.spaces.derivation.rows.view import Rows
from tilewright.spaces.derivation.work import PLAIN
from tilewright.spaces.language.tree import AxisValue, Call, Expression, Read

if TYPE_CHECKING:
    from tilewright.spaces.cpu.rows.template import RowsTemplate

FORMS = ("online", "plain")
"""The values of the decision ``passes``."""
CALL_OPERATIONS = 16
"""Operations of a special function: its polynomial and the steps around it."""
CALL_REGISTERS = 5
"""Registers that a special function takes beside its argument."""


@dataclass(frozen=True)
class Step:
    """The work of one walk along a row for each vector: loads, stores and operations.

    ``once`` counts the operations for each tile, however many vectors it has; ``states`` counts the
    registers of states, and ``has_calls`` tells whether there are special functions.
    """

    loads: int
    stores: int
    operations: int
    once: int
    states: int
    has_calls: bool


def steps(rows: Rows, passes: Iterable[Pass], held: Expression | None) -> list[Step]:
    """Return all walks of a row: the passes, and one that computes the outputs of each element,
    where ``held`` is loaded instead of computed."""
    found = [_pass_step(rows, pass_, held) for pass_ in passes]
    outputs = outputs_by_element(rows)
    if outputs:
        values = [output.value for output in outputs]
        loads, operations, calls = _counts(rows, values, held)
        found.append(Step(loads, len(outputs), operations, 0, 0, calls))
    return found


def busiest(rows: Rows, passes: Iterable[Pass], held: Held | None) -> int:
    """Return the number of the walk with most operations for each vector, the last of equal ones:
    there memory has most time to deliver the next row."""
    operations = [step.operations for step in steps(rows, passes, held.value if held else None)]
    return max(range(len(operations)), key=lambda number: (operations[number], number))


def registers(template: RowsTemplate, columns: Mapping[str, Any]) -> Any:
    """Compute the vector registers of the walk that takes most.

    They are one for each vector in flight, those of states (one set for each vector if lanes are
    rows), and those of functions.
    """
    forms = {form: _registers(template, columns, form) for form in FORMS}
    return np.where(columns["passes"] == "online", forms["online"], forms["plain"])


def _registers(template: RowsTemplate, columns: Mapping[str, Any], form: str) -> Any:
    unroll, across = columns["unroll"], columns["lanes"] == "rows"
    found = [
        np.where(across, unroll * s.states + 1, unroll + s.states)
        + 1
        + CALL_REGISTERS * s.has_calls
        for s in steps(template.rows, template.passes(form), None)
    ]
    return np.max(np.stack(found), axis=0)


def _pass_step(rows: Rows, pass_: Pass, held: Expression | None) -> Step:
    elements = [r.element for r in pass_]
    loads, operations, calls = _counts(rows, elements, None)
    once = 0
    for r in pass_:
        match r.correction:
            case Scaling():
                once += CALL_OPERATIONS + 3
            case Series(_, terms):
                once += 4 + 3 * len(terms)
    states = sum(2 if r.name in rows.ranks else 1 for r in pass_)
    stores = int(held is not None and any(held in set(e.values()) for e in elements))
    return Step(loads, stores, operations + len(pass_), once, states, calls or once > 0)


def _counts(
    rows: Rows, values: Iterable[Expression], held: Expression | None
) -> tuple[int, int, bool]:
    """Count the loads and operations of the expressions for each vector, equal ones once, and tell
    whether there are special functions."""
    seen: set[Expression] = set()
    loads, operations, calls = 0, 0, False
    waiting = list(values)
    while waiting:
        node = waiting.pop()
        if node in seen or not rows.varies(node):
            continue
        seen.add(node)
        if node == held or isinstance(node, Read | AxisValue):
            loads += node == held or node in rows.places
            continue
        special = isinstance(node, Call) and node.function not in PLAIN
        calls = calls or special
        operations += CALL_OPERATIONS if special else 1
        waiting += node.children
    return loads, operations, calls

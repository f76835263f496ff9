"""Values of elements that a pass keeps until the outputs are computed."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.derivation.rows.addresses import RowAddress
from tilewright.spaces.derivation.rows.column_sums import SummedRows
from tilewright.spaces.derivation.rows.view import RowOutput, Rows
from tilewright.spaces.derivation.scopes import special
from tilewright.spaces.language.tree import Expression


@dataclass(frozen=True)
class Held:
    """An expression of each element that a pass stores and the outputs load again: from a worker's
    scratch row, or from ``place`` in an output."""

    value: Expression
    place: RowAddress | None = None


def worth_holding(rows: Rows) -> Expression | None:
    """Return the largest expression with a special function that both a pass of ``rows.plain`` and
    an output compute for each element; None if there is none."""
    computed = {node for p in rows.plain for r in p for node in r.element.values()}
    again = [
        node
        for output in outputs_by_element(rows)
        for node in output.value.values()
        if node in computed and special(node) and rows.varies(node)
    ]
    return max(again, key=lambda node: (_size(node), str(node)), default=None)


def output_to_hold_in(rows: SummedRows, element: str) -> RowOutput | None:
    """Return an output that has room for an ``element`` at each of its places until it is written;
    None if there is none."""
    return next(
        (
            output
            for output in outputs_by_element(rows)
            if output.array.dtype == element
            and output.place.columns[-1] == 1
            and output.array.name not in rows.summed
        ),
        None,
    )


def outputs_by_element(rows: Rows) -> tuple[RowOutput, ...]:
    """Return the outputs that have a value for each element."""
    return tuple(output for output in rows.outputs if output.place.by_column)


def _size(expression: Expression) -> int:
    return sum(1 for _ in expression.walk())

"""A program as a scan: rows along which reductions run, with maps before and after.

    s[r, i] = sum[j: j <= i](f(r, j))        y[r, i] = g(r, i, s[r, i])

What such a reduction takes in at ``i`` is a value of the element ``i``, as what comes of it is. So
all is computed in one walk along each row, forwards for prefixes and backwards for suffixes. One
may take in what another one has come to by then.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction, state
from tilewright.spaces.derivation.rows.column_sums import SummedRows
from tilewright.spaces.derivation.rows.passes import Expander
from tilewright.spaces.derivation.rows.view import placed, value_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.prefixes import Prefix, prefix_of
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Expression


@dataclass(frozen=True)
class Scan(SummedRows):
    """Rows whose columns are the axis that ends all prefixes.

    The one pass of ``plain`` has the reductions in the order in which each reads those before it,
    as they are at the same element. They run from the first column on, or from the last one if
    ``backwards``; at an element, those in ``exclusive`` have not taken in its own term.
    """

    backwards: bool = False
    exclusive: frozenset[str] = frozenset()

    @property
    def running(self) -> tuple[ChainReduction, ...]:
        """The reductions."""
        (found,) = self.plain
        return found

    @property
    def is_chained(self) -> bool:
        """Tell whether a reduction takes in what another one has come to."""
        return any(read.name in self.names for r in self.running for read in r.element.reads)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the reductions."""
        return frozenset(r.name for r in self.running)

    def varies(self, expression: Expression) -> bool:
        """Tell whether an expression differs from element to element of a row, as states do."""
        summed = any(read.name in self.names for read in expression.reads)
        return summed or super().varies(expression)


def scan_of(program: Program) -> Scan:
    """Return the program as a scan; :class:`InputError` says why it is none."""
    prefixes = {stage.name: _prefix(program, stage) for stage in program.stages if stage.reducer}
    if not prefixes:
        raise InputError("nothing is reduced over prefixes")
    (name, first), *others = prefixes.items()
    for other, prefix in others:
        if (prefix.row, prefix.backwards) != (first.row, first.backwards):
            raise InputError(f"{other} runs along another axis, or the other way, than {name}")
    expander = Expander(program, (), frozenset())
    running = tuple(_running(program.stage[n], p, expander) for n, p in prefixes.items())
    values = {o.name: value_of(program, o.name, expander) for o in program.outputs}
    rows = placed(program, (first.row,), (), (running,), values)
    if rows.column_count == 1:
        raise InputError(f"{first.row} has one element, which is its own sum")
    for output in rows.outputs:
        if not output.place.by_column:
            raise InputError(f"{output.array.name} is the same along {first.row}")
    return Scan(
        **rows.parts,
        backwards=first.backwards,
        exclusive=frozenset(n for n, prefix in prefixes.items() if prefix.exclusive),
    )


def _prefix(program: Program, stage: Stage) -> Prefix:
    found = prefix_of(program, stage)
    if found is None:
        raise InputError(
            f"{stage.name} is no reduction over prefixes whose terms are alike for all"
        )
    row, term = (program.extent[axis] for axis in (found.row, found.term))
    if row != term:
        raise InputError(f"{stage.name} has {row} prefixes of {term} terms; allowed: as many")
    return found


def _running(stage: Stage, prefix: Prefix, expander: Expander) -> ChainReduction:
    """Return the sum with the term that it takes in at each element."""
    own = {axis: AxisValue(axis) for axis in stage.axes}
    body = stage.body.at({**own, prefix.term: AxisValue(prefix.row)})
    result, element = state(stage.name, stage.axes), expander.expanded(body)
    return ChainReduction(stage.name, prefix.reducer, stage.axes, element, None, result)

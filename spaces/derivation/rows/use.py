"""The reads of each sweep along a row: sweeps of reductions, and the sweep that writes outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.derivation.rows.passes import Pass, expressions
from tilewright.spaces.derivation.rows.view import Rows
from tilewright.spaces.language.tree import Expression, Read


@dataclass(frozen=True)
class Use:
    """The sweeps of ``rows`` with ``passes``, one of its two ways, and what they read.

    Reductions that nothing reads are left out.
    """

    rows: Rows
    ways: tuple[Pass, ...]

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """The passes, with what is read of them."""
        read = {r.name for o in self.rows.outputs for r in o.value.reads}
        for pass_ in self.ways:
            for reduction in pass_:
                own = {r.name for e in expressions((reduction,)) for r in e.reads}
                read |= own - {reduction.name}
        return tuple(kept for p in self.ways if (kept := tuple(r for r in p if r.name in read)))

    @property
    def sweeps(self) -> list[list[Expression]]:
        """The expressions that each sweep computes for every element."""
        found = [[r.element for r in pass_] for pass_ in self.passes]
        values = [o.value for o in self.rows.outputs if o.place.by_column]
        return [*found, values] if values else found

    def reads(self, sweep: list[Expression]) -> list[Read]:
        """Return the operands that differ from element to element, each once."""
        return list(dict.fromkeys(self._elements(sweep)))

    def _elements(self, sweep: list[Expression]) -> Iterator[Read]:
        for expression in sweep:
            for read in self.rows.reads(expression):
                if self.rows.places[read].by_column:
                    yield read

    @cached_property
    def elements(self) -> tuple[Read, ...]:
        """All operands that differ from element to element, each once."""
        return tuple(dict.fromkeys(r for sweep in self.sweeps for r in self.reads(sweep)))

    @cached_property
    def repeated(self) -> tuple[Read, ...]:
        """The reads that occur in more than one sweep."""
        lists = [self.reads(sweep) for sweep in self.sweeps]
        return tuple(r for r in self.elements if sum(r in reads for reads in lists) > 1)

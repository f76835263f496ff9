"""Bound the integers of a program: values made of axes, entries of tables and constants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

from tilewright.spaces.dtypes import EXACT
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.bounds import Bounds
from tilewright.spaces.language.evaluation import LARGEST
from tilewright.spaces.language.kinds import is_integer
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.reading.inference import entry_ranges, whole_stages
from tilewright.spaces.language.residues import Range
from tilewright.spaces.language.tree import AxisValue, Binary, Comparison, Expression, Number, Read


@dataclass(frozen=True)
class Magnitudes:
    """Bounds on how far from 0 the whole numbers of ``program`` can be, wherever they stand."""

    program: Program

    @cached_property
    def whole(self) -> frozenset[str]:
        """The arrays that hold whole numbers."""
        operands = {o.name for o in self.program.operands if o.element.is_integer}
        return frozenset(operands | whole_stages(self.program.stages, operands))

    def is_integer(self, node: Expression) -> bool:
        """Tell whether a value is an integer."""
        return is_integer(node, self.whole)

    def is_large(self, node: Expression) -> bool:
        """Tell whether a value is an integer that float32 may not represent exactly, or is computed
        from such; false for constants alone.
        """
        constant = not node.axes and not node.reads
        return not constant and self.is_integer(node) and self.reach(node) > EXACT

    def compares_large(self, node: Comparison) -> bool:
        """Tell whether a comparison needs integers: a side :meth:`is_large`, or both sides are
        integers and a constant is too large for float32.
        """
        sides = (node.left, node.right)
        both = all(map(self.is_integer, sides)) and max(map(self.reach, sides)) > EXACT
        return both or any(map(self.is_large, sides))

    def takes_integers(self, node: Expression) -> bool:
        """Tell whether floats are too inexact for an operation: its result :meth:`is_large`, or it
        compares such values.
        """
        if isinstance(node, Comparison):
            return self.compares_large(node)
        return not isinstance(node, Read) and self.is_large(node)

    def need_integers(self, expressions: Iterable[Expression]) -> bool:
        """Tell whether any operation of some expressions :meth:`takes_integers`."""
        return any(self.takes_integers(node) for found in expressions for node in found.values())

    def too_large(self) -> Iterator[Expression]:
        """Yield the whole numbers of axes, entries and constants that may be beyond 2**60. What is
        of operands that hold anything is computed modulo 2**64."""
        bodies = [*(stage.body for stage in self.program.stages), *self.program.conditions]
        for node in (node for body in bodies for node in body.walk()):
            known = all(read.name in self._entries for read in node.value_reads)
            constant = not node.axes and not node.reads
            if known and not constant and self.is_integer(node) and self.of(node) > LARGEST:
                yield node

    def reach(self, node: Expression) -> int:
        """Return a bound on a whole number and on all that it is computed of."""
        return max(map(self.of, node.values()))

    def of(self, node: Expression) -> int:
        """Return a bound on a whole number."""
        if node not in self._known:
            self._known[node] = self._bound(node)
        return self._known[node]

    @cached_property
    def _known(self) -> dict[Expression, int]:
        return {}

    def _bound(self, node: Expression) -> int:
        found = self._plain(node)
        if isinstance(node, Binary) and node.operator != "*":
            with suppress(InputError, KeyError):  # what is no index has no other bound
                found = min(found, max(map(abs, self._bounds.of(node))))
        return found

    def _plain(self, node: Expression) -> int:
        match node:
            case Number(value):
                return int(value)
            case AxisValue(name):
                return self.program.extent[name] - 1
            case Read(name, _, outside):
                beyond = 0 if outside is None or not float(outside).is_integer() else int(outside)
                return max(self.of_array(name), abs(beyond))
            case Binary("%", _, divisor):
                return max(self.of(divisor) - 1, 0)
            case Binary("//", dividend, divisor):
                least = int(divisor.value) if isinstance(divisor, Number) else 1
                return -(-self.of(dividend) // max(least, 1))
            case Binary("*", left, right):
                return self.of(left) * self.of(right)
            case Binary(_, left, right):
                return self.of(left) + self.of(right)
        return max(map(self.of, node.children), default=0)

    def of_array(self, name: str) -> int:
        """Return a bound on the entries of an array of whole numbers: their limit, what they are
        computed of, or what the dtype holds."""
        if name in self._entries:
            return max(map(abs, self._entries[name]))
        if name in self.program.operand:
            element = self.program.operand[name].element
            return max(map(abs, element.limits)) if element.is_integer else 0
        return self._stage(self.program.stage[name])

    def _stage(self, stage: Stage) -> int:
        if stage.name not in self.whole:
            return 0
        own, count = self.of(stage.body), prod(self.program.shape(stage.over))
        if stage.reducer == "sum":
            return own * count
        return own ** min(count, 62) if stage.reducer == "prod" else own

    @cached_property
    def _entries(self) -> Mapping[str, Range]:
        return entry_ranges(self.program)

    @cached_property
    def _bounds(self) -> Bounds:
        return Bounds.under((), self.program.extent, self._entries)


@lru_cache(maxsize=64)
def magnitudes(program: Program) -> Magnitudes:
    """Find the magnitudes of a program, once."""
    return Magnitudes(program)

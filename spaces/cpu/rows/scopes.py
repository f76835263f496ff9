"""Scopes whose expressions are vectors of floats."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.spaces.cpu.vectors.vector_code import VectorCode
from tilewright.spaces.cpu.vectors.wide import Wide
from tilewright.spaces.derivation.scopes import Scope
from tilewright.spaces.language.magnitude import Magnitudes
from tilewright.spaces.language.text import Written
from tilewright.spaces.language.tree import AxisValue, Comparison, Expression, Read


class VectorScope(Scope):
    """All lanes at once."""

    def number(self, value: float) -> str:
        """In all lanes."""
        return f"TW_NUMBER({value!r})"

    def operation(self, node: Expression, known: Callable[[Expression], Written | None]) -> str:
        """By the operators of vectors."""
        return node.fold(VectorCode(), known).text

    def variable(self, name: str, value: str) -> str:
        """A vector."""
        self.lines.append(f"const vf {name} = {value};")
        return name

    def exact(self, node: Expression, magnitudes: Magnitudes) -> str:
        """In vectors of 64 bits."""
        wide = Wide(magnitudes, self._whole, self.text)
        found = wide.mask(node) if isinstance(node, Comparison) else wide.value(node)
        assert found is not None
        return found

    def _whole(self, node: Expression) -> str | None:
        """An axis or an entry; those that floats tell apart are floats elsewhere."""
        if not isinstance(node, AxisValue | Read):
            return None
        return self.integer(node) or f"tw_integers({self.text(node)})"

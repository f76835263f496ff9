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
    """A scope whose C text computes all lanes at once."""

    def number(self, value: float) -> str:
        """Return a number in all lanes."""
        return f"TW_NUMBER({value!r})"

    def operation(self, node: Expression, known: Callable[[Expression], Written | None]) -> str:
        """Return an operation as an operator or function of vectors."""
        return node.fold(VectorCode(), known).text

    def variable(self, name: str, value: str) -> str:
        """Declare a vector variable, and return its name."""
        self.lines.append(f"const vf {name} = {value};")
        return name

    def exact(self, node: Expression, magnitudes: Magnitudes) -> str:
        """Return a node of whole numbers, computed in vectors of 64-bit integers."""
        wide = Wide(magnitudes, self._whole, self.text)
        found = wide.mask(node) if isinstance(node, Comparison) else wide.value(node)
        assert found is not None
        return found

    def _whole(self, node: Expression) -> str | None:
        """Return an axis or an entry as integers, converted from floats if these hold it exactly;
        None for other nodes."""
        if not isinstance(node, AxisValue | Read):
            return None
        return self.integer(node) or f"tw_integers({self.text(node)})"

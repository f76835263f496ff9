"""Scopes whose expressions are vectors of floats."""

from __future__ import annotations

from collections.abc import Callable

from spaces.cpu.vectors.vector_code import VectorCode
from spaces.derivation.scopes import Scope
from spaces.language.text import Written
from spaces.language.tree import Expression


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

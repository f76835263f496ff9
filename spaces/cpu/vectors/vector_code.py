"""Expressions as C on vectors of floats, for all templates of CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.language.text import Infix, Written


@dataclass(frozen=True)
class VectorCode(Infix):
    """The meaning (:class:`spaces.language.tree.Meaning`) of numbers and operations as C, by the
    functions of :mod:`spaces.cpu.vectors.vector_math`.

    How arrays are read is for whoever folds an expression to say: as C that needs no parentheses.
    """

    def number(self, value: float) -> Written:
        """A vector, for a scalar is no argument for a vector function."""
        return Written(f"tw_set({value!r}f)")

    def select(self, condition: Written, then: Written, otherwise: Written) -> Written:
        """Lane by lane."""
        return Written(f"tw_select({condition}, {then}, {otherwise})")

    def call(self, function: str, arguments: Sequence[Written]) -> Written:
        """By the function's name with ``tw_`` before it."""
        return Written(f"tw_{function}({', '.join(map(str, arguments))})")


def loaded(dtype: str, place: str, step: int, left: str | None = None) -> str:
    """C of a vector of elements of ``dtype`` that lie ``step`` apart from ``place`` on, by the
    functions of :mod:`spaces.cpu.vectors.simd`. There are ``left`` of them, enough if that is
    None."""
    if step == 0:
        return f"tw_splat_{dtype}({place})"
    if step != 1:
        return f"tw_gather_{dtype}({place}, {step}, {left or 'TW_LANES'})"
    return f"tw_load_most_{dtype}({place}, {left})" if left else f"tw_load_{dtype}({place})"

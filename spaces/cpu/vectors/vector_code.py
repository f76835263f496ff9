"""Expressions as C on vectors of floats, for all CPU templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.language.text import Infix, Written


@dataclass(frozen=True)
class VectorCode(Infix):
    """The meaning (:class:`spaces.language.tree.Meaning`) of numbers and operations as C text, by
    the functions of :mod:`spaces.cpu.vectors.vector_math`.

    Whoever folds an expression gives the text of its reads, as C that needs no parentheses.
    """

    def number(self, value: float) -> Written:
        """Return a vector of the number, for no vector function takes a scalar."""
        return Written(f"tw_set({value!r}f)")

    def select(self, condition: Written, then: Written, otherwise: Written) -> Written:
        """Return the selection in each lane."""
        return Written(f"tw_select({condition}, {then}, {otherwise})")

    def call(self, function: str, arguments: Sequence[Written]) -> Written:
        """Return a call of the function's name with ``tw_`` before it."""
        return Written(f"tw_{function}({', '.join(map(str, arguments))})")


def loaded(dtype: str, place: str, step: int, left: str | None = None) -> str:
    """Return the C of a vector of elements of ``dtype`` that lie ``step`` apart from ``place`` on.

    It calls the functions of :mod:`spaces.cpu.vectors.simd`. There are ``left`` elements; at least
    as many as lanes if that is None.
    """
    if step == 0:
        return f"tw_splat_{dtype}({place})"
    if step != 1:
        return f"tw_gather_{dtype}({place}, {step}, {left or 'TW_LANES'})"
    return f"tw_load_most_{dtype}({place}, {left})" if left else f"tw_load_{dtype}({place})"

"""What identifies an epilogue: what it computes, however it is written.

It is taken for a program of its own, a map over the output's axes that reads the accumulator and
the operands, each by its axes. The program's identity (:mod:`spaces.language.canonical`) knows no
order of sums and products, no names, and no function that others spell out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from spaces.epilogue import tree
from spaces.language.program import Operand, Output, Program, Stage
from spaces.language.tree import AxisValue, Binary, Call, Expression, Negation, Number, Read

ACCUMULATOR, OUTPUT = "x", "_y"
"""Names of the program's own arrays: no operand of an epilogue has one of them."""


@lru_cache(maxsize=1024)
def epilogue_digest(epilogue: tree.Expression, axes: tuple[str, ...]) -> str:
    """Equal for epilogues that compute the same of a product with these ``axes``, of any extents
    and dtypes."""
    return _program(epilogue, axes).digest


def _program(epilogue: tree.Expression, axes: tuple[str, ...]) -> Program:
    """The epilogue over an extent of its own for each axis. The accumulator is told from the
    operands by its dtype."""
    extents = {axis: extent for extent, axis in enumerate(axes, start=2)}

    def operand(name: str, dtype: str, own: Sequence[str]) -> Operand:
        return Operand(name, dtype, tuple(extents[axis] for axis in own), (*range(len(own)),))

    read = {ACCUMULATOR: axes} | epilogue.operands
    body = epilogue.fold(_InProgram(read))
    y = operand(OUTPUT, "float32", axes)
    return Program(
        extents=tuple(extents.items()),
        operands=tuple(
            operand(name, "float64" if name == ACCUMULATOR else "float32", own)
            for name, own in read.items()
        ),
        stages=(Stage(OUTPUT, axes, None, (), body),),
        conditions=(),
        outputs=(Output(y.name, y.dtype, y.shape, y.order),),
    )


class _InProgram:
    """What each part of an epilogue is in a program (:class:`spaces.epilogue.tree.Meaning`)."""

    def __init__(self, axes: Mapping[str, tuple[str, ...]]) -> None:
        self._axes = axes

    def accumulator(self) -> Expression:
        """An array like any other."""
        return self.operand(ACCUMULATOR)

    def number(self, value: float) -> Expression:
        """The same constant."""
        return Number(value)

    def operand(self, name: str) -> Expression:
        """Read by its axes."""
        return Read(name, tuple(map(AxisValue, self._axes[name])))

    def negation(self, inner: Expression) -> Expression:
        """Unary minus."""
        return Negation(inner)

    def binary(self, operator: str, left: Expression, right: Expression) -> Expression:
        """The same operator."""
        return Binary(operator, left, right)

    def call(self, function: str, arguments: Sequence[Expression]) -> Expression:
        """The same function."""
        return Call(function, tuple(arguments))

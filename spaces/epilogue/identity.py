"""Identify an epilogue by the function it computes, however it is written.

The epilogue is read as a program of its own: a map over the output's axes that reads the
accumulator and the operands, each by its axes. The program's identity
(:mod:`spaces.language.identity.canonical`) ignores the order of sums and products, names, and
whether a function is called or spelled out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tilewright.spaces.epilogue.expression import SUM, Epilogue
from tilewright.spaces.language.program import Operand, Output, Program, Stage
from tilewright.spaces.language.tree import AxisValue, Expression, Read

OUTPUT = "_y"
"""Name of the program's output: no operand of an epilogue has it."""


@lru_cache(maxsize=1024)
def epilogue_digest(epilogue: Epilogue, axes: tuple[str, ...]) -> str:
    """Equal for epilogues that compute the same of a product with these ``axes``, of any extents
    and dtypes."""
    return _program(epilogue, axes).digest


def _program(epilogue: Epilogue, axes: tuple[str, ...]) -> Program:
    """Return the epilogue over an extent of its own for each axis. The accumulator is told from the
    operands by its dtype."""
    extents = {axis: extent for extent, axis in enumerate(axes, start=2)}

    def operand(name: str, dtype: str, own: Sequence[str]) -> Operand:
        return Operand(name, dtype, tuple(extents[axis] for axis in own), (*range(len(own)),))

    read = {SUM: axes} | epilogue.operands
    body = _at(epilogue.value, tuple(map(AxisValue, axes)))
    y = operand(OUTPUT, "float32", axes)
    return Program(
        extents=tuple(extents.items()),
        operands=tuple(
            operand(name, "float64" if name == SUM else "float32", own)
            for name, own in read.items()
        ),
        stages=(Stage(OUTPUT, axes, None, (), body),),
        conditions=(),
        outputs=(Output(y.name, y.dtype, y.shape, y.order),),
    )


def _at(node: Expression, indices: tuple[Expression, ...]) -> Expression:
    """Return ``node``, which reads the sum at these indices."""
    if isinstance(node, Read):
        return Read(SUM, indices) if node.name == SUM else node
    return node.with_children(tuple(_at(child, indices) for child in node.children))

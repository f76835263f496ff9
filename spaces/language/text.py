"""How expressions and programs are written: ``parse(str(program)) == program``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spaces.language.program import Operand, Program, Stage
    from spaces.language.tree import Expression
    from spaces.workloads.array import Array

_COMPARISON, _NEGATION, _PRIMARY = 0, 3, 4
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2}

Written = tuple[str, int]
"""Text, and how tightly its outermost operator binds."""


class _Writer:
    """The meaning (:class:`spaces.language.tree.Meaning`) of a tree as text, with no more
    parentheses than needed."""

    def number(self, value: float) -> Written:
        return number_text(value), _PRIMARY

    def axis(self, name: str) -> Written:
        return name, _PRIMARY

    def read(self, name: str, indices: Sequence[Written], outside: float | None) -> Written:
        entry = f"{name}[{', '.join(text for text, _ in indices)}]" if indices else name
        if outside is not None:
            entry = f"inside({entry}, {number_text(outside)})"
        return entry, _PRIMARY

    def negation(self, inner: Written) -> Written:
        return f"-{_nested(inner, _PRIMARY)}", _NEGATION

    def binary(self, operator: str, left: Written, right: Written) -> Written:
        binds = _PRECEDENCE[operator]
        return f"{_nested(left, binds)} {operator} {_nested(right, binds + 1)}", binds

    def comparison(self, operator: str, left: Written, right: Written) -> Written:
        return f"{left[0]} {operator} {right[0]}", _COMPARISON

    def select(self, condition: Written, then: Written, otherwise: Written) -> Written:
        return f"select({condition[0]}, {then[0]}, {otherwise[0]})", _PRIMARY

    def call(self, function: str, arguments: Sequence[Written]) -> Written:
        return f"{function}({', '.join(text for text, _ in arguments)})", _PRIMARY


def expression_text(expression: Expression) -> str:
    """The expression as the language writes it."""
    return expression.fold(_Writer())[0]


def number_text(value: float) -> str:
    """The shortest text of a number; a whole one without a point."""
    return repr(float(value)).removesuffix(".0")


def stage_text(stage: Stage) -> str:
    """One line of a program."""
    body = expression_text(stage.body)
    if stage.reducer:
        body = f"{stage.reducer}[{', '.join(stage.over)}]({body})"
    return f"{entry_text(stage.name, stage.axes)} = {body}"


def entry_text(name: str, parts: Sequence[object]) -> str:
    """``name[parts]``, or the name alone if there are none."""
    return f"{name}[{', '.join(map(str, parts))}]" if parts else name


def program_text(program: Program) -> str:
    """The whole program, a statement a line."""
    lines = []
    if program.extents:
        lines.append("axes " + ", ".join(f"{name}={extent}" for name, extent in program.extents))
    lines += [operand_text(operand) for operand in program.operands]
    lines += [f"where {expression_text(condition)}" for condition in program.conditions]
    lines += [stage_text(stage) for stage in program.stages]
    lines += [_declaration(output, _layout(output)) for output in program.outputs]
    lines.append("-> " + ", ".join(output.name for output in program.outputs))
    return "\n".join(lines)


def operand_text(operand: Operand) -> str:
    """The line that declares an operand."""
    drawn = []
    if operand.drawn:
        kind = "sorted" if operand.drawn.sorted else "index"
        drawn.append(f"{kind} < {operand.drawn.below}")
    return _declaration(operand, [*drawn, *_layout(operand)])


def _declaration(array: Array, properties: Sequence[str]) -> str:
    written = f"{array.name}: {entry_text(array.dtype, array.shape)}"
    return f"{written}({', '.join(properties)})" if properties else written


def _layout(array: Array) -> list[str]:
    properties = []
    if array.order != tuple(range(len(array.shape))):
        properties.append(f"order=({', '.join(map(str, array.order))})")
    if array.leading is not None:
        properties.append(f"leading={array.leading}")
    return properties


def _nested(written: Written, least: int) -> str:
    text, binds = written
    return text if binds >= least else f"({text})"

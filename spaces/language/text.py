"""Write expressions and programs as text: ``parse(str(program)) == program``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.spaces.language.meaning import Operations
from tilewright.spaces.language.tree import Expression

if TYPE_CHECKING:
    from tilewright.spaces.language.program import Operand, Program, Stage
    from tilewright.spaces.workloads.array import Array

COMPARISON, NEGATION, PRIMARY = 0, 3, 4
PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2}


@dataclass(frozen=True)
class Written:
    """Text, and how tightly its outermost operator binds."""

    text: str
    binds: int = PRIMARY

    def __str__(self) -> str:
        return self.text

    def nested(self, least: int) -> str:
        """Return the text where something stands that has to bind so tightly."""
        return self.text if self.binds >= least else f"({self.text})"


@dataclass(frozen=True)
class Infix(Operations[Written]):
    """The meaning (:class:`spaces.language.tree.Meaning`) of operators as text, with no more
    parentheses than needed, or if ``explicit`` with a pair around each operation."""

    explicit: bool = False

    def negation(self, inner: Written) -> Written:
        """Write the minus before its operand."""
        return self._operation(f"-{inner.nested(PRIMARY)}", NEGATION)

    def binary(self, operator: str, left: Written, right: Written) -> Written:
        """Write the operator between both sides; the right one binds more tightly."""
        binds = PRECEDENCE[operator]
        return self._operation(f"{left.nested(binds)} {operator} {right.nested(binds + 1)}", binds)

    def comparison(self, operator: str, left: Written, right: Written) -> Written:
        """Write the comparison between both sides."""
        return self._operation(f"{left} {operator} {right}", COMPARISON)

    def _operation(self, text: str, binds: int) -> Written:
        return Written(f"({text})") if self.explicit else Written(text, binds)


@dataclass(frozen=True)
class _Writer(Infix):
    """The meaning of a tree as the language writes it, with ``comma`` between indices."""

    comma: str = ", "

    def number(self, value: float) -> Written:
        return Written(number_text(value))

    def axis(self, name: str) -> Written:
        return Written(name)

    def read(self, name: str, indices: Sequence[Written], outside: float | None) -> Written:
        entry = entry_text(name, indices, self.comma)
        if outside is not None:
            entry = f"inside({entry}, {number_text(outside)})"
        return Written(entry)

    def select(self, condition: Written, then: Written, otherwise: Written) -> Written:
        return Written(f"select({condition}, {then}, {otherwise})")

    def call(self, function: str, arguments: Sequence[Written]) -> Written:
        return Written(f"{function}({', '.join(map(str, arguments))})")


def expression_text(expression: Expression, comma: str = ", ") -> str:
    """Return the expression as the language writes it."""
    return expression.fold(_Writer(comma=comma)).text


def number_text(value: float) -> str:
    """Return the shortest text of a number; a whole one without a point."""
    return repr(float(value)).removesuffix(".0")


def stage_text(stage: Stage) -> str:
    """Return one line of a program."""
    body = expression_text(stage.body)
    if stage.reducer:
        body = f"{stage.reducer}[{', '.join(stage.over)}]({body})"
    return f"{entry_text(stage.name, stage.axes)} = {body}"


def entry_text(name: str, parts: Sequence[object], comma: str = ", ") -> str:
    """Return ``name[parts]``, or the name alone if there are none."""
    return f"{name}[{comma.join(map(str, parts))}]" if parts else name


def program_text(program: Program) -> str:
    """Return the whole program, a statement a line."""
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
    """Return the line that declares an operand."""
    drawn = [str(operand.drawn)] if operand.drawn and not operand.packed else []
    packed = ["packed"] if operand.packed else []
    declared = _declaration(operand, [*drawn, *packed, *_layout(operand)])
    if operand.elements is None:
        return declared
    return f"{declared} = {_braces(list(map(_signed, operand.elements)), operand.shape)}"


def _braces(elements: Sequence[str], shape: Sequence[int]) -> str:
    """Return the elements of a constant, rows first, with braces around each row."""
    if len(shape) > 1:
        size = len(elements) // shape[0]
        rows = (elements[i * size : (i + 1) * size] for i in range(shape[0]))
        elements = [_braces(row, shape[1:]) for row in rows]
    return f"{{{', '.join(elements)}}}"


def _signed(value: float) -> str:
    return f"-{number_text(-value)}" if value < 0 else number_text(value)


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

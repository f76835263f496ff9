"""The text of statements, one to one: the only place with braces, pragmas and ``for``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tilewright.spaces.kernels.body import Body
from tilewright.spaces.kernels.statements import (
    Assignment,
    Block,
    Call,
    Condition,
    Declaration,
    Lines,
    Loop,
    Return,
    Statement,
)


@dataclass(frozen=True)
class Printer:
    """Prints one language, in which the ``unroll`` pragma is before a loop."""

    unroll: str

    def lines(self, statements: Iterable[Statement]) -> list[str]:
        """Return the lines of statements, one after the other."""
        lines: list[str] = []
        for statement in statements:
            self._write(statement, "", lines)
        return lines

    def written(self, *writers: Callable[[Body], None]) -> list[str]:
        """Return the lines of what is written, in kernels whose other statements are lines."""
        body = Body(given=None)
        for write in writers:
            write(body)
        return self.lines(body.statements)

    def _write(self, statement: Statement, indent: str, lines: list[str], head: str = "") -> None:
        """Add a statement after its ``head`` to ``lines``: on the same line, but for a pragma."""
        match statement:
            case Block():
                lines.append(f"{indent}{head}{{")
                for inner in statement.statements:
                    self._write(inner, f"  {indent}", lines)
                lines.append(f"{indent}}}")
            case Loop():
                if statement.unroll is not None:
                    if head:
                        lines.append(f"{indent}{head.rstrip()}")
                    times = "" if statement.unroll is True else f" {int(statement.unroll)}"
                    lines.append(f"{indent}{self.unroll}{times}")
                    indent, head = f"  {indent}" if head else indent, ""
                self._write(statement.inner, indent, lines, f"{head}{_loop(statement)} ")
            case Condition():
                self._write(statement.then, indent, lines, f"{head}if ({statement.test}) ")
                if statement.otherwise is not None:
                    last = lines.pop().removeprefix(indent)
                    self._write(statement.otherwise, indent, lines, f"{last} else ")
            case Lines():
                lines += [f"{indent}{line}" for line in statement.lines]
            case _:
                lines.append(f"{indent}{head}{_simple(statement)};")


C = Printer("#pragma GCC unroll")
CUDA = Printer("#pragma unroll")
PRINTERS = {"c": C, "cuda": CUDA}


def _simple(statement: Statement) -> str:
    match statement:
        case Declaration(kind, name, value, count):
            space = "" if kind.endswith("*") else " "
            counts = count if isinstance(count, tuple) else (count,) * (count is not None)
            array = "".join(f"[{extent}]" for extent in counts)
            start = "" if value is None else f" = {value}"
            return f"{kind}{space}{name}{array}{start}"
        case Assignment(place, value, operator):
            return f"{place} {operator}= {value}"
        case Call(function, arguments):
            return f"{function}({', '.join(arguments)})"
        case Return():
            return "return"
    raise TypeError(f"{statement} is no simple statement")


def _loop(loop: Loop) -> str:
    name = loop.name
    step = f"{name}++" if loop.step == "1" else f"{name} += {loop.step}"
    also = "".join(f", {other} = {value}" for other, value in loop.also)
    return f"for ({loop.kind} {name} = {loop.first}{also}; {name} < {loop.end}; {step})"

"""The text of statements, one to one: the only place with braces, pragmas and ``for``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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

Inner = Sequence[str] | str
"""The lines inside braces, or one statement without them."""


@dataclass(frozen=True)
class Printer:
    """Prints one language, in which the ``unroll`` pragma is before a loop, and whole numbers are
    of type ``integer`` where nothing else is said.

    Kernels whose statements are lines have loops and conditions around them by :meth:`loop`,
    :meth:`when` and :meth:`block`:

        CUDA.loop("e", 2, CUDA.when("inside", f"sums[e] *= {factor};"), unroll=True)
    """

    unroll: str
    integer: str

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

    def loop(
        self,
        name: str,
        end: int | str,
        inner: Inner,
        *,
        first: int | str = 0,
        step: int | str | None = None,
        unroll: int | bool | None = None,
        kind: str = "",
        brief: bool = False,
    ) -> list[str]:
        """Return the lines of a loop over ``name`` from ``first`` to before ``end``, one by one if
        no ``step`` is given. Inside a ``brief`` one are the lines of one statement, without
        braces."""
        inside, turn = _statement(inner, brief), None if step is None else str(step)
        kind = kind or self.integer
        return self.lines([Loop(kind, name, str(first), str(end), turn, inside, unroll)])

    def when(
        self, test: str, inner: Inner, otherwise: Inner | None = None, *, brief: bool = False
    ) -> list[str]:
        """Return the lines of a condition, with lines for where it holds and does not."""
        other = None if otherwise is None else _statement(otherwise, brief)
        return self.lines([Condition(test, _statement(inner), other)])

    def block(self, *lines: str) -> list[str]:
        """Return lines in a scope of their own."""
        return self.lines([Block((Lines(lines),))])

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
                first, *others = statement.lines if head else ("", *statement.lines)
                if first.startswith("#"):
                    lines.append(f"{indent}{head.rstrip()}")
                    indent, others = f"  {indent}", [first, *others]
                elif head:
                    lines.append(f"{indent}{head}{first}")
                lines += [f"{indent}{line}" for line in others]
            case _:
                lines.append(f"{indent}{head}{_simple(statement)};")


C = Printer("#pragma GCC unroll", "long")
CUDA = Printer("#pragma unroll", "int")
PRINTERS = {"c": C, "cuda": CUDA}


def _statement(inner: Inner, brief: bool = False) -> Statement:
    """Return lines in braces; without them, where they are one statement."""
    if isinstance(inner, str):
        return Lines((inner,))
    return Lines(tuple(inner)) if brief else Block((Lines(tuple(inner)),))


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
    step = f"{name}++" if loop.step is None else f"{name} += {loop.step}"
    also = "".join(f", {other} = {value}" for other, value in loop.also)
    return f"for ({loop.kind} {name} = {loop.first}{also}; {name} < {loop.end}; {step})"

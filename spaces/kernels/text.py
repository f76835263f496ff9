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
    While,
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
        head = _head(kind or self.integer, name, str(first), str(end), step)
        lines = _around(head, inner, brief)
        return lines if unroll is None else [self._pragma(unroll), *lines]

    def when(
        self, test: str, inner: Inner, otherwise: Inner | None = None, *, brief: bool = False
    ) -> list[str]:
        """Return the lines of a condition, with lines for where it holds and does not."""
        lines = _around(f"if ({test})", inner)
        if otherwise is None:
            return lines
        return [*lines[:-1], *_around(f"{lines[-1]} else", otherwise, brief)]

    def block(self, *lines: str) -> list[str]:
        """Return lines in a scope of their own."""
        return ["{", *[f"  {line}" for line in lines], "}"]

    def _pragma(self, unroll: int | bool) -> str:
        return self.unroll if unroll is True else f"{self.unroll} {int(unroll)}"

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
                    lines.append(f"{indent}{self._pragma(statement.unroll)}")
                    indent, head = f"  {indent}" if head else indent, ""
                self._write(statement.inner, indent, lines, f"{head}{_loop(statement)} ")
            case While():
                self._write(statement.inner, indent, lines, f"{head}while ({statement.test}) ")
            case Condition():
                self._write(statement.then, indent, lines, f"{head}if ({statement.test}) ")
                if statement.otherwise is not None:
                    last = lines.pop().removeprefix(indent)
                    self._write(statement.otherwise, indent, lines, f"{last} else ")
            case Lines():
                lines += [f"{indent}{line}" for line in statement.lines]
            case _:
                lines.append(f"{indent}{head}{_simple(statement)};")


C = Printer("#pragma GCC unroll", "long")
CUDA = Printer("#pragma unroll", "int")
PRINTERS = {"c": C, "cuda": CUDA}


def _around(head: str, inner: Inner, brief: bool = False) -> list[str]:
    """Return lines in braces; without them, where they are one statement."""
    if isinstance(inner, str):
        return [f"{head} {inner}"]
    if not brief:
        return [f"{head} {{", *[f"  {line}" for line in inner], "}"]
    first, *others = inner
    if first.startswith("#"):
        return [head, *[f"  {line}" for line in inner]]
    return [f"{head} {first}", *others]


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
    also = "".join(f", {other} = {value}" for other, value in loop.also)
    return _head(loop.kind, loop.name, f"{loop.first}{also}", loop.end, loop.step)


def _head(kind: str, name: str, first: str, end: str, step: int | str | None) -> str:
    turn = f"{name}++" if step is None else f"{name} += {step}"
    return f"for ({kind} {name} = {first}; {name} < {end}; {turn})"

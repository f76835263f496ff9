"""The text of statements, one to one: the only place with braces, pragmas and ``for``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tilewright.spaces.kernels.statements import (
    Assignment,
    Block,
    Call,
    Condition,
    Declaration,
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
        return [line for statement in statements for line in self._statement(statement)]

    def _statement(self, statement: Statement) -> Iterator[str]:
        match statement:
            case Block(statements):
                yield "{"
                yield from _indented(self.lines(statements))
                yield "}"
            case Condition():
                yield from self._condition(statement)
            case Loop():
                yield from self._loop(statement)
            case _:
                yield f"{_simple(statement)};"

    def _condition(self, statement: Condition) -> Iterator[str]:
        *then, last = self._under(f"if ({statement.test})", statement.then)
        yield from then
        if statement.otherwise is None:
            yield last
        else:
            yield from self._under(f"{last} else", statement.otherwise)

    def _loop(self, loop: Loop) -> Iterator[str]:
        if loop.unroll is not None:
            yield self.unroll if loop.unroll is True else f"{self.unroll} {int(loop.unroll)}"
        name = loop.name
        step = f"{name}++" if loop.step == "1" else f"{name} += {loop.step}"
        head = f"for ({loop.kind} {name} = {loop.first}; {name} < {loop.end}; {step})"
        yield from self._under(head, loop.inner)

    def _under(self, head: str, statement: Statement) -> Iterator[str]:
        """Yield a statement after its head: on the same line, but for a pragma."""
        first, *others = self._statement(statement)
        if first.startswith("#"):
            yield from (head, first, *_indented(others))
        else:
            yield from (f"{head} {first}", *others)


C = Printer("#pragma GCC unroll")
CUDA = Printer("#pragma unroll")


def _simple(statement: Statement) -> str:
    match statement:
        case Declaration(kind, name, value, count):
            space = "" if kind.endswith("*") else " "
            array = "" if count is None else f"[{count}]"
            start = "" if value is None else f" = {value}"
            return f"{kind}{space}{name}{array}{start}"
        case Assignment(place, value, operator):
            return f"{place} {operator}= {value}"
        case Call(function, arguments):
            return f"{function}({', '.join(arguments)})"
        case Return():
            return "return"
    raise TypeError(f"{statement} is no simple statement")


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)

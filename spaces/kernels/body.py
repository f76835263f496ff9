"""A kernel's body while it is written: statements in scopes, whose names are checked at once.

    body = Body(given=("x", "y"))
    with body.loop("int", "i", 8, unroll=True) as i:
        value = body.let("float", "value", f"tw::load_global(x + {i})")
        body.call("tw::store_global", f"y + {i}", value)
    CUDA.lines(body.statements)

A name that no open scope declares, one that an open scope has already, and one that nothing reads
raise :class:`NameError` where they are written. Nothing is rewritten: a body prints one to one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache

from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.kernels.statements import (
    Assignment,
    Block,
    Call,
    Condition,
    Declaration,
    Loop,
    Return,
    Statement,
    While,
)

Value = Index | int | str
"""An index, a number, or the C text of any other expression."""

_NAME = re.compile(r"(?<![\w.>:<])[A-Za-z_]\w*(?![\w(:]|<\w)")
_TYPES = {"bool", "char", "int", "long", "unsigned", "signed", "float", "double", "void", "const"}
_TYPES |= {"f16", "bf16", "e4m3", "e5m2"}
_TYPES |= {f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)}
_WORDS = frozenset({*_TYPES, "true", "false", "threadIdx", "blockIdx"})
_REMEMBERED = 65536  # texts, since schedules of a space share most of theirs


class Body:
    """Statements that are written one after the other; ``given`` are names from outside. None of
    them are given where names are not checked, as those of text are not."""

    def __init__(self, given: Iterable[str] | None = ()) -> None:
        self._is_checked = given is not None
        self._known, self._unread = set(given or ()), set[str]()
        self._scopes: list[tuple[list[str], list[Statement]]] = [([], [])]  # their own names

    @property
    def statements(self) -> tuple[Statement, ...]:
        """All statements so far, of a body whose scopes are closed."""
        ((_, statements),) = self._scopes
        self._check_read(self._unread)
        return tuple(statements)

    @property
    def names(self) -> Iterable[str]:
        """All names of the open scopes."""
        return self._known

    # -- simple statements -----------------------------------------------------------------------

    def let(
        self,
        kind: str,
        name: str,
        value: Value | None = None,
        count: int | tuple[int, ...] | None = None,
    ) -> str:
        """Declare ``name`` of a C type, an array if there is a ``count``, and return it."""
        text = None if value is None else self.read(value)
        self._declare(name)
        self.add(Declaration(kind, name, text, count))
        return name

    def assign(self, place: str, value: Value, operator: str = "") -> None:
        """Write ``place = value``, or ``place operator= value``."""
        self.add(Assignment(self.read(place), self.read(value), operator))

    def call(self, function: str, *arguments: Value) -> None:
        """Call a function for its effect."""
        self.add(Call(function, tuple(map(self.read, arguments))))

    def leave(self) -> None:
        """Let the thread end here."""
        self.add(Return())

    # -- scopes ----------------------------------------------------------------------------------

    @contextmanager
    def block(self) -> Iterator[None]:
        """Give what is written inside a scope of its own."""
        self.open()
        yield
        self.add(self.close())

    @contextmanager
    def when(self, test: Value, brief: bool = False) -> Iterator[None]:
        """Run what is written inside where ``test`` holds; ``brief`` is one statement, without
        braces."""
        text = self.read(test)
        self.open()
        yield
        self.add(Condition(text, self.close(brief)))

    def where(self, tests: Sequence[str], brief: bool = False) -> AbstractContextManager[None]:
        """Run what is written inside where all ``tests`` hold; ``brief`` is one statement."""
        if tests:
            return self.when(" && ".join(tests), brief)
        return nullcontext() if brief else self.block()

    @contextmanager
    def otherwise(self, brief: bool = False) -> Iterator[None]:
        """Run what is written inside where the condition before does not hold."""
        condition = self._scopes[-1][1].pop()
        assert isinstance(condition, Condition)
        self.open()
        yield
        self.add(Condition(condition.test, condition.then, self.close(brief)))

    @contextmanager
    def loop(
        self,
        kind: str,
        name: str,
        end: Value,
        *,
        first: Value = 0,
        step: Value = 1,
        unroll: int | bool | None = None,
        brief: bool = False,
    ) -> Iterator[Index]:
        """Run what is written inside for ``name`` from ``first`` to before ``end``, and give the
        index of it."""
        start, stop, by = map(self.read, (first, end, step))
        self.open(name)
        yield variable(name, None if isinstance(end, str) else end)
        turn = None if by == "1" else by
        self.add(Loop(kind, name, start, stop, turn, self.close(brief), unroll))

    @contextmanager
    def during(self, test: Value) -> Iterator[None]:
        """Run what is written inside as long as ``test`` holds before it."""
        text = self.read(test)
        self.open()
        yield
        self.add(While(text, self.close()))

    def open(self, *names: str) -> None:
        """Open a scope that has ``names``, which need not be read."""
        self._check_new(*names)
        self._known.update(names)
        self._scopes.append((list(names), []))

    def close(self, brief: bool = False) -> Statement:
        """Return what was written in the innermost scope, which ends."""
        names, statements = self._scopes.pop()
        self._check_read(self._unread.intersection(names))
        self._known.difference_update(names)
        if not brief:
            return Block(tuple(statements))
        (statement,) = statements
        return statement

    def add(self, statement: Statement) -> None:
        """Write a statement whose names are known."""
        self._scopes[-1][1].append(statement)

    # -- names -----------------------------------------------------------------------------------

    def _declare(self, name: str) -> None:
        self._check_new(name)
        self._known.add(name)
        self._unread.add(name)
        self._scopes[-1][0].append(name)

    def read(self, value: Value) -> str:
        """Return the text of a value whose names are known."""
        if isinstance(value, int):
            return str(value)
        text = value if isinstance(value, str) else value.text
        if self._is_checked:
            names = names_in(text)
            if not names <= self._known:
                missing = ", ".join(sorted(names - self._known))
                raise NameError(f"{missing} is not declared, in {text}")
            self._unread -= names
        return text

    def _check_new(self, *names: str) -> None:
        if not self._known.isdisjoint(names):
            raise NameError(f"{', '.join(names)} is declared in a scope that is open")

    def _check_read(self, unread: set[str]) -> None:
        if unread and self._is_checked:
            raise NameError(f"{', '.join(sorted(unread))}: declared, and nothing reads it")


@lru_cache(maxsize=_REMEMBERED)
def names_in(text: str) -> frozenset[str]:
    """Return the variables that a C expression names; functions, members and types are none."""
    return frozenset(_NAME.findall(text)) - _WORDS

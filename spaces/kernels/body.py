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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
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
)

Value = Index | int | str
"""An index, a number, or the C text of any other expression."""

_NAME = re.compile(r"(?<![\w.>:<])[A-Za-z_]\w*(?![\w(:]|<\w)")
_TYPES = {"bool", "char", "int", "long", "unsigned", "signed", "float", "double", "void", "const"}
_TYPES |= {"f16", "bf16", "e4m3", "e5m2"}
_TYPES |= {f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)}
_WORDS = frozenset({*_TYPES, "true", "false", "threadIdx", "blockIdx"})
_REMEMBERED = 65536  # texts, since schedules of a space share most of theirs


@dataclass
class _Scope:
    """The names of one scope, those that nothing has read yet, and its statements."""

    names: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    statements: list[Statement] = field(default_factory=list)


class Body:
    """Statements that are written one after the other; ``given`` are names from outside."""

    def __init__(self, given: Iterable[str] = ()) -> None:
        self._scopes = [_Scope(set(given))]

    @property
    def statements(self) -> tuple[Statement, ...]:
        """All statements so far, of a body whose scopes are closed."""
        (scope,) = self._scopes
        self._check_read(scope)
        return tuple(scope.statements)

    # -- simple statements -----------------------------------------------------------------------

    def let(
        self, kind: str, name: str, value: Value | None = None, count: int | None = None
    ) -> str:
        """Declare ``name`` of a C type, an array if there is a ``count``, and return it."""
        text = None if value is None else self._read(value)
        self._declare(name)
        self._add(Declaration(kind, name, text, count))
        return name

    def assign(self, place: str, value: Value, operator: str = "") -> None:
        """Write ``place = value``, or ``place operator= value``."""
        self._add(Assignment(self._read(place), self._read(value), operator))

    def call(self, function: str, *arguments: Value) -> None:
        """Call a function for its effect."""
        self._add(Call(function, tuple(map(self._read, arguments))))

    def leave(self) -> None:
        """Let the thread end here."""
        self._add(Return())

    # -- scopes ----------------------------------------------------------------------------------

    @contextmanager
    def block(self) -> Iterator[None]:
        """Give what is written inside a scope of its own."""
        inner = _Scope()
        with self._scope(inner):
            yield
        self._add(Block(tuple(inner.statements)))

    @contextmanager
    def when(self, test: Value, brief: bool = False) -> Iterator[None]:
        """Run what is written inside where ``test`` holds; ``brief`` is one statement, without
        braces."""
        text, inner = self._read(test), _Scope()
        with self._scope(inner):
            yield
        self._add(Condition(text, _statement(inner, brief)))

    @contextmanager
    def otherwise(self, brief: bool = False) -> Iterator[None]:
        """Run what is written inside where the condition before does not hold."""
        condition = self._scopes[-1].statements.pop()
        assert isinstance(condition, Condition)
        inner = _Scope()
        with self._scope(inner):
            yield
        self._add(Condition(condition.test, condition.then, _statement(inner, brief)))

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
        start, stop, by = map(self._read, (first, end, step))
        inner = _Scope()
        with self._scope(inner):
            self._declare(name)
            inner.unread.clear()  # a loop may only count
            yield variable(name, end if isinstance(end, int | Index) else None)
        self._add(Loop(kind, name, start, stop, by, _statement(inner, brief), unroll))

    # -- names -----------------------------------------------------------------------------------

    def _add(self, statement: Statement) -> None:
        self._scopes[-1].statements.append(statement)

    @contextmanager
    def _scope(self, scope: _Scope) -> Iterator[None]:
        self._scopes.append(scope)
        yield
        self._check_read(self._scopes.pop())

    def _declare(self, name: str) -> None:
        if any(name in scope.names for scope in self._scopes):
            raise NameError(f"{name} is declared in a scope that is open")
        self._scopes[-1].names.add(name)
        self._scopes[-1].unread.add(name)

    def _read(self, value: Value) -> str:
        """Return the text of a value whose names are known."""
        text = value.text if isinstance(value, Index) else str(value)
        for name in names_in(text):
            for scope in reversed(self._scopes):
                if name in scope.names:
                    scope.unread.discard(name)
                    break
            else:
                raise NameError(f"{name} is not declared, in {text}")
        return text

    def _check_read(self, scope: _Scope) -> None:
        if scope.unread:
            raise NameError(f"{', '.join(sorted(scope.unread))}: declared, and nothing reads it")


@lru_cache(maxsize=_REMEMBERED)
def names_in(text: str) -> frozenset[str]:
    """Return the variables that a C expression names; functions, members and types are none."""
    return frozenset(_NAME.findall(text)) - _WORDS


def _statement(scope: _Scope, brief: bool) -> Statement:
    if not brief:
        return Block(tuple(scope.statements))
    (statement,) = scope.statements
    return statement

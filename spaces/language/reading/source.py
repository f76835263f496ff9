"""The text of a program, cut into statements that know where they stand."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language.reading import spelling

MAX_LENGTH = 16000
"""Characters of a program."""
MAX_STATEMENTS = 400
MOST_SHOWN = 48
"""Characters of a statement that a message repeats."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
RESERVED = ("axes", "where", "inf")
NAMES = f"up to 64 letters, digits and _, but none of {', '.join(RESERVED)}"
_FOREIGN = re.compile(r"[^A-Za-z0-9_.,+*/%()\[\]{} <>=!:-]")
_GLUED = re.compile(r"(?<![\w.])(\d++\.?+\d*+|\.\d++)([eE][+-]?\d++)?+[A-Za-z_]")
"""A number with a letter at its end, as in ``1if``, of which Python's parser would warn."""

_EMPTY = re.compile(r"\[ *\]")


@dataclass(frozen=True)
class Statement:
    """One statement, without comments and blanks around it, and the line on which it begins."""

    text: str
    line: int

    def fail(self, problem: str, position: int = 0) -> NoReturn:
        """Refuse the statement because of what stands at ``position``."""
        where = f"line {self.line}, character {position + 1} of {shown(self._around(position))}"
        raise InputError(f"{where}: {problem}")

    def _around(self, position: int) -> str:
        """Return the text, or what stands around the position of a long one."""
        if len(self.text) <= MOST_SHOWN:
            return self.text
        start = max(0, min(position - MOST_SHOWN // 4, len(self.text) - MOST_SHOWN))
        end = start + MOST_SHOWN
        before, after = "..." * (start > 0), "..." * (end < len(self.text))
        return f"{before}{self.text[start:end]}{after}"

    def check(self) -> None:
        """Refuse characters that the language has no use for, and brackets around nothing."""
        text = self.text.replace("->", "  ")
        if foreign := _FOREIGN.search(text):
            near = spelling.CHARACTERS.get(foreign.group(), "")
            problem = f"unexpected character {foreign.group()!r}"
            self.fail(f"{problem}; {near}" if near else problem, foreign.start())
        if glued := _GLUED.search(text):
            problem = f"a number that ends in {glued.group()[-1]!r} is not part of the language"
            self.fail(problem, glued.end() - 1)
        if empty := _EMPTY.search(text):
            self.fail("brackets without an axis; allowed: none, as in y = 2 * x", empty.start())

    def tree(self) -> ast.stmt:
        """Return Python's syntax tree of the statement."""
        return self._parsed(self.text, 0)[0]

    def expressions(self, start: int) -> list[ast.expr]:
        """Return Python's trees of the expressions, divided by commas, that begin at ``start``."""
        blanks = len(self.text[start:]) - len(self.text[start:].lstrip())
        # A call, so that its arguments are the expressions and stand where they stood.
        offset = start + blanks - 2
        statements = self._parsed(f"f({self.text[start + blanks :]})", offset)
        match statements:
            case [ast.Expr(value=ast.Call(func=ast.Name(id="f"), args=parts, keywords=[]) as call)]:
                if call.end_col_offset == len(self.text) - offset + 1:
                    for node in ast.walk(call):
                        if isinstance(node, ast.expr):
                            node.col_offset += offset
                            node.end_col_offset = (node.end_col_offset or 0) + offset
                    return parts
        self.fail("malformed; allowed: expressions with commas between them", start)

    def _parsed(self, text: str, offset: int) -> list[ast.stmt]:
        try:
            found = ast.parse(text).body
        except SyntaxError as error:
            position = max((error.offset or 1) - 1 + offset, 0)
            self.fail(f"malformed ({error.msg.split(';')[0]})", min(position, len(self.text)))
        except (RecursionError, MemoryError, ValueError):
            self.fail("too deeply nested, or a number too long")
        if len(found) != 1:
            self.fail("malformed; allowed: one statement a line")
        return found


def statements(text: str) -> list[Statement]:
    """Split ``text`` into statements at line ends and semicolons; a line that ends within an open
    bracket continues in the next. ``#`` begins a comment.
    """
    if not isinstance(text, str):
        raise InputError(f"a program of type {type(text).__name__} was given; allowed: text")
    if len(text) > MAX_LENGTH:
        raise InputError(f"the program has {len(text)} characters; allowed: {MAX_LENGTH}")
    found = list(_statements(text))
    if len(found) > MAX_STATEMENTS:
        raise InputError(f"the program has {len(found)} statements; allowed: {MAX_STATEMENTS}")
    for statement in found:
        statement.check()
    return found


def _statements(text: str) -> Iterator[Statement]:
    waiting, start, opened = "", 0, 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        for part in line.split("#")[0].split(";"):
            part = part.replace("\t", " ").strip()
            start = start if waiting else number
            waiting = f"{waiting} {part}".strip()
            opened += sum(part.count(c) for c in "([{") - sum(part.count(c) for c in ")]}")
            if waiting and opened <= 0:
                yield Statement(waiting, start)
                waiting, opened = "", 0
    if waiting:
        Statement(waiting, start).fail("a bracket is never closed")

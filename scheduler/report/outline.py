"""Read the structure of a kernel's source: which statement is inside which loop of which function.

Generated C and CUDA C++ has a statement a line and closes what it opens, so braces are enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tilewright.scheduler.cli.text import counted

LONGEST = 64  # lines of one statement


class Form(StrEnum):
    """The form of a statement."""

    NAMESPACE = "namespace"
    FUNCTION = "function"
    LOOP = "loop"
    CONDITION = "condition"
    BLOCK = "block"
    STATEMENT = "statement"
    NOTE = "note"  # for the compiler, or nothing


@dataclass(frozen=True)
class Line:
    """One line of a source: the statement that it begins or continues, in words.

    ``parent`` is the index of the line that opens what it is in, None at the outermost level.
    ``turns`` of a loop are how many there are at most, None where the text has no number.
    ``uses`` are the other functions of the source that it names.
    """

    form: Form
    name: str
    words: str
    parent: int | None = None
    turns: int | None = None
    uses: tuple[str, ...] = ()
    continues: bool = False


_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'|//.*')
_FUNCTION = re.compile(r"(\w+)\s*\((?:[^()]|\([^()]*\))*\)\s*(?:const\s*)?\{")
_LOOP = re.compile(r"for \((?:[\w:]+ )*(\w+) = ([^;,]+)(.*?); \1 (?:<=?|!=) ([^;]+); ([^;]*?)\) ?")
_CLIPPED = re.compile(r"\? \w+ : (\d+)")
_STEP = re.compile(r"\+= (\d+)$")
_CONSTANT = re.compile(r"const \w+ (\w+) = (\d+);")
_DECLARATION = re.compile(
    r"(?:(?:const|static|volatile|register|__shared__|unsigned) |[\w:]+\([^()]*\) )*"
    r"[\w:]+(?:<[^=;]*?>)?(?: \w+)?(?: (?:const|restrict))? ?[ *&]\**"
    r"(\w+)((?:\[[^=]*?\])*)(?: = (.*)| *\{.*\}|, .*)?;$"
)
_ASSIGNMENT = re.compile(r"([\w.\->*\[\]()+ /%:]+?) (?:([-+*/|&^%]|<<|>>))?= (.*)$")
_CALL = re.compile(r"([A-Za-z_][\w:]*(?:->\w+)?)(?:<[^;()]*>)?\(")
_NAME = re.compile(r"[A-Za-z_]\w*")
_MOST = 60  # characters of an expression in words
_KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "else"}


def outline(source: str, entry: str = "") -> list[Line]:
    """Return what each line of a source is; ``entry`` is left out of functions' names."""
    statements = list(_statements(source.splitlines()))
    known = {found[1] for _, text, _ in statements if (found := _FUNCTION.search(text))}
    reader = _Reader(known - _KEYWORDS, entry)
    lines: list[Line] = []
    opened: list[int] = []
    for count, text, depth in statements:
        del opened[depth:]
        parent = opened[-1] if opened else None
        outer = parent is None or lines[parent].form is Form.NAMESPACE
        first, line = len(lines), replace(reader.line(text, outer), parent=parent)
        lines += [line, *[replace(line, continues=True)] * (count - 1)]
        opened += [first] * _net(text)
    return lines


def path_of(lines: Sequence[Line], index: int) -> list[int]:
    """Return the lines that a line is inside of, the outermost first, and itself."""
    found = [index]
    while (parent := lines[found[0]].parent) is not None:
        found.insert(0, parent)
    return found


def _statements(lines: Sequence[str]) -> Iterator[tuple[int, str, int]]:
    """Yield the number of lines of each statement, its text without strings and comments, and how
    many braces are open around it."""
    depth = 0
    pending: list[str] = []
    for raw in lines:
        pending.append(_STRING.sub('""', raw).strip())
        text = " ".join(pending).strip()
        if text and text[-1] not in ";{}:" and not text.startswith("#") and len(pending) < LONGEST:
            continue
        rest = text.lstrip("} ")
        depth = max(0, depth - text[: len(text) - len(rest)].count("}"))
        yield len(pending), text, depth
        depth = max(0, depth + rest.count("{") - rest.count("}"))
        pending = []
    if pending:
        yield len(pending), " ".join(pending), depth


def _net(text: str) -> int:
    """Return how many braces a statement leaves open."""
    rest = text.lstrip("} ")
    return max(0, rest.count("{") - rest.count("}"))


class _Reader:
    """Reads statements, and keeps the numbers that constants have."""

    def __init__(self, functions: set[str], entry: str) -> None:
        self._functions, self._entry = functions, entry
        self._constants: dict[str, int] = {}

    def line(self, text: str, outer: bool) -> Line:
        """Return what a statement is; an ``outer`` one is in no function."""
        if not text.strip("} ;") or text.startswith("#"):
            return Line(Form.NOTE, "", "a note for the compiler" if "#" in text[:1] else "")
        if text.startswith("namespace "):
            return Line(Form.NAMESPACE, "", _brief(text.rstrip("{ ")))
        if outer and (found := _FUNCTION.search(text)):
            self._constants = {}
            name = self._short(found[1])
            return Line(
                Form.FUNCTION, found[1], f"function {name}", uses=self._uses(text, found[1])
            )
        if found := _CONSTANT.match(text):
            self._constants[found[1]] = int(found[2])
        text = text.lstrip("} ")
        if found := _LOOP.match(text):
            return self._loop(text, found)
        uses = self._uses(text)
        if text.split("(")[0].strip() in ("for", "while", "do", "do {"):
            return Line(
                Form.LOOP, "", f"loop {_brief(text.removeprefix('for ').rstrip('{ '))}", uses=uses
            )
        if text.startswith(("if ", "if(", "else", "switch")):
            return Line(Form.CONDITION, "", self._condition(text), uses=uses)
        if text == "{":
            return Line(Form.BLOCK, "", "")
        return Line(Form.STATEMENT, "", self._words(text), uses=uses)

    def _loop(self, text: str, found: re.Match[str]) -> Line:
        name, start, clips, end, step = found.groups()
        bound = _CLIPPED.search(clips)
        limit = bound[1] if bound else end
        turns = int(limit) if limit.isdigit() else self._constants.get(limit)
        if turns is not None and start.isdigit():
            by = _STEP.search(step)
            turns = -(-(turns - int(start)) // (int(by[1]) if by else 1))
        most = "at most " if bound else ""
        words = f"loop over {name}, " + (
            f"to {_brief(end)}" if turns is None else f"{most}{counted(turns, 'turn')}"
        )
        return Line(Form.LOOP, name, words, turns=turns, uses=self._uses(text))

    def _words(self, text: str) -> str:
        """Return a simple statement in words."""
        if text.startswith("return"):
            return "returns"
        if found := _DECLARATION.match(text):
            name, array, value = found.groups()
            kind = "array " if array else ""
            return f"declares {kind}{name}{self._by(value or '')}"
        if (found := _ASSIGNMENT.match(text)) and "(" not in found[1].split("[")[0]:
            verb = "adds to" if found[2] == "+" else "updates" if found[2] else "sets"
            return f"{verb} {_brief(found[1])}{self._by(found[3])}"
        if found := _CALL.match(text):
            return f"calls {self._short(found[1])}"
        return _brief(text)

    def _condition(self, text: str) -> str:
        """Return a condition in words, with the statement of one that has no braces."""
        rest = text.removeprefix("else").strip()
        words = "otherwise" if text.startswith("else") else ""
        if rest.startswith("if"):
            test, rest = _bracketed(rest.removeprefix("if").strip())
            words = f"{words}, where {_brief(test)}".removeprefix(", ")
        rest = rest.strip("{} ")
        return f"{words}: {self._words(rest)}" if rest else words or _brief(text)

    def _by(self, value: str) -> str:
        called = _CALL.match(value)
        return f" by {self._short(called[1])}" if called and called[1] not in _KEYWORDS else ""

    def _short(self, name: str) -> str:
        """Return a function's name without what all of the kernel's begin with."""
        if self._entry and name.startswith(self._entry):
            return name.removeprefix(self._entry).strip("_") or "called first"
        return name.removeprefix("tw::").removeprefix("tw_")

    def _uses(self, text: str, own: str = "") -> tuple[str, ...]:
        names = dict.fromkeys(_NAME.findall(text))
        return tuple(name for name in names if name in self._functions and name != own)


def _bracketed(text: str) -> tuple[str, str]:
    """Return what is inside of the brackets at the start of a text, and what follows them."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[1:place], text[place + 1 :]
    return text, ""


def _brief(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"

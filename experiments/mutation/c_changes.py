"""Small changes of C and C++ code, found in its text: another operator, condition, number, or a
statement less. Comments, texts and lines of the preprocessor are left alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from experiments.mutation.changes import Change

HIDDEN = re.compile(
    rb"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
OPERATORS = {
    " < ": " <= ",
    " <= ": " < ",
    " > ": " >= ",
    " >= ": " > ",
    " == ": " != ",
    " != ": " == ",
    " && ": " || ",
    " || ": " && ",
    " + ": " - ",
    " - ": " + ",
    " * ": " / ",
    " / ": " * ",
    " % ": " / ",
    " << ": " >> ",
    " >> ": " << ",
    " & ": " | ",
    " | ": " & ",
    " += ": " -= ",
    " |= ": " &= ",
    "++": "--",
}
"""Operators, as the house style sets them, and what takes their places."""

NUMBER = re.compile(rb"(?<![\w.])\d+(?![\w.])")
FRACTION = re.compile(rb"(?<![\w.])\d+\.\d*(?:e[+-]?\d+)?|(?<![\w.])\d+e[+-]?\d+")
CONDITION = re.compile(rb"\b(?:if|while) \(")
NOT = re.compile(rb"(?<=[\s(])!(?=[\w(])")
STATEMENT = re.compile(rb"^[ \t]+(?:[\w.>\[\]*-]+ [+|-]?= [^;{}\n]*|[\w.>-]+\([^;{}\n]*\));$", re.M)
JUMP = re.compile(rb"\b(?:continue|break);")


def c_changes(source: bytes) -> list[Change]:
    """Return all changes of a file, in the order of the text."""
    shown = HIDDEN.sub(lambda hidden: re.sub(rb"[^\n]", b" ", hidden[0]), source)
    found = (_operators(shown), _numbers(shown), _conditions(shown, source), _less(shown))
    return sorted({change for changes in found for change in changes})


def _operators(shown: bytes) -> Iterator[Change]:
    for written, instead in OPERATORS.items():
        for found in re.finditer(re.escape(written.encode()), shown):
            yield Change(found.start(), found.end(), "operator", instead)


def _numbers(shown: bytes) -> Iterator[Change]:
    for found in NUMBER.finditer(shown):
        yield Change(found.start(), found.end(), "constant", str(int(found[0]) + 1))
    for found in FRACTION.finditer(shown):
        yield Change(found.start(), found.end(), "constant", repr(2 * float(found[0]) + 1))


def _conditions(shown: bytes, source: bytes) -> Iterator[Change]:
    for found in CONDITION.finditer(shown):
        start, depth, stop = found.end(), 1, found.end()
        while depth and stop < len(shown):
            depth += {b"(": 1, b")": -1}.get(shown[stop : stop + 1], 0)
            stop += 1
        test = source[start : stop - 1].decode()
        yield Change(start, stop - 1, "condition", f"!({test})")
    for found in NOT.finditer(shown):
        yield Change(found.start(), found.end(), "condition", "")


def _less(shown: bytes) -> Iterator[Change]:
    for found in STATEMENT.finditer(shown):
        yield Change(found.start(), found.end(), "removed", ";")
    for found in JUMP.finditer(shown):
        other = "break;" if found[0] == b"continue;" else "continue;"
        yield Change(found.start(), found.end(), "jump", other)

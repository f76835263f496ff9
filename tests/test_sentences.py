"""The sentences of errors: short, in one line, the cause before what to do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("costmodel", "measure", "scheduler", "spaces")
LONGEST = 200  # characters of a sentence
VALUE = 12  # characters of an ordinary value that a sentence repeats
ORDER = re.compile(r"(allowed|did you mean|use|give|pass|please|must)\b", re.IGNORECASE)
"""The beginning of a sentence on what to do, before which the cause must stand."""


def sources() -> dict[Path, ast.Module]:
    return {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }


def kinds(trees: dict[Path, ast.Module]) -> set[str]:
    """InputError, and the names of the classes that are one."""
    found, before = {"InputError"}, 0
    classes = [n for tree in trees.values() for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    while len(found) > before:
        before = len(found)
        found |= {c.name for c in classes if {getattr(b, "id", "") for b in c.bases} & found}
    return found


def literal(node: ast.expr) -> str | None:
    """The text of an argument with ``x`` for each character of a value; None if it has no text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(literal(part) or "x" * VALUE for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [literal(part) for part in (node.left, node.right)]
        return None if parts == [None, None] else "".join(part or "x" * VALUE for part in parts)
    return None


def sentences(tree: ast.Module, names: set[str]) -> Iterator[tuple[int, str]]:
    """The line and the text of each error that is made."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in names:
            for argument in node.args:
                if (text := literal(argument)) is not None:
                    yield node.lineno, text


def fault(text: str) -> str:
    """Why a sentence is refused; empty if it is not."""
    if len(text) > LONGEST:
        return f"it has {len(text)} characters"
    if "\n" in text:
        return "it has several lines"
    if text.endswith("."):
        return "it ends in a full stop, and commands print it as a part of a line"
    if ORDER.match(text):
        return "it says what to do before it says why"
    return ""


def test_the_sentences_of_errors_are_short_and_begin_with_the_cause() -> None:
    trees = sources()
    names = kinds(trees)
    assert "LockedError" in names
    made = [(path, *each) for path, tree in trees.items() for each in sentences(tree, names)]
    assert len(made) > 300
    found = [
        f"{path.relative_to(ROOT)}:{line}: {why}: {text}"
        for path, line, text in made
        if (why := fault(text))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("InputError('m=0 is too small; allowed: 1 and more')", ""),
        ("InputError(f'{a} is none' + b)", ""),
        ("InputError('allowed: 1 and more, and not 0')", "what to do before"),
        ("InputError('m=0 is too small.')", "full stop"),
        ("InputError('m=0\\nis too small')", "several lines"),
        (f"InputError(f'{{a}}{'y' * 190}')", "202 characters"),
        (f"InputError(a + '{'y' * 190}' + b)", "214 characters"),
    ],
)
def test_a_fault_is_found(source: str, why: str) -> None:
    ((_, text),) = sentences(ast.parse(source), {"InputError"})
    assert why in fault(text)
    assert bool(why) is bool(fault(text))

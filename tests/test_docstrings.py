"""Docstrings are sentences: none continues the name that it describes by a relative clause. Those
of attributes, which stand below an assignment, are docstrings, too."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CLEAN = ("costmodel", "examples", "experiments", "measure", "scheduler", "spaces")
EXEMPT = ("spaces/cpu", "spaces/cuda")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
REFUSED = {"Of", "What", "That", "Those", "Whether", "Which"}


def offenders(source: str) -> Iterator[str]:
    """The docstrings in a module's ``source`` that begin with a refused word."""
    for node in ast.walk(ast.parse(source)):
        for part in node.body if isinstance(node, DOCUMENTED) else ():
            match part:
                case ast.Expr(ast.Constant(str(text))) if text.split(maxsplit=1)[:1]:
                    if text.split(maxsplit=1)[0].strip(",.:;") in REFUSED:
                        yield f"line {part.lineno}: {text}"


def modules(package: str) -> list[Path]:
    """All modules of a package that the rule holds for."""
    exempt = [ROOT / folder for folder in EXEMPT]
    return [
        path
        for path in sorted((ROOT / package).rglob("*.py"))
        if not any(path.is_relative_to(folder) for folder in exempt)
    ]


@pytest.mark.parametrize("package", CLEAN)
def test_docstrings_begin_with_a_subject_or_a_verb(package: str) -> None:
    assert modules(package)
    found = [
        f"{path.relative_to(ROOT)}: {offender}"
        for path in modules(package)
        for offender in offenders(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("word", sorted(REFUSED))
def test_a_refused_beginning_is_found_wherever_it_stands(word: str) -> None:
    nested = f'class A:\n    """An a."""\n    async def _b(self):\n        """{word}, then."""\n'
    assert list(offenders(f'"""{word} it is."""\n')) == [f"line 1: {word} it is."]
    assert list(offenders(f'X = 1\n"""{word} it is."""\n')) == [f"line 2: {word} it is."]
    assert list(offenders(nested)) == [f"line 4: {word}, then."]


def test_other_beginnings_are_accepted() -> None:
    assert not list(offenders('"""Offers what is asked for."""\nx = "What"\n'))

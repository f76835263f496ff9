"""Complete the words of a command line: operators, their parameters and values, targets.

Each function returns the words that may stand where the cursor is. Shells keep those that begin
with what was typed.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from inspect import Parameter
from pathlib import Path

import typer

from tilewright.spaces.errors import InputError

LINE = "_TYPER_COMPLETE_ARGS"
"""The environment variable that holds the command line up to the cursor."""
CHOICES = {"dtype": ("float32", "bfloat16", "float16"), "a": ("row", "col")}
CHOICES |= {"b": (*CHOICES["a"], "packed"), "c": CHOICES["a"], "out": CHOICES["dtype"]}


def words_before() -> list[str]:
    """Return the words of the command line that a shell asks to complete, without the command's
    name and the word at the cursor; none if no shell asks."""
    line = os.environ.get(LINE, "")
    words = line.split()
    return words[1:] if line.endswith(" ") else words[1:-1]


def operators(context: typer.Context, arguments: list[str], incomplete: str) -> list[str]:
    """Return the names of all operators."""
    from tilewright.spaces.named import names

    return names()


def parameters(context: typer.Context, arguments: list[str], incomplete: str) -> list[str]:
    """Return the parameters of the operator that have no value yet, or the values that one had
    before."""
    operator = context.params.get("operator")
    name, equals, _ = incomplete.partition("=")
    if not operator or not str(operator).isidentifier():
        return []
    if equals:
        return [f"{name}={value}" for value in _values(context, operator, name)]
    given = {str(word).partition("=")[0] for word in context.params.get("parameters") or ()}
    return [f"{each}=" for each in _parameters(operator) if each not in given]


def targets(context: typer.Context, arguments: list[str], incomplete: str) -> list[str]:
    """Return the names of targets."""
    from tilewright.spaces.target import target_names

    return [*target_names(), "cpu:threads="]


def figures(context: typer.Context, arguments: list[str], incomplete: str) -> list[str]:
    """Return the names of the figures of a report."""
    from tilewright.scheduler.report.figures import FIGURES
    from tilewright.scheduler.report.jobs import WHOLE

    return [*FIGURES, *WHOLE]


def searches(context: typer.Context, arguments: list[str], incomplete: str) -> list[str]:
    """Return the names of searches."""
    from tilewright.scheduler.strategies.registry import SEARCHES

    return list(SEARCHES)


def suites(context: typer.Context, arguments: list[str], incomplete: str) -> list[str]:
    """Return the names of shipped suites."""
    from tilewright.scheduler.suites.suite import shipped_suites

    return shipped_suites()


def sections(context: typer.Context, arguments: list[str], incomplete: str) -> list[str]:
    """Return the names of the sections of the suite that was named."""
    from tilewright.scheduler.suites.suite import read_suite

    named = context.params.get("suite")
    try:
        return list(read_suite(str(named)).sections) if named else []
    except InputError:
        return []


def _parameters(operator: str) -> Mapping[str, Parameter]:
    """Return the parameters of an operator; none of an unknown one."""
    from tilewright.spaces.named import named

    try:
        return named(operator).parameters
    except InputError:
        return {}


def _values(context: typer.Context, operator: str, name: str) -> Iterable[str]:
    """Return the values of a parameter: what it may be, or was in workloads of the database."""
    from tilewright.measure.tables.workload_texts import texts_of
    from tilewright.spaces.settings import default_database

    known = _parameters(operator)
    if name in CHOICES and name in known and known[name].annotation is not int:
        return CHOICES[name]
    database = str(context.params.get("db") or default_database())
    texts = [] if "://" in database else texts_of(Path(database), operator)
    words = (word.partition("=") for text in texts for word in _split(text))
    return sorted({value for word, _, value in words if word == name and value})


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # it is no text of a workload
        return []

"""The operators by name, and how a workload is made from a name and parameters.

An operator is a function from validated parameters to a program. Everything after this module
(templates, search, cost model, database) sees what a program computes, and never an operator's
name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.validation.text import is_plain
from tilewright.spaces.workloads.workload import PROGRAM, Workload

if TYPE_CHECKING:
    from tilewright.spaces.language.program import Program

_PROGRAM = re.compile(r"\s*(#|axes\b|where\b|\w+\s*[\[:]|\w+\s*=.*[\[@])")
"""Says how a program's text begins, unlike an operator's name; the last form is a scalar's
stage."""
EXAMPLE = "such as 'matmul m=512 n=512 k=512'"


def workload(operator: str, /, **parameters: Any) -> Workload:
    """Return the workload of ``operator`` with ``parameters``, as Python values or their text.

    ``name=value`` words may follow the operator's name, as on the command line and in
    ``str(workload)``; a value with blanks is quoted:
    ``workload('matmul m=512 n=512 k=512 epilogue="relu(x + bias[n])"')``. Operators are those of
    :mod:`spaces.named`, or a program's text with its extents as parameters. An epilogue's scalars
    have brackets around nothing, ``scale[]``. What computes a product
    of two matrices is spelt as one, whatever it is called:
    ``workload("y[i,j] = sum[k](a[i,k] * b[k,j])", i=512, j=512, k=512)`` is a ``matmul``.

    Raises :class:`InputError` for an unknown operator or parameter, a missing dimension, a size
    that is no positive integer, an unknown dtype or layout, and a malformed epilogue or program.
    """
    if not isinstance(operator, str):
        raise InputError(f"{shown(operator)} is no operator; allowed: text, {EXAMPLE}")
    if _PROGRAM.match(operator):
        return program_workload(operator, parameters)
    try:
        name, *words = shlex.split(operator) or [""]
    except ValueError as error:  # a quotation without end
        raise InputError(f"{shown(operator)}: {error}; allowed: text, {EXAMPLE}") from None
    given = parameters_of(words, parameters)
    return program_workload(name, given) if _PROGRAM.match(name) else _named(name, given)


def program_workload(text: str, extents: Mapping[str, Any]) -> Workload:
    """Return the workload of a program's text with these extents, see :mod:`spaces.language`."""
    from tilewright.spaces.language import program
    from tilewright.spaces.language.reading.source import statements
    from tilewright.spaces.workloads.served import (
        workload_of,  # which makes workloads of the operators here
    )

    made = program(text, **extents)
    line = "; ".join(statement.text for statement in statements(text))
    given = {"text": line} | {name: made.extent.get(name, v) for name, v in extents.items()}
    return workload_of(made, PROGRAM, given if is_plain(line) else {})


def _named(operator: str, parameters: Mapping[str, Any], described: bool = False) -> Workload:
    """Return the workload of an operator's name and parameters, as people write them or as they are
    ``described``."""
    from tilewright.spaces.named import named
    from tilewright.spaces.workloads.served import workload_of

    found = named(operator)
    values = found.values(parameters)
    return workload_of(found.made(values, described), operator, values)


def as_workload(given: Workload | Program | str) -> Workload:
    """Return ``given`` itself, or the workload of a program, or that the text names, see
    :func:`workload`."""
    from tilewright.spaces.language.program import Program
    from tilewright.spaces.workloads.served import (
        workload_of,  # which makes workloads of the operators here
    )

    if isinstance(given, Program):
        return workload_of(given)
    return given if isinstance(given, Workload) else workload(given)


def parameters_of(words: Sequence[str], others: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Parse ``name=value`` words and add them to ``others``; :class:`InputError` if malformed."""
    parameters = dict(others or {})
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise InputError(
                f"{shown(word)} is not a parameter; allowed: name=value, such as m=512"
            )
        if name in parameters:
            raise InputError(f"parameter {shown(name)} is given twice")
        parameters[name] = value
    return parameters


def workload_from_json(data: Mapping[str, Any]) -> Workload:
    """Return the workload that :meth:`Workload.to_json` described; :class:`InputError` if
    malformed."""
    operator, parameters = data.get("operator"), data.get("parameters")
    if not isinstance(operator, str) or not isinstance(parameters, Mapping):
        raise InputError(f"not a workload: {shown(dict(data))}; needs 'operator' and 'parameters'")
    lines = data.get("program")
    if lines is not None:
        return _computation(operator, parameters, lines)
    return _named(operator, parameters, described=True)


def _computation(operator: str, parameters: Mapping[str, Any], lines: object) -> Workload:
    """Return the program of these lines; the operator and its parameters are names for people, who
    get them in the operator's order, or the program's."""
    from tilewright.spaces.language import program
    from tilewright.spaces.workloads.served import workload_of

    plain = all(isinstance(value, (int, float, str)) for value in parameters.values())
    if not isinstance(lines, list) or not plain or set(map(type, lines)) != {str}:
        raise InputError(f"not a program: {shown(lines)}; needs its lines, and plain parameters")
    made = program("\n".join(lines))
    places = {name: place for place, name in enumerate(_parameters(operator) or made.extent)}
    order = sorted(parameters, key=lambda name: places.get(name, len(places)))
    return workload_of(made, operator, {name: parameters[name] for name in order})


def _parameters(operator: str) -> Sequence[str]:
    """Return the names of an operator's parameters in their order; none of what is no operator."""
    from tilewright.spaces.named import named, names

    return list(named(operator).parameters) if operator in names() else []

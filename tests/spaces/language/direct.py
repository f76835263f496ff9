"""A program computed element by element in Python's own numbers: what evaluation is held to."""

from __future__ import annotations

import itertools
import math
import operator

import numpy as np

from tilewright.spaces.language.functions import FUNCTIONS
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Comparison,
    Negation,
    Number,
    Read,
    Select,
)

OPERATIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: (np.float64(a) / np.float64(b)).item(),
    "//": operator.floordiv,
    "%": operator.mod,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def compute(program, inputs):
    """All arrays of a program as dictionaries from indices to numbers."""
    arrays, shapes = {}, {}
    for o in program.operands:
        places = itertools.product(*map(range, o.shape))
        arrays[o.name] = {place: inputs[o.name][place].item() for place in places}
        shapes[o.name] = o.shape
    for stage in program.stages:
        shapes[stage.name] = program.shape(stage.axes)
        arrays[stage.name] = {
            place: _element(
                program, stage, dict(zip(stage.axes, place, strict=True)), arrays, shapes
            )
            for place in itertools.product(*map(range, shapes[stage.name]))
        }
    return arrays


def _element(program, stage, at, arrays, shapes):
    if stage.reducer is None:
        return _value(stage.body, at, arrays, shapes)
    places, values = [], []
    for number, over in enumerate(itertools.product(*map(range, program.shape(stage.over)))):
        point = at | dict(zip(stage.over, over, strict=True))
        if all(_value(c, point, arrays, shapes) for c in program.bounding(stage)):
            places.append(number)
            values.append(_value(stage.body, point, arrays, shapes))
    match stage.reducer:
        case "sum":
            return sum(values)
        case "prod":
            return math.prod(values)
        case "max":
            return math.nan if any(map(math.isnan, values)) else max(values, default=-math.inf)
        case "min":
            return math.nan if any(map(math.isnan, values)) else min(values, default=math.inf)
        case "argmax":
            return places[values.index(max(values))] if values else 0
        case "argmin":
            return places[values.index(min(values))] if values else 0
    raise AssertionError(stage.reducer)


def _value(node, at, arrays, shapes):
    def value(inner):
        return _value(inner, at, arrays, shapes)

    match node:
        case Number(number):
            return int(number) if number.is_integer() else number
        case AxisValue(name):
            return at[name]
        case Read(name, indices, outside):
            place = tuple(value(index) for index in indices)
            inside = all(0 <= i < n for i, n in zip(place, shapes[name], strict=True))
            if outside is None:
                assert inside, (node, at)
            return arrays[name][place] if inside else outside
        case Negation(inner):
            return -value(inner)
        case Select(condition, then, otherwise):
            return value(then) if value(condition) else value(otherwise)
        case Binary(sign, left, right) | Comparison(sign, left, right):
            return OPERATIONS[sign](value(left), value(right))
        case Call(function, arguments):
            return FUNCTIONS[function].reference(*map(value, arguments)).item()
    raise AssertionError(node)

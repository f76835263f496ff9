"""Maxima whose shift changes no output, so that nothing flows back through them.

A softmax subtracts a maximum so that no exponential overflows; any other number there gives the
same result. How each stage changes when a number ``c`` is added to a maximum follows from the
stages alone: an expression becomes ``exp(scale c)`` times itself, or itself plus ``shift c``. Where
all outputs stay as they are, the derivative in the maximum is 0.

Because the maximum is free, it may as well be the logarithm of the sum of exponentials, at which
that sum is 1: a kernel that has it need not add the exponentials up again (Dao,
FlashAttention-2, 2023, section 3.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isinf, prod

from tilewright.spaces.derivation.algebra import constant
from tilewright.spaces.language.cycles import in_states
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Comparison,
    Expression,
    Negation,
    Number,
    Read,
    Select,
)

EXTREMES = ("max", "min")


@dataclass(frozen=True)
class Change:
    """The change of a value: it is multiplied by ``exp(scale c)``, and ``shift c`` is added.

    One of the two is 0. A value that is 0 everywhere may have any ``scale``.
    """

    scale: Fraction = Fraction(0)
    shift: Fraction = Fraction(0)
    zero: bool = False

    @property
    def is_none(self) -> bool:
        """Tell whether the value stays as it is."""
        return self.zero or not (self.scale or self.shift)


SAME = Change()
Found = Change | None
"""A change, or None of what changes in no such way."""


def free_extremes(program: Program) -> dict[str, Mapping[str, Found]]:
    """Return the maxima and minima whose shift changes no output, each with the changes of all
    stages. States do not change either, for changes are those of a step whose states stay."""
    staying = {*(output.name for output in program.outputs), *in_states(program)}
    found: dict[str, Mapping[str, Found]] = {}
    for stage in program.stages:
        if stage.reducer in EXTREMES:
            changes = _changes(program, stage)
            if all(_stays(changes[name]) for name in staying):
                found[stage.name] = changes
    return found


def exponential_sum(program: Program, extreme: str, changes: Mapping[str, Found]) -> str | None:
    """Return the sum of exponentials that is 1 where its maximum is its logarithm."""
    own = program.stage[extreme]
    for stage in program.stages:
        same = (stage.axes, {*stage.over}) == (own.axes, {*own.over})
        positive = stage.reducer == "sum" and isinstance(stage.body, Call)
        falls = changes[stage.name] == Change(scale=Fraction(-1))
        bounds = {*program.bounding(stage)} == {*program.bounding(own)}
        if same and positive and falls and bounds:
            return stage.name
    return None


def _stays(change: Found) -> bool:
    return change is not None and change.is_none


def _changes(program: Program, extreme: Stage) -> dict[str, Found]:
    changes: dict[str, Found] = {}
    for stage in program.stages:
        changes[stage.name] = _reduced(program, stage, _change(stage.body, changes))
        if stage is extreme:
            changes[stage.name] = Change(shift=Fraction(1))
    return changes


def _reduced(program: Program, stage: Stage, body: Found) -> Found:
    """Return the change of a reduction of elements that all change alike."""
    if body is None or body.is_none or stage.reducer is None or stage.reducer in EXTREMES:
        return body
    count = prod(program.shape(stage.over))
    match stage.reducer:
        case "sum" if body.shift and not program.bounding(stage):
            return Change(shift=body.shift * count)
        case "sum" if not body.shift:
            return body
        case "argmax" | "argmin":
            return SAME
    return None


def _change(node: Expression, known: Mapping[str, Found]) -> Found:
    match node:
        case Number(value):
            return Change(zero=value == 0)
        case AxisValue():
            return SAME
        case Read(name, indices, outside):
            plain = all(_stays(_change(index, known)) for index in indices)
            return _entry(known.get(name, SAME), outside) if plain else None
        case Negation(inner):
            return _times(_change(inner, known), -1)
        case Binary("+" | "-" as operator, left, right):
            sign = 1 if operator == "+" else -1
            return _sum(_change(left, known), _times(_change(right, known), sign))
        case Binary("*", left, right):
            return _product(node, _change(left, known), _change(right, known))
        case Binary("/", left, right):
            return _quotient(node, _change(left, known), _change(right, known))
        case Select(Comparison(_, left, right), then, otherwise):
            if _alike(_change(left, known), _change(right, known)) is None:
                return None
            return _alike(_change(then, known), _change(otherwise, known))
        case Call(function, arguments):
            return _call(function, [_change(argument, known) for argument in arguments])
    return SAME if all(_stays(_change(child, known)) for child in node.children) else None


def _entry(own: Found, outside: float | None) -> Found:
    """Return the change of an entry of a stage, which has a value beyond the borders, or none."""
    if own is None or outside is None or own.is_none:
        return own
    return own if (isinf(outside) if own.shift else outside == 0) else None


def _times(change: Found, factor: int | Fraction) -> Found:
    """Return the change of a multiple."""
    if change is None:
        return None
    return Change(change.scale, change.shift * factor, change.zero)


def _sum(left: Found, right: Found) -> Found:
    if left is None or right is None:
        return None
    if left.zero or right.zero:
        return right if left.zero else left
    if left.scale != right.scale or (left.scale and (left.shift or right.shift)):
        return None
    return Change(left.scale, left.shift + right.shift)


def _alike(left: Found, right: Found) -> Found:
    """Return the change of two values that are compared, or one of which is chosen."""
    if left is None or right is None:
        return None
    if left.zero or right.zero:
        other = right if left.zero else left
        return None if other.shift else other
    return left if left == right else None


def _product(node: Binary, left: Found, right: Found) -> Found:
    if left is None or right is None:
        return None
    if left.shift or right.shift:
        factor, shifted = (node.left, right) if right.shift else (node.right, left)
        value = constant(factor)
        return None if value is None else _times(shifted, Fraction(value))
    return Change(left.scale + right.scale, zero=left.zero or right.zero)


def _quotient(node: Binary, left: Found, right: Found) -> Found:
    if left is None or right is None or right.shift:
        return None
    if left.shift:
        value = constant(node.right)
        return _times(left, 1 / Fraction(value)) if value else None
    return Change(left.scale - right.scale, zero=left.zero)


POWERS = {"sqrt": Fraction(1, 2), "rsqrt": Fraction(-1, 2), "abs": Fraction(1), "relu": Fraction(1)}
"""Functions of a positive multiple: the power of the factor that they are multiplied by."""
CASTS = ("bfloat16", "float16", "float32")


def _call(function: str, arguments: list[Found]) -> Found:
    """Return the change of a function, whose casts count as what they round."""
    first = arguments[0]
    if any(argument is None for argument in arguments) or first is None:
        return None
    if all(map(_stays, arguments)):
        return SAME
    match function, arguments:
        case "exp", _ if not first.scale:
            return Change(scale=first.shift)
        case "log", _ if not first.shift:
            return Change(shift=first.scale)
        case (("max" | "min"), [_, other]):
            return _alike(first, other)
    if function in CASTS:
        return first
    if function in POWERS and not first.shift:
        return Change(scale=first.scale * POWERS[function])
    return None

"""Programs written otherwise at random, by rules of algebra that leave alone what they mean."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from math import pi, sqrt

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

Path = tuple[int, ...]
ONE, TWO, HALF = Number(1.0), Number(2.0), Number(0.5)


def rewritten(program: Program, chance: random.Random, steps: int) -> str:
    """The text of an equal program."""
    stages = list(program.stages)
    for _ in range(steps):
        number = chance.randrange(len(stages))
        match chance.randrange(8):
            case 0:
                stages = _without_a_map(program, stages, chance)
            case 1:
                stages[number : number + 1] = _with_a_map(stages[number], chance)
            case 2:
                stages[number] = _in_another_order(stages[number], chance)
            case _:
                stages[number] = _changed(stages[number], chance)
    return str(replace(program, stages=tuple(stages)))


# -- stages --------------------------------------------------------------------------------------


def _without_a_map(program: Program, stages: list[Stage], chance: random.Random) -> list[Stage]:
    """A map that is no output is written into all that reads it."""
    outputs = {output.name for output in program.outputs}
    maps = [s for s in stages if s.reducer is None and s.name not in outputs]
    if not maps:
        return stages
    gone = chance.choice(maps)

    def inlined(node: Expression) -> Expression:
        children = tuple(map(inlined, node.children))
        if isinstance(node, Read) and node.name == gone.name and node.outside is None:
            return gone.body.at(dict(zip(gone.axes, children, strict=True)))
        return node.with_children(children)

    found = [replace(s, body=inlined(s.body)) for s in stages if s is not gone]
    trees = [*(s.body for s in found), *program.conditions]
    return stages if any(r.name == gone.name for tree in trees for r in tree.reads) else found


def _with_a_map(stage: Stage, chance: random.Random) -> list[Stage]:
    """A part becomes a stage of its own."""
    parts = [(p, e) for p, e, index in _places(stage.body) if not index and e.axes]
    parts = [(p, e) for p, e in parts if not isinstance(e, Comparison | AxisValue)]
    if not parts:
        return [stage]
    path, part = chance.choice(parts)
    axes = [axis for axis in (*stage.axes, *stage.over) if axis in part.axes]
    chance.shuffle(axes)
    name = f"part{chance.randrange(10**9)}"
    read = Read(name, tuple(map(AxisValue, axes)))
    map_ = Stage(name, tuple(axes), None, (), part)
    return [map_, replace(stage, body=_put(stage.body, path, read))]


def _in_another_order(stage: Stage, chance: random.Random) -> Stage:
    """Axes are reduced over in another order, where no place is asked for."""
    over = list(stage.over)
    if stage.reducer not in ("argmax", "argmin"):
        chance.shuffle(over)
    return replace(stage, over=tuple(over))


def _changed(stage: Stage, chance: random.Random) -> Stage:
    places = list(_places(stage.body))
    chance.shuffle(places)
    for path, node, index in places:
        if new := list(_index_rules(node) if index else _rules(node)):
            return replace(stage, body=_put(stage.body, path, chance.choice(new)))
    return stage


def _places(node: Expression, path: Path = (), index: bool = False) -> Iterator[tuple]:
    """All nodes, where each is, and whether it stands in an index."""
    yield path, node, index
    for number, child in enumerate(node.children):
        inside = index or isinstance(node, Read | Comparison)
        yield from _places(child, (*path, number), inside)


def _put(node: Expression, path: Path, new: Expression) -> Expression:
    if not path:
        return new
    children = list(node.children)
    children[path[0]] = _put(children[path[0]], path[1:], new)
    return node.with_children(tuple(children))


# -- rules -----------------------------------------------------------------------------------------


def _index_rules(node: Expression) -> Iterator[Expression]:
    """What an index, or a side of a comparison of indices, may be written as, too."""
    match node:
        case Binary("+", left, right):
            yield Binary("+", right, left)
        case Binary("-", left, right):
            yield Binary("+", Negation(right), left)
        case Binary("*", Number() as factor, Binary("+", left, right)):
            yield Binary("+", Binary("*", factor, left), Binary("*", right, factor))
        case Binary("*", left, right):
            yield Binary("*", right, left)
    yield Binary("-", Binary("+", node, TWO), TWO)


def _rules(node: Expression) -> Iterator[Expression]:
    """What a value may be written as, too."""
    match node:
        case Binary("+" | "*" as sign, left, right):
            yield Binary(sign, right, left)
            match left:
                case Binary(inner, a, b) if inner == sign:
                    yield Binary(sign, a, Binary(sign, b, right))
                case Negation(a) if sign == "*":
                    yield Negation(Binary("*", a, right))
        case Binary("-", left, right):
            yield Binary("+", Negation(right), left)
            yield Binary("+", left, Binary("*", Negation(ONE), right))
            match right:
                case Binary("+", a, b):
                    yield Binary("-", Binary("-", left, a), b)
        case Binary("/", left, right):
            yield Binary("*", Binary("/", ONE, right), left)
            match right:
                case Binary("*", a, b):
                    yield Binary("/", Binary("/", left, a), b)
        case Negation(inner):
            yield Binary("*", inner, Negation(ONE))
            yield Binary("-", Number(0.0), inner)
        case Number(value):
            yield Binary("+", Number(value / 2), Number(value / 2))
            yield Binary("*", Number(value / 4), Number(4.0))
        case Select(Comparison("<" | ">" as sign, left, right), then, otherwise):
            turned = Comparison("<" if sign == ">" else ">", right, left)
            yield Select(turned, then, otherwise)
        case Call(function, arguments):
            yield from _spelt(function, arguments)
    if not isinstance(node, Comparison):
        yield Binary("*", ONE, node)
        yield Binary("-", node, Number(0.0))
        yield Negation(Negation(node))


def _spelt(function: str, arguments: tuple[Expression, ...]) -> Iterator[Expression]:
    """Calls in other words."""
    x = arguments[0]
    match function:
        case "gelu":
            inner = Call("erf", (Binary("/", x, Call("sqrt", (TWO,))),))
            yield Binary("*", Binary("*", HALF, x), Binary("+", ONE, inner))
        case "gelu_tanh":
            cube = Binary("*", Binary("*", x, x), Binary("*", x, Number(0.044715)))
            inner = Call("tanh", (Binary("*", Number(sqrt(2 / pi)), Binary("+", x, cube)),))
            yield Binary("*", Binary("+", ONE, inner), Binary("/", x, TWO))
        case "silu":
            yield Binary("/", x, Binary("+", ONE, Call("exp", (Negation(x),))))
        case "sigmoid":
            yield Binary("/", ONE, Binary("+", Call("exp", (Negation(x),)), ONE))
        case "relu":
            yield Call("max", (Number(0.0), x))
        case "rsqrt":
            yield Binary("/", ONE, Call("sqrt", (x,)))
        case "max" | "min":
            yield Call(function, (arguments[1], x))
            match x:
                case Call(inner, (a, b)) if inner == function:
                    yield Call(function, (a, Call(function, (b, arguments[1]))))

"""Random programs of stages that read themselves and each other, and what they compute."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np

Point = Mapping[str, int]
Term = tuple[str, Callable[["Loop", Point], float]]
EXTENTS = {"b": 3, "t": 6, "d": 4, "e": 4}
OPERANDS = {"x": ("b", "t", "d"), "y": ("b", "t"), "w": ("d",), "m": ("d", "e")}
REDUCED = {"sum": sum, "max": max, "min": min}


@dataclass
class Loop:
    """The elements of all arrays, which are computed one by one."""

    inputs: Mapping[str, np.ndarray]
    found: dict[str, dict[tuple[int, ...], float]] = field(default_factory=dict)
    direction: int = 1

    def before(self, name: str, axes: tuple[str, ...], point: Point, first: float) -> float:
        """An element one step before, or after where steps go down."""
        step = point["t"] - self.direction
        place = tuple(step if axis == "t" else point[axis] for axis in axes)
        return self.found[name][place] if 0 <= step < EXTENTS["t"] else first

    def now(self, name: str, axes: tuple[str, ...], point: Point) -> float:
        """An element of an operand, or of this step."""
        place = tuple(point[axis] for axis in axes)
        return float(self.inputs[name][place]) if name in self.inputs else self.found[name][place]


@dataclass(frozen=True)
class Cycles:
    """The ``text`` of stages, and for each its axes and what computes an element; steps go up or
    down."""

    text: str
    direction: int
    stages: Mapping[str, tuple[tuple[str, ...], Callable[[Loop, Point], float]]]

    def computed(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """All stages, step by step."""
        loop = Loop(inputs, {name: {} for name in self.stages}, self.direction)
        for t in range(EXTENTS["t"])[:: self.direction]:
            for name, (axes, element) in self.stages.items():
                for point in _points(axes, t):
                    loop.found[name][tuple(point.values())] = element(loop, point)
        return {
            name: np.array([loop.found[name][p] for p in np.ndindex(*_shape(axes))]).reshape(
                _shape(axes)
            )
            for name, (axes, _) in self.stages.items()
        }


def _shape(axes: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(EXTENTS[axis] for axis in axes)


def _points(axes: tuple[str, ...], t: int) -> Iterator[Point]:
    every = [[t] if axis == "t" else range(EXTENTS[axis]) for axis in axes]
    for place in product(*every):
        yield dict(zip(axes, place, strict=True))


def random_cycles(seed: int) -> Cycles:
    """Stages of one cycle: the first one reads the last one before, and each the one before it.
    Steps go down for odd seeds."""
    chance = random.Random(seed)
    names = [f"s{n}" for n in range(chance.randint(1, 4))]
    inner = [("d",), ("d", "e"), ()]
    axes = {name: ("b", "t", *chance.choice(inner)) for name in names}
    first = {name: chance.choice([0.0, 1.0, -0.5]) for name in names}
    stages, lines = {}, []
    for number, name in enumerate(names):
        reduced = chance.choice([(), ("d",), ("e",), ("d", "e")])
        over = tuple(axis for axis in reduced if axis not in axes[name])
        known = {*axes[name], *over}
        terms = [_operand(chance, known)]
        others = [*names[:number], f"-{names[-1]}", *(f"-{n}" for n in names if n != names[-1])]
        must = [names[number - 1] if number else f"-{names[-1]}"]
        for other in must + chance.sample(others, chance.randint(0, min(2, len(others)))):
            terms.append(_stage(other, axes, known, first))
        text, element = _combined(chance, terms)
        if over:
            reducer = chance.choice(list(REDUCED))
            text, element = _reduced(reducer, over, text, element)
        text, element = f"tanh({text})", _tanh(element)
        lines.append(f"{name}[{', '.join(axes[name])}] = {text}")
        stages[name] = (axes[name], element)
    text = "\n".join([*lines, "-> " + ", ".join(names)])
    return Cycles(
        text.replace("t - 1", "t + 1") if seed % 2 else text, -1 if seed % 2 else 1, stages
    )


def _operand(chance: random.Random, known: set[str]) -> Term:
    fitting = [name for name, axes in OPERANDS.items() if known.issuperset(axes)]
    name = chance.choice(fitting)
    axes = OPERANDS[name]
    return f"{name}[{', '.join(axes)}]", lambda loop, point: loop.now(name, axes, point)


def _stage(
    other: str, every: Mapping[str, tuple[str, ...]], known: set[str], first: Mapping[str, float]
) -> Term:
    """A read of a stage at this step, or of one before; at axes that are known, or at 0."""
    name, before = other.lstrip("-"), other.startswith("-")
    turned = {"d": "e", "e": "d"}
    axes = tuple(a if a in known else turned.get(a, a) for a in every[name])
    if not known.issuperset(axes):
        return "y[b, t]", lambda loop, point: loop.now("y", ("b", "t"), point)
    if not before:
        return f"{name}[{', '.join(axes)}]", lambda loop, point: loop.now(name, axes, point)
    value = first[name]
    indices = ", ".join("t - 1" if axis == "t" else axis for axis in axes)
    return (
        f"inside({name}[{indices}], {value:g})",
        lambda loop, point: loop.before(name, axes, point, value),
    )


def _combined(chance: random.Random, terms: list[Term]) -> Term:
    text, element = terms[0]
    for other, own in terms[1:]:
        sign = chance.choice("+-*")
        text, element = f"({text} {sign} {other})", _joined(sign, element, own)
    return text, element


def _joined(sign, a, b):
    return {
        "+": lambda loop, point: a(loop, point) + b(loop, point),
        "-": lambda loop, point: a(loop, point) - b(loop, point),
        "*": lambda loop, point: a(loop, point) * b(loop, point),
    }[sign]


def _reduced(reducer, over, text, element):
    def value(loop: Loop, point: Point) -> float:
        every = product(*(range(EXTENTS[axis]) for axis in over))
        return REDUCED[reducer](
            element(loop, {**point, **dict(zip(over, place, strict=True))}) for place in every
        )

    return f"{reducer}[{', '.join(over)}]({text})", value


def _tanh(element):
    return lambda loop, point: float(np.tanh(element(loop, point)))

"""The canonical text of a program: the same for programs that differ in names and writing alone.

Maps and counts are written into what reads them, expressions take their normal form, and dimensions
the order of memory. Then axes, arrays and stages are told apart by what surrounds them, in rounds:
a label is a digest of the labels nearby (Weisfeiler and Leman, 1968). Sorted by their labels they
get numbers for names. The text says all of a program but its names, so different programs never
share one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from spaces.language.functions import REDUCERS
from spaces.language.normal import Form, normal
from spaces.language.program import Output, Program, Stage
from spaces.language.tree import AxisValue, Expression, Number, Read
from spaces.workloads.array import Array

MAX_NODES = 200
"""Of a map that is written into what reads it; a larger one stays a stage."""
MAX_ROUNDS = 8


def description(program: Program) -> str:
    """The canonical text."""
    return _Description(_stages(program), program).text()


@dataclass(frozen=True)
class _Stage:
    """A stage in normal form; ``kept`` axes in the order of memory, if it is an output."""

    stage: Stage
    kept: tuple[str, ...]
    body: Form
    conditions: tuple[Form, ...]
    output: str

    @property
    def axes(self) -> tuple[str, ...]:
        return (*self.kept, *self.stage.over)


def _stages(program: Program) -> dict[str, _Stage]:
    maps: dict[str, Stage] = {}
    found = {}
    outputs = {output.name: output for output in program.outputs}
    for stage in program.stages:
        body = _written_out(stage.body, maps)
        count = _count(program, stage)
        if stage.reducer is None and sum(1 for _ in body.walk()) <= MAX_NODES:
            maps[stage.name] = Stage(stage.name, stage.axes, None, (), body)
        elif count is not None:
            maps[stage.name] = Stage(stage.name, stage.axes, None, (), count)
        output = outputs.get(stage.name)
        kept = tuple(stage.axes[d] for d in output.order) if output else stage.axes
        conditions = tuple(dict.fromkeys(map(normal, program.bounding(stage))))
        place = _output_text(program, output) if output else ""
        found[stage.name] = _Stage(stage, kept, normal(body), conditions, place)
    return found


def _count(program: Program, stage: Stage) -> Number | None:
    """The sum of a constant over all of some axes."""
    if stage.reducer != "sum" or program.bounding(stage):
        return None
    match stage.body:
        case Number(value):
            return Number(value * prod(program.shape(stage.over)))
    return None


def _output_text(program: Program, output: Output) -> str:
    return f"{program.outputs.index(output)} {_array_text(output)}"


def _array_text(array: Array) -> str:
    shape = [array.shape[dimension] for dimension in array.order]
    return f"{array.dtype}{shape}{array.leading or ''}"


def _written_out(node: Expression, maps: Mapping[str, Stage]) -> Expression:
    """``node`` without reads of ``maps``."""
    children = tuple(_written_out(child, maps) for child in node.children)
    match node:
        case Read(name, _, None) if name in maps:
            return _at(maps[name].body, dict(zip(maps[name].axes, children, strict=True)))
    return node.with_children(children)


def _at(node: Expression, indices: Mapping[str, Expression]) -> Expression:
    """``node`` with indices for axes."""
    match node:
        case AxisValue(name):
            return indices[name]
    return node.with_children(tuple(_at(child, indices) for child in node.children))


def _digest(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


@dataclass
class _Labels:
    """Labels of axes, each of one stage, and of arrays; one round makes them finer."""

    stages: Mapping[str, _Stage]
    arrays: dict[str, str]
    axes: dict[tuple[str, str], str]
    _forms: dict[tuple[str, int], str] = field(default_factory=dict)
    _contexts: dict[object, list[str]] = field(default_factory=dict)

    def refine(self) -> None:
        """Do rounds until they tell no more apart."""
        kinds = 0
        for _ in range(MAX_ROUNDS):
            before, kinds = kinds, len({*self.arrays.values(), *self.axes.values()})
            if kinds == before:
                return
            self._round()

    def of(self, stage: str, form: Form) -> str:
        """The label of a form in a stage."""
        key = (stage, id(form))
        if key not in self._forms:
            self._forms[key] = _digest(form.label, form.outside, *self._below(stage, form))
        return self._forms[key]

    def _below(self, stage: str, form: Form) -> list[str]:
        if form.label == "axis":
            return [self.axes[stage, form.name]]
        labels = [self.of(stage, child) for child in form.children]
        if form.name:
            places = self.places(form.name, len(labels))
            labels = [_digest(*pair) for pair in zip(places, labels, strict=True)]
            return [self.arrays[form.name], *sorted(labels)]
        return labels if form.ordered else sorted(labels)

    def places(self, name: str, rank: int) -> list[str]:
        """What tells the dimensions of an array apart: of a stage, its axes."""
        if name not in self.stages:
            return [str(place) for place in range(rank)]
        return [self.axes[name, axis] for axis in self.stages[name].stage.axes]

    def _round(self) -> None:
        self._forms, self._contexts = {}, {}
        for name, stage in self.stages.items():
            own = self.arrays[name]
            self._visit(name, stage.body, own)
            for condition in stage.conditions:
                self._visit(name, condition, _digest(own, "where"))
        contents = {name: self._content(name) for name in self.stages}
        self.axes = {key: self._finer(key, label) for key, label in self.axes.items()}
        arrays = self.arrays.items()
        self.arrays = {n: _digest(self._finer(n, label), contents.get(n)) for n, label in arrays}
        self._forms = {}

    def _content(self, name: str) -> tuple[str, list[str]]:
        stage = self.stages[name]
        return self.of(name, stage.body), sorted(self.of(name, c) for c in stage.conditions)

    def _finer(self, key: object, label: str) -> str:
        return _digest(label, sorted(self._contexts.get(key, ())))

    def _visit(self, stage: str, form: Form, context: str) -> None:
        """Note where each axis and array stands."""
        own = _digest(context, self.of(stage, form))
        if form.name:
            key = (stage, form.name) if form.label == "axis" else form.name
            self._contexts.setdefault(key, []).append(own)
        rank = len(form.children)
        places = self.places(form.name, rank) if form.name else [str(i) for i in range(rank)]
        for place, child in zip(places, form.children, strict=True):
            self._visit(stage, child, _digest(own, place) if form.ordered else own)


class _Description:
    """Numbers axes, operands and stages in the order of their labels, from the outputs down."""

    def __init__(self, stages: dict[str, _Stage], program: Program) -> None:
        self._program = program
        self._stages = _reached(stages, [output.name for output in program.outputs])
        self._labels = _Labels(self._stages, self._first_arrays(), self._first_axes())
        self._labels.refine()
        self._operands: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        self._axes: dict[str, tuple[str, ...]] = {}
        self._lines: dict[str, int] = {}

    def text(self) -> str:
        """All lines: operands, stages, outputs."""
        outputs = [
            f"-> {self._number(output.name)} {_array_text(output)}"
            for output in self._program.outputs
        ]
        operands = [
            f"{number}: {self._operand_text(name)}" for name, number in self._operands.items()
        ]
        return "\n".join([*operands, *self._lines, *outputs])

    def _operand_text(self, name: str) -> str:
        operand = self._program.operand[name]
        drawn = operand.drawn
        entries = f" {'sorted' if drawn.sorted else 'index'} < {drawn.below}" if drawn else ""
        return f"{_array_text(operand)}{entries}"

    def _first_arrays(self) -> dict[str, str]:
        operands = {o.name: _digest(self._operand_text(o.name)) for o in self._program.operands}
        stages = self._stages.items()
        return operands | {n: _digest(s.stage.reducer, s.output) for n, s in stages}

    def _first_axes(self) -> dict[tuple[str, str], str]:
        return {
            (name, axis): _digest(self._program.extent[axis], _role(stage, axis))
            for name, stage in self._stages.items()
            for axis in stage.axes
        }

    def _number(self, name: str) -> int:
        """The number of a stage; its line is written when it is first asked for."""
        if name not in self._numbers:
            stage = self._stages[name]
            self._axes[name] = self._sorted_axes(name, stage)
            for form in (stage.body, *stage.conditions):
                self._meet(name, form)
            line = self._line(name, stage)
            self._numbers[name] = self._lines.setdefault(line, len(self._lines))
        return self._numbers[name]

    def _sorted_axes(self, name: str, stage: _Stage) -> tuple[str, ...]:
        def label(axis: str) -> str:
            return self._labels.axes[name, axis]

        kept = stage.kept if stage.output else tuple(sorted(stage.kept, key=label))
        over = stage.stage.over
        ordered = stage.stage.reducer is not None and REDUCERS[stage.stage.reducer].argument
        return (*kept, *(over if ordered else sorted(over, key=label)))

    def _meet(self, stage: str, form: Form) -> None:
        """Number operands and stages in the order of labels."""
        if form.label == "read":
            if form.name in self._stages:
                self._number(form.name)
            else:
                self._operands.setdefault(form.name, len(self._operands))
        children: Sequence[Form] = form.children
        if not form.ordered:
            children = sorted(children, key=lambda child: self._labels.of(stage, child))
        for child in children:
            self._meet(stage, child)

    def _line(self, name: str, stage: _Stage) -> str:
        axes = [f"{n}={self._program.extent[a]}" for n, a in enumerate(self._axes[name])]
        kept = len(stage.kept)
        conditions = sorted(self._form(name, condition) for condition in stage.conditions)
        where = f" where {' and '.join(conditions)}" if conditions else ""
        reducer = stage.stage.reducer or ""
        head = f"[{', '.join(axes[:kept])}] {reducer}[{', '.join(axes[kept:])}]"
        return f"{head} {self._form(name, stage.body)}{where}"

    def _form(self, stage: str, form: Form) -> str:
        if form.label == "axis":
            return f"a{self._axes[stage].index(form.name)}"
        below = [self._form(stage, child) for child in form.children]
        if form.name:
            below = [below[place] for place in self._dimensions(form.name)]
            number = self._numbers.get(form.name)
            target = f"o{self._operands[form.name]}" if number is None else f"s{number}"
            outside = "" if form.outside is None else f" or {form.outside}"
            return f"{target}[{', '.join(below)}{outside}]"
        below = below if form.ordered else sorted(below)
        return f"({form.label} {' '.join(below)})" if below else form.label

    def _dimensions(self, name: str) -> Sequence[int]:
        """The dimensions of an array in the order in which its canonical form has them."""
        if name not in self._stages:
            return self._program.operand[name].order
        axes = self._stages[name].stage.axes
        return [axes.index(axis) for axis in self._axes[name] if axis in axes]


def _role(stage: _Stage, axis: str) -> object:
    if axis in stage.stage.over:
        return "over"
    return stage.kept.index(axis) if stage.output else "kept"


def _reached(stages: dict[str, _Stage], names: Sequence[str]) -> dict[str, _Stage]:
    """What the stages ``names`` need."""
    found: dict[str, _Stage] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in stages and name not in found:
            found[name] = stages[name]
            waiting += _reads(stages[name].body)
    return found


def _reads(form: Form) -> Iterator[str]:
    if form.label == "read":
        yield form.name
    for child in form.children:
        yield from _reads(child)

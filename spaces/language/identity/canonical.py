"""The canonical text of a program: the same for programs that differ in names and writing alone.

Its stages take their normal form (:mod:`spaces.language.identity.normal_stages`). Then axes, arrays
and stages are told apart by their :mod:`labels <spaces.language.identity.labels>`; sorted by these
they get numbers for names. The text says all of a program but its names, so different programs
never share one.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.language.cycles import in_cycles
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.identity.labels import Labels, digest
from tilewright.spaces.language.identity.normal import Form
from tilewright.spaces.language.identity.normal_stages import (
    NormalStage,
    array_text,
    normal_stages,
    reached,
)
from tilewright.spaces.language.program import Program


def description(program: Program) -> str:
    """Return the canonical text."""
    return _Description(normal_stages(program), program).text()


class _Description:
    """Numbers axes, operands and stages in the order of their labels, from the outputs down."""

    def __init__(self, stages: dict[str, NormalStage], program: Program) -> None:
        self._program = program
        self._stages = reached(stages, [output.name for output in program.outputs])
        self._labels = self._all_labels()
        self._operands: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        self._axes: dict[str, tuple[str, ...]] = {}
        self._lines: dict[str, int] = {}
        self._stepped = in_cycles(program)

    def text(self) -> str:
        """Return all lines: operands, stages, outputs."""
        outputs = [
            f"-> {self._number(output.name)} {array_text(output)}"
            for output in self._program.outputs
        ]
        operands = [
            f"{number}: {self._operand_text(name)}" for name, number in self._operands.items()
        ]
        return "\n".join([*operands, *self._lines, *outputs])

    def _operand_text(self, name: str) -> str:
        operand = self._program.operand[name]
        drawn = operand.drawn
        entries = f" {drawn}" if drawn else ""
        if operand.elements is not None:
            entries = f" = {operand.elements}"
        return f"{array_text(operand)}{entries}"

    def _all_labels(self) -> list[Labels]:
        """Return the labels by what surrounds axes and arrays where they are, and if these do not
        tell all of them apart, further ones by those who read them as well."""
        labels = Labels(self._stages, self._first_arrays(), self._first_axes())
        labels.refine()
        if labels.tell_apart():
            return [labels]
        finer = Labels(self._stages, dict(labels.arrays), dict(labels.axes), readers=True)
        finer.refine()
        return [labels, finer]

    def _first_arrays(self) -> dict[str, str]:
        operands = {o.name: digest(self._operand_text(o.name)) for o in self._program.operands}
        stages = self._stages.items()
        return operands | {n: digest(s.stage.reducer, s.output) for n, s in stages}

    def _first_axes(self) -> dict[tuple[str, str], str]:
        return {
            (name, axis): digest(self._program.extent[axis], _role(stage, axis))
            for name, stage in self._stages.items()
            for axis in stage.axes
        }

    def _number(self, name: str) -> int:
        """Return the number of a stage; its line is written when it is first asked for. A stage of
        a cycle has its number before, for its own line may name it."""
        if name not in self._numbers:
            stage = self._stages[name]
            self._axes[name] = self._sorted_axes(name, stage)
            if name in self._stepped:
                self._numbers[name] = len(self._lines)
                self._lines[f"cycle {self._numbers[name]}"] = len(self._lines)
            for form in (stage.body, *stage.conditions):
                self._meet(name, form)
            line = self._line(name, stage)
            if name in self._stepped:
                self._lines[f"{line} of cycle {self._numbers[name]}"] = len(self._lines)
            else:
                self._numbers[name] = self._lines.setdefault(line, len(self._lines))
        return self._numbers[name]

    def _sorted_axes(self, name: str, stage: NormalStage) -> tuple[str, ...]:
        def label(axis: str) -> list[str]:
            return [labels.axes[name, axis] for labels in self._labels]

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
            children = sorted(children, key=lambda c: [x.of(stage, c) for x in self._labels])
        for child in children:
            self._meet(stage, child)

    def _line(self, name: str, stage: NormalStage) -> str:
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
        """Return the dimensions of an array in the order in which its canonical form has them."""
        if name not in self._stages:
            return self._program.operand[name].order
        axes = self._stages[name].stage.axes
        return [axes.index(axis) for axis in self._axes[name] if axis in axes]


def _role(stage: NormalStage, axis: str) -> object:
    if axis in stage.stage.over:
        return "over"
    return stage.kept.index(axis) if stage.output else "kept"
